"""Parts of `experiments/uci.py`: who takes part, what was published, the records of the runs, the table."""

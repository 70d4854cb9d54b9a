"""The parts of `small_data.py`: tasks, training and tables."""

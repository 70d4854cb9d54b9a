"""The parts of `equal_time.py`: entrants, their speed, their runs, the table and the curve."""

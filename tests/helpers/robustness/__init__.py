"""Commands that are run with bad input, on damaged files, and killed; and what must be true afterwards."""

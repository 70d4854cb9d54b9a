"""`ssvi reproduce`: the tables and figures of the paper, ours beside the paper's, at a scale that the user chooses."""

"""Other methods for sparse Bayesian networks, to compare with."""

"""Closed forms of distributions: tensors in, tensors out."""

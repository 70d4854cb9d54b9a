"""Kernels in Triton, for GPUs: one launch where torch's operators need one for each layer and each operation.

CUDA builds of torch bring Triton along. It is imported at the first use; where it is absent torch's operators serve, with
the same numbers up to rounding. No GPU was at hand: the kernels have run by Triton's interpreter alone.
"""

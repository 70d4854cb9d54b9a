"""Small tensors are faster on one thread; tests of threads choose their own number."""

import torch

torch.set_num_threads(1)

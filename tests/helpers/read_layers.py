"""Layers that read their weights, and transposed convolutions: a torch layer and its input for each."""

import torch
from torch import nn

from ssvi.nn.bayes_layer import BayesLayer


class Gated(nn.Module):
    """A user's own layer, which reads its weight twice: y = gate * (W^T W x)."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 5))
        self.gate = nn.Parameter(torch.randn(5))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.gate * (x @ self.weight.T @ self.weight)


class Transformer(nn.Module):
    """An encoder and a decoder of torch."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), 2)
        self.decoder = nn.TransformerDecoderLayer(8, 2, 16, 0.0, batch_first=True)

    def forward(self, x):
        return self.decoder(x, self.encoder(x))


def same_three_times(x):
    return x, x, x


TOKENS = torch.tensor([[1, 2, 3, 0], [4, 4, 6, 1]])
OWN = {Gated: ("weight", "gate")}
CASES = {
    "attention": (
        lambda: nn.MultiheadAttention(8, 2, batch_first=True),
        lambda: same_three_times(torch.randn(2, 5, 8)),
    ),
    "attention of three sizes": (
        lambda: nn.MultiheadAttention(8, 2, kdim=6, vdim=4, bias=False),
        lambda: (torch.randn(3, 2, 8), torch.randn(5, 2, 6), torch.randn(5, 2, 4)),
    ),
    "transformer": (Transformer, lambda: (torch.randn(2, 5, 8),)),
    "lstm": (lambda: nn.LSTM(4, 6, num_layers=2, bidirectional=True), lambda: (torch.randn(5, 2, 4),)),
    "lstm with projection": (lambda: nn.LSTM(4, 6, proj_size=3, batch_first=True), lambda: (torch.randn(2, 5, 4),)),
    "gru": (lambda: nn.GRU(4, 6, bias=False), lambda: (torch.randn(5, 2, 4),)),
    "rnn": (lambda: nn.RNN(4, 6, nonlinearity="relu"), lambda: (torch.randn(5, 2, 4),)),
    "lstm cell": (lambda: nn.LSTMCell(4, 6), lambda: (torch.randn(2, 4), (torch.randn(2, 6), torch.randn(2, 6)))),
    "gru cell": (lambda: nn.GRUCell(4, 6), lambda: (torch.randn(2, 4), torch.randn(2, 6))),
    "rnn cell": (lambda: nn.RNNCell(4, 6), lambda: (torch.randn(2, 4), torch.randn(2, 6))),
    "embedding": (lambda: nn.Embedding(7, 5), lambda: (TOKENS,)),
    "embedding with padding": (lambda: nn.Embedding(7, 5, padding_idx=4), lambda: (TOKENS,)),
    "embedding bag": (lambda: nn.EmbeddingBag(7, 5, mode="sum", padding_idx=0), lambda: (TOKENS,)),
    "bilinear": (lambda: nn.Bilinear(4, 3, 5), lambda: (torch.randn(2, 4), torch.randn(2, 3))),
    "own": (Gated, lambda: (torch.randn(3, 5),)),
}


def tensor(y) -> torch.Tensor:
    """The output, or the first of several."""
    return y if isinstance(y, torch.Tensor) else tensor(y[0])


def as_double(x):
    """The same in float64, also where it is a tuple; tokens stay tokens."""
    if isinstance(x, tuple):
        return tuple(map(as_double, x))
    return x.double() if x.is_floating_point() else x


def random_parameters(bnn: nn.Module) -> dict[str, tuple[BayesLayer, str]]:
    """Layer and parameter by the name of the parameter in the torch network."""
    layers = [(name, m) for name, m in bnn.named_modules() if isinstance(m, BayesLayer)]
    return {f"{name}.{of}".removeprefix("."): (layer, of) for name, layer in layers for of in layer.posteriors}

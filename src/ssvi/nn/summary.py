"""What became of each layer: a table in plain text, and in HTML where a notebook shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from ssvi.nn.bayes_layer import BayesLayer
from ssvi.nn.convert import REASON
from ssvi.nn.layers import use_name
from ssvi.nn.sparse import SparsePosterior
from ssvi.plotting import Cell, Table, element, notebook


@dataclass(frozen=True)
class Row:
    """One layer with parameters of its own."""

    name: str
    kind: str
    what: str
    d: int
    s: int
    bytes: int
    kernel: str
    note: str

    def cells(self) -> tuple[str, ...]:
        """The row as text."""
        density = f"{self.s / self.d:.2%}" if self.d else "-"
        counts = (f"{self.d:,}", f"{self.s:,}", density, f"{self.bytes:,}")
        return (self.name, self.kind, self.what, *counts, self.kernel, self.note)


HEAD = ("layer", "kind", "what", "d", "s", "density", "bytes", "kernel", "note")
RIGHT = (False, False, False, True, True, True, True, False, False)


def rows(bnn: nn.Module) -> list[Row]:
    """A row for each posterior, and for each other module that has parameters of its own, in the order of the network."""
    seen: dict[SparsePosterior | nn.Parameter, str] = {}
    table = []
    for name, module in bnn.named_modules():
        if isinstance(module, BayesLayer):
            table += _bayesian(name, module, seen)
        elif not isinstance(module, SparsePosterior) and any(p is not None for p in module._parameters.values()):
            table.append(_deterministic(name, module, seen))
    return table


class Summary(str):
    """The table as plain text; `rows` are its rows, and a notebook shows them as HTML."""

    rows: tuple[Row, ...]

    def __new__(cls, text: str, rows: Sequence[Row] = ()) -> Summary:
        """The text, and the rows that it was made of."""
        summary = super().__new__(cls, text)
        summary.rows = tuple(rows)
        return summary

    def _repr_html_(self) -> str:
        words = tuple(i for i, right in enumerate(RIGHT) if not right)
        table = Table(HEAD, [[Cell(text) for text in row.cells()] for row in self.rows], words)
        return notebook(table, *(element("p", total) for total in _totals(self.rows)))


def summary(bnn: nn.Module) -> Summary:
    """Layer by layer: kind, d weights, s live ones, density, bytes, kernel, and why a layer stayed deterministic."""
    table = rows(bnn)
    lines = _align([HEAD, *(row.cells() for row in table)])
    return Summary("\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:], "", *_totals(table)]), table)


def _bayesian(name: str, layer: BayesLayer, seen: dict[SparsePosterior | nn.Parameter, str]) -> list[Row]:
    """A row for each posterior; what else the layer has is counted in the bytes of its first row."""
    table = []
    stored = sum(_bytes(p) for p in layer._parameters.values()) + sum(_bytes(b) for b in layer._buffers.values())
    for parameter, posterior in layer.posteriors.items():
        table.append(_of_posterior(use_name(name, parameter), layer, posterior, stored, seen))
        stored = 0
    return table


def _of_posterior(
    name: str,
    layer: BayesLayer,
    posterior: SparsePosterior,
    stored: int,
    seen: dict[SparsePosterior | nn.Parameter, str],
) -> Row:
    kind, what = type(layer).__name__, f"{'sparse' if posterior.s < posterior.d else 'dense'} {_kind(posterior)}"
    if posterior in seen:  # counted once, where it came first
        return Row(name, kind, what, 0, 0, stored, layer.kernel, f"tied to {seen[posterior]}")
    seen[posterior] = name
    stored += _bytes(posterior.index) + sum(_bytes(p) for p in posterior.per_weight())
    return Row(name, kind, what, posterior.d, posterior.s, stored, layer.kernel, _note(posterior))


def _kind(posterior: SparsePosterior) -> str:
    return "Bayesian" if posterior.spreads else "point"


def _note(posterior: SparsePosterior) -> str:
    """The family, where it is not the Gaussian, and the structure."""
    return ", ".join(filter(None, [posterior.distribution, posterior.units.words]))


def _deterministic(name: str, module: nn.Module, seen: dict[SparsePosterior | nn.Parameter, str]) -> Row:
    """A tied parameter is counted where it came first."""
    own = [p for p in module._parameters.values() if p is not None and not isinstance(p, UninitializedParameter)]
    new = [p for p in own if p not in seen]
    seen.update(dict.fromkeys(new, name))
    d, stored = sum(p.numel() for p in new), sum(_bytes(p) for p in new)
    note = getattr(module, REASON, "deterministic")
    return Row(name or "(the network)", type(module).__name__, "deterministic", d, d, stored, "", note)


def _totals(table: Sequence[Row]) -> list[str]:
    sparse = [row for row in table if row.what.startswith("sparse")]
    d, s = sum(row.d for row in sparse), sum(row.s for row in sparse)
    whole_d, whole_s = sum(row.d for row in table), sum(row.s for row in table)
    lines = [f"sparse layers: s = {s:,} of d = {d:,}, density {s / d:.2%}, sparsity {1 - s / d:.2%}"] if d else []
    return [
        *lines,
        f"whole network: {whole_s:,} of {whole_d:,} weights, density {whole_s / whole_d:.2%}, "
        f"{sum(row.bytes for row in table):,} bytes",
    ]


def _bytes(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.numel() * tensor.element_size()


def _align(table: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in table) for i in range(len(HEAD))]
    return [
        "  ".join(c.rjust(w) if right else c.ljust(w) for c, w, right in zip(row, widths, RIGHT, strict=True)).rstrip()
        for row in table
    ]

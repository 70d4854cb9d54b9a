"""Model files with one thing wrong: bytes, the header of safetensors, our own header in it, or the numbers."""

from __future__ import annotations

import copy
import json
import math
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

import ssvi
from ssvi.data.tables import Preprocessing
from ssvi.data.tables.learnt import CategoryColumn, NumberColumn, Target
from ssvi.inference.predict import Mixture
from ssvi.nn.gate_kinds import LogNormalGate
from ssvi.nn.gates import put
from ssvi.nn.models import lenet, mlp
from ssvi.training import model_file
from ssvi.training.model_header import ModelAbout
from ssvi.training.networks import network_for_rows

ABOUT = ModelAbout(["a", "b", "c"], 1, 8, [0.5], [0.25])
TABLE = Preprocessing(
    Target("price", mean=3.0, std=2.0),
    (NumberColumn("size", 1.0, 2.0, 3.0, missing=2),),
    (CategoryColumn("kind", ("x", "y")),),
)
HOSTILE: list[Any] = [
    None, True, False, 0, 1, -1, 3, 7, 2**31, 2**63, -(2**63), 10**12, 10**30, 1e300, -0.5, math.nan, math.inf, -math.inf,
    "", "x", "os:system", "antigravity:x", "mlp", "resnet18", "table", "softplus", "\x00", "é" * 50, "members.0", [], {},
    [1], [[]], [1, 2, 3], {"a": 1}, ["a"] * 2000, [8, 10**9], [10**5, 10**5], {"s": 1, "d": 10**10},
]  # fmt: skip
NUMBERS = [math.nan, math.inf, -math.inf, -1.0, 0.0, 1e38, -1e38, 1e-45]


def write_bases(folder: Path) -> list[Path]:
    """Small model files: one network, with statistics of single thetas; a mixture; a table; gates."""
    recipe = {"model": "lenet", "method": "ssvi", "width": 2, "likelihood": "auto"}
    bnn = ssvi.to_bnn(lenet(classes=3, size=8, width=2), 0.4, seed=0)
    ssvi.fit_batchnorm(bnn, [torch.randn(9, 1, 8, 8)], 2, seed=1)
    members = Mixture(ssvi.to_bnn(mlp(classes=3, size=8, width=3), 0.5, point=True, seed=i) for i in range(2))
    rows = ssvi.to_bnn(network_for_rows(recipe | {"model": "table"}, TABLE), 0.5, seed=0)
    gated = mlp(classes=3, size=8, width=4)
    put(gated.get_submodule("1"), LogNormalGate(4))
    files: list[tuple[str, nn.Module, dict[str, Any]]] = [
        ("ssvi", bnn, {"recipe": recipe, "about": ABOUT}),
        ("ensemble", members, {"recipe": recipe | {"model": "mlp", "width": 3}, "about": ABOUT}),
        ("table", rows, {"recipe": recipe | {"model": "table"}, "table": TABLE}),
        ("gates", gated, {"recipe": recipe | {"model": "mlp", "width": 4}, "about": ABOUT}),
    ]
    for name, net, said in files:
        model_file.save(net, folder / f"{name}.safetensors", **said)
        unseal(folder / f"{name}.safetensors")
    return [folder / f"{name}.safetensors" for name, _, _ in files]


def unseal(file: Path) -> None:
    """Remove the SHA-256: a stranger may leave it out, and then the other checks must find what is wrong."""
    header, data = parts(file.read_bytes())
    said = json.loads(header["__metadata__"]["ssvi"])
    del said["sha256"]
    header["__metadata__"]["ssvi"] = json.dumps(said)
    file.write_bytes(joined(header, data))


def mutated(content: bytes, rng: random.Random) -> bytes:
    """The same file with one to three things changed."""
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        try:
            content = rng.choice(MUTATIONS)(content, rng)
        except (
            ValueError,
            KeyError,
            IndexError,
            struct.error,
            UnicodeError,
            RecursionError,
            AttributeError,
            TypeError,
        ):
            return content  # it is no file any more that could be changed further
    return content


def parts(content: bytes) -> tuple[dict[str, Any], bytearray]:
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), bytearray(content[8 + length :])


def joined(header: dict[str, Any] | bytes, data: bytes | bytearray) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(data)


def _flip(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 4, 64])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(content: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(content))
    return content[:start] + content[start + rng.choice([1, 7, 100, len(content)]) :]


def _insert(content: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(content))
    return content[:start] + rng.randbytes(rng.choice([1, 8, 300])) + content[start:]


def _lie_about_the_length(content: bytes, rng: random.Random) -> bytes:
    length = rng.choice(
        [0, 1, 2**24, 2**24 + 1, 2**31, 2**63, 2**64 - 1, len(content), rng.randrange(2 * len(content))]
    )
    return struct.pack("<Q", length) + content[8:]


def _tensor_entry(content: bytes, rng: random.Random) -> bytes:
    header, data = parts(content)
    name = rng.choice([key for key in header if key != "__metadata__"])
    entry = header[name]
    match rng.randrange(5):
        case 0:
            entry["dtype"] = rng.choice(
                ["F64", "F32", "F16", "BF16", "I64", "I32", "U8", "BOOL", "F8_E4M3", "C64", "X", 3]
            )
        case 1:
            entry["shape"] = rng.choice(
                [[], [0], [1], [-1], [2**40, 2**40], [1] * 200, [2**63], entry["shape"][::-1], "x"]
            )
        case 2:
            entry["data_offsets"] = rng.choice([[0, 0], [0, 2**62], [-1, 4], [4, 0], [0, len(data)], "x"])
        case 3:
            del header[name]
        case 4:
            header[rng.choice([*header, "new", "", "a" * 5000])] = header.pop(name)
    return joined(header, data)


def _without_a_tensor(content: bytes, rng: random.Random) -> bytes:
    """Its data goes too, so that safetensors finds nothing wrong."""
    header, data = parts(content)
    name = rng.choice([key for key in header if key != "__metadata__"])
    start, end = header.pop(name)["data_offsets"]
    for entry in header.values():
        if "data_offsets" in entry and entry["data_offsets"][0] >= end:
            entry["data_offsets"] = [offset - (end - start) for offset in entry["data_offsets"]]
    del data[start:end]
    return joined(header, data)


def _numbers(content: bytes, rng: random.Random) -> bytes:
    """Other values in a tensor, of its own type."""
    header, data = parts(content)
    entry = header[rng.choice([key for key in header if key != "__metadata__"])]
    start, end = entry["data_offsets"]
    if entry["dtype"] == "F32":
        value = struct.pack("<f", rng.choice(NUMBERS))
    elif entry["dtype"] == "I32":
        value = struct.pack("<i", rng.choice([0, 1, -1, 5, 2**31 - 1, -(2**31)]))
    else:
        value = rng.randbytes(1)
    place = start + len(value) * rng.randrange(max((end - start) // len(value), 1))
    data[place : place + len(value)] = value
    return joined(header, data)


def _said(content: bytes, rng: random.Random) -> bytes:
    """One value of our own header, at any depth, is another, missing, or under another name."""
    header, data = parts(content)
    said = json.loads(header["__metadata__"]["ssvi"])
    holder: Any = said
    while True:
        key = rng.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
        if not isinstance(holder[key], dict | list) or not holder[key] or rng.random() < 0.2:
            break
        holder = holder[key]
    match rng.randrange(6):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[rng.choice([*holder, "new", ""])] = holder.pop(key)
        case 2 if type(holder[key]) in (int, float):
            holder[key] = holder[key] * rng.choice([-1, 2, 1000, 10**6, 10**9, 10**15])
        case _:
            holder[key] = copy.deepcopy(rng.choice(HOSTILE))
    header["__metadata__"]["ssvi"] = json.dumps(said)
    return joined(header, data)


def _odd_json(content: bytes, rng: random.Random) -> bytes:
    """Duplicate keys, deep nesting, what is not UTF-8, and JSON that is no object."""
    header, data = parts(content)
    said = header["__metadata__"]["ssvi"]
    depth = rng.choice([10, 900, 5000, 100_000])
    texts = [
        said[:-1] + ', "members": 3, "members": 1000000000}', said[:-1] + ', "recipe": ' + "[" * depth + "]" * depth + "}",
        "[" * depth, '{"a":' * depth, "[]", "3", '"x"', "null", "", said + said, said[: rng.randrange(len(said))],
        '{"format": 3}', '{"format": [3]}', '{"format": 3, "format": {}}', said.replace("3", "1" * 5000, 1),
    ]  # fmt: skip
    header["__metadata__"]["ssvi"] = rng.choice(texts)
    whole = joined(header, data)
    return rng.choice([whole, whole, whole.replace(b"ssvi", b"ss\xff\xfe", 1), whole.replace(b"ssvi", b"ss\\ud800", 1)])


MUTATIONS: list[Callable[[bytes, random.Random], bytes]] = [
    _flip, _cut, _insert, _lie_about_the_length, _tensor_entry, _without_a_tensor, _numbers, _numbers, _said, _said, _said,
    _said, _odd_json,
]  # fmt: skip

"""Rules of the project itself: memory, public names, and documentation that runs."""

import re
from pathlib import Path

import pytest
import torch
from readme import quick_start

import ssvi
from ssvi.data import load
from ssvi.nn.models import resnet18

ROOT = Path(__file__).parent.parent


def test_public_names_exist_and_are_documented():
    for name in ssvi.__all__:
        assert getattr(ssvi, name).__doc__, name
    assert set(ssvi.__all__) <= set(dir(ssvi))


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'to_bbn'"):
        ssvi.to_bbn  # noqa: B018 - the access is the test


def training_bytes(bnn: torch.nn.Module) -> int:
    """Parameters, gradients, momentum and indices after a step of SGD, by the tensors that are there."""
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.01, momentum=0.9)
    loss = ssvi.ELBO(bnn, train_size=100)(bnn(torch.randn(2, 3, 32, 32)).square().mean())
    loss.backward()
    optimizer.step()
    tensors = list(bnn.parameters())
    tensors += [p.grad for p in bnn.parameters()] + [layer.index for _, layer in ssvi.layers(bnn)]
    tensors += [s["momentum_buffer"] for s in optimizer.state.values()]
    return sum(t.numel() * t.element_size() for t in tensors)


def test_memory_of_resnet18_is_a_fourteenth_of_dense_vi():
    net = resnet18()
    sparse = training_bytes(ssvi.to_bnn(net, 0.05, keep_dense=("conv1",)))
    weights = sum(p.numel() for p in net.parameters() if p.dim() > 1)
    rest = sum(p.numel() for p in net.parameters() if p.dim() == 1)
    dense = 4 * 3 * (2 * weights + rest)  # mu, rho and the rest, each with gradient and momentum, and no index
    assert sparse <= dense / 14


def python_blocks(text: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text, re.S)


def test_the_quick_start_of_the_readme_runs_to_a_good_result():
    """On the embedded digits, with the defaults of the library."""
    torch.manual_seed(0)
    digits = load("digits")
    train_set = torch.utils.data.TensorDataset(digits.normalise(digits.train.x), digits.train.y)
    names = {"images": digits.normalise(digits.test.x), "train_set": train_set, "epochs": 8}
    exec(quick_start(), names)
    probs = names["probs"]
    assert torch.allclose(probs.sum(-1), torch.ones(len(probs)))
    assert (probs.argmax(-1) == digits.test.y).double().mean() > 0.96
    assert -probs[range(len(probs)), digits.test.y].log().mean() < 0.15
    sparse = [layer for _, layer in ssvi.layers(names["bnn"]) if layer.density < 1]
    assert sum(len(layer.mu) for layer in sparse) == round(0.05 * sum(layer.posterior.d for layer in sparse))
    assert names["subspace"].t > 0


RUN_WITH_THE_SITE = "\n<!-- check\n"
"""What the tutorials and other pages have that docs/tools/tutorials.py runs (tests/docs/test_tutorials.py)."""
DOCS = [p for p in sorted((ROOT / "docs").rglob("*.md")) if python_blocks(p.read_text())]
DOCS = [p for p in DOCS if RUN_WITH_THE_SITE not in p.read_text()]


@pytest.mark.parametrize("path", DOCS, ids=lambda p: p.name)
def test_the_python_of_the_docs_runs(path):
    """Each page is a program; what it claims, it asserts."""
    program = "\n".join(python_blocks(path.read_text()))
    assert "assert " in program
    exec(program, {})

"""A convolution with the BatchNorm behind it: folded in prediction, two calls wherever the layer's output is observed."""

import copy
from contextlib import nullcontext

import pytest
import torch
from torch import nn

import ssvi
from ssvi import kernels
from ssvi.kernels import native
from ssvi.nn.conv_norm import conv_norm, conv_norm_pair
from ssvi.nn.models import BasicBlock

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))


def block() -> tuple[nn.Module, torch.Tensor]:
    """A residual block with statistics that are no longer those of the start, and an input."""
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(BasicBlock(8, 16, stride=2), 0.1)
    x = torch.randn(4, 8, 8, 8)
    for _ in range(3):
        bnn(x)
    return bnn.eval(), x


def operators(bnn: nn.Module, x: torch.Tensor) -> list[str]:
    """The names of our operators that one call runs."""
    with torch.profiler.profile() as profile:
        bnn(x)
    return [event.key for event in profile.key_averages() if event.key.startswith("ssvi::")]


@torch.no_grad()
def test_a_norm_behind_a_layer_with_one_theta_costs_no_pass_and_changes_no_number():
    bnn, x = block()
    with ssvi.at_sample(bnn):
        folded = bnn(x)
        assert "ssvi::sparse_fixed_norm" in operators(bnn, x)
        assert "ssvi::batch_norm_apply" not in operators(bnn, x)
        with kernels.use("dense"):
            torch.testing.assert_close(folded, bnn(x), rtol=1e-4, atol=1e-5)
            assert operators(bnn, x) == []


@pytest.mark.parametrize("observer", ["gradient", "training", "random", "hook", "hook of the norm", "subclass"])
def test_the_layer_runs_alone_where_its_output_is_observed(observer):
    bnn, x = block()
    layers, norms = (bnn.conv1, bnn.conv2, bnn.shortcut[0]), (bnn.bn1, bnn.bn2, bnn.shortcut[1])
    calls = []
    if observer == "training":
        bnn.train()
    if observer.startswith("hook"):
        for layer in layers if observer == "hook" else norms:
            layer.register_forward_hook(lambda *_: calls.append(1))
    if observer == "subclass":
        for layer in layers:
            layer.__class__ = type("Own", (type(layer),), {})
    with torch.set_grad_enabled(observer == "gradient"), ssvi.at_sample(bnn) if observer != "random" else nullcontext():
        assert "ssvi::sparse_fixed_norm" not in operators(bnn, x)
    assert len(calls) == (3 if observer.startswith("hook") else 0)


@pytest.mark.filterwarnings("ignore")
@torch.no_grad()
def test_a_compiled_network_predicts_the_same_numbers():
    torch._dynamo.reset()
    bnn, x = block()
    with ssvi.at_mean(bnn):
        torch.testing.assert_close(torch.compile(bnn, backend="aot_eager")(x), bnn(x))


def test_a_hook_of_the_whole_shortcut_is_called():
    bnn, x = block()
    calls = []
    bnn.shortcut.register_forward_hook(lambda *_: calls.append(1))
    with ssvi.at_sample(bnn):
        bnn(x)
    assert calls == [1]


def note_calls(module: nn.Module, how: str, calls: list[nn.Module]) -> None:
    """Have the calls of a module noted, in one of five ways."""
    if how == "own forward":
        forward = module.forward
        module.forward = lambda x: (calls.append(module), forward(x))[1]
    else:
        getattr(module, f"register_{how}")(lambda module, *_: calls.append(module))


WAYS = ["forward_hook", "forward_pre_hook", "full_backward_hook", "full_backward_pre_hook", "own forward"]


@pytest.mark.parametrize("kernel", ["auto", "dense"])
@pytest.mark.parametrize("observer", WAYS)
@pytest.mark.parametrize("of", ["layers", "norms"])
def test_each_call_in_training_is_observed_and_no_number_changes(of, observer, kernel):
    bnn, x = block()
    bnn.train()
    results = []
    for observes in (False, True):
        calls, module = [], copy.deepcopy(bnn)
        layers, norms = (module.conv1, module.conv2, module.shortcut[0]), (module.bn1, module.bn2, module.shortcut[1])
        observed = layers if of == "layers" else norms
        for part in observed if observes else ():
            note_calls(part, observer, calls)
        inputs = x.clone().requires_grad_()
        with kernels.use(kernel), ssvi.at_mean(module):
            z = module(inputs)
            z.square().sum().backward()
        assert {id(part) for part in calls} == {id(part) for part in observed if observes}
        results.append([z.detach(), inputs.grad, *(p.grad for p in module.parameters() if p.grad is not None)])
    for plain, seen in zip(*results, strict=True):
        torch.testing.assert_close(seen, plain, rtol=1e-3, atol=1e-4)


def test_an_output_that_a_hook_has_kept_does_not_change():
    norm, x, kept = nn.BatchNorm2d(4), torch.randn(3, 4, 5, 5), []
    norm.register_forward_hook(lambda _norm, _inputs, y: kept.append((y, y.clone())))
    kernels.batch_norm(norm, x, residual=torch.randn_like(x), relu=True)
    assert torch.equal(*kept[0])


@pytest.mark.parametrize("training", [True, False])
def test_a_norm_of_other_channels_is_refused_by_torch(training):
    bnn = ssvi.to_bnn(nn.Conv2d(4, 16, 3), 0.1)
    norm, x = nn.BatchNorm2d(4).train(training), torch.randn(2, 4, 6, 6)
    with torch.no_grad(), ssvi.at_mean(bnn), pytest.raises(RuntimeError, match="should contain 16 elements not 4"):
        conv_norm(bnn, norm, x)


@pytest.mark.parametrize("training", [True, False])
def test_a_residual_in_half_precision_is_added(training):
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(nn.ModuleList([nn.Conv2d(4, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)]), 0.3)
    first, second = nn.BatchNorm2d(8).train(training), nn.BatchNorm2d(8).train(training)
    x, residual = torch.randn(2, 4, 6, 6), torch.randn(2, 8, 6, 6)

    def run(residual: torch.Tensor) -> list[torch.Tensor]:
        with torch.no_grad(), ssvi.at_mean(bnn):
            pair = conv_norm_pair(bnn[0], first, bnn[1], second, x, residual=lambda: residual)
            return [conv_norm(bnn[0], first, x, residual=residual), pair]

    for half, full in zip(run(residual.half()), run(residual.half().float()), strict=True):
        torch.testing.assert_close(half, full)

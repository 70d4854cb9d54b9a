"""Values of threads: pins, statistics and modes of a network that several threads share."""

import copy
import pickle
import threading

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import ssvi
from ssvi.nn.by_thread import ByThread
from ssvi.nn.eval_mode import in_eval_mode
from ssvi.nn.random_tensor import is_random


def in_another_thread(function):
    """What `function` returns in a thread of its own."""
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


def test_each_thread_has_its_own_value_and_a_copy_has_none():
    values = ByThread()
    values.set(1)
    assert in_another_thread(values.get) is None
    in_another_thread(lambda: values.set(2))
    assert (values.get(), values.newest) == (1, 2)
    assert copy.copy(values).get() is pickle.loads(pickle.dumps(values)).get() is None
    values.set(None)
    assert values.get() is None
    assert values.any()


def test_a_pin_belongs_to_its_thread():
    bnn = ssvi.to_bnn(nn.Linear(4, 3), 0.5)
    with ssvi.at_mean(bnn):
        assert in_another_thread(lambda: is_random(bnn))
        assert not is_random(bnn)
    with ssvi.at_sample(bnn):
        assert in_another_thread(lambda: is_random(bnn))


class Nested(torch.autograd.Function):
    """A backward pass inside a backward pass, so deep that torch goes on in a thread of its own."""

    @staticmethod
    def forward(ctx, x, depth, innermost):
        ctx.depth, ctx.innermost = depth, innermost
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        with torch.enable_grad():
            if ctx.depth:
                Nested.apply(torch.ones(1, requires_grad=True), ctx.depth - 1, ctx.innermost).backward()
            else:
                ctx.innermost()
        return grad, None, None


def test_torchs_own_threads_in_a_backward_pass_have_the_pin_of_the_thread_that_called_it():
    bnn, threads = ssvi.to_bnn(nn.Linear(4, 3), 0.5, sigma_init=1.0), []
    x = torch.ones(1, requires_grad=True)
    seen = []

    def look():
        threads.append(threading.get_ident())
        seen.append(bnn.posterior.theta)

    with ssvi.at_sample(bnn):
        Nested.apply(x, 70, look).backward()
        assert seen[0] is bnn.posterior.theta
    assert threads[0] != threading.get_ident()


def test_activation_checkpointing_computes_a_pinned_layer_again_at_the_same_theta():
    bnn = ssvi.to_bnn(nn.Linear(4, 3), 0.5, sigma_init=1.0)
    x = torch.randn(5, 4, requires_grad=True)
    with ssvi.at_sample(bnn):
        (again,) = torch.autograd.grad(checkpoint(bnn, x, use_reentrant=False).square().sum(), x)
        (plain,) = torch.autograd.grad(bnn(x).square().sum(), x)
    assert torch.equal(again, plain)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_compiled_network_follows_the_pins_in_one_graph(backend):
    bnn = ssvi.to_bnn(nn.Linear(4, 3), 0.5, sigma_init=1.0)
    compiled, x = torch.compile(bnn, fullgraph=True, backend=backend), torch.randn(5, 4)
    with torch.no_grad():
        for pin in (ssvi.at_mean, ssvi.at_sample, ssvi.at_sample):
            with pin(bnn):
                torch.testing.assert_close(compiled(x), bnn(x))
        assert not torch.allclose(compiled(x), compiled(x))  # random again


def test_modules_get_their_own_modes_back_also_after_an_error():
    net = nn.Sequential(nn.Dropout(), nn.BatchNorm1d(3).eval(), nn.Linear(3, 3))
    modes = [module.training for module in net.modules()]
    with in_eval_mode(net):
        assert not any(module.training for module in net.modules())
    with pytest.raises(ZeroDivisionError), in_eval_mode(net):
        raise ZeroDivisionError
    assert [module.training for module in net.modules()] == modes


def test_the_last_of_several_blocks_gives_the_modes_back():
    net = nn.Sequential(nn.Dropout(), nn.Linear(3, 3))
    first, second = in_eval_mode(net), in_eval_mode(net[0])
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert [module.training for module in net.modules()] == [True, False, True]
    second.__exit__(None, None, None)
    assert net[0].training


def with_statistics():
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)), 0.5, sigma_init=0.3)
    ssvi.fit_batchnorm(bnn, [torch.randn(64, 6) + 1], 3)
    return bnn.eval(), torch.randn(5, 6)


def test_the_statistics_of_a_theta_belong_to_its_thread():
    bnn, _ = with_statistics()
    norm = bnn[1]
    running = norm.running_mean
    with ssvi.at_mean(bnn):
        assert torch.equal(norm.running_mean, norm.per_theta.mean[0])
        assert in_another_thread(lambda: norm.running_mean) is running
        assert bnn.train()[1].running_mean is running  # in training a norm changes its own
    assert norm.running_mean is running
    assert type(norm) is nn.BatchNorm1d


@pytest.mark.parametrize("clone", [copy.deepcopy, copy.copy, lambda net: pickle.loads(pickle.dumps(net))])
def test_a_copy_made_inside_at_mean_is_an_ordinary_network(clone):
    bnn, x = with_statistics()
    with ssvi.at_mean(bnn):
        twin, norm = clone(bnn), clone(bnn[1])
    assert type(norm) is nn.BatchNorm1d
    assert type(twin[1]) is nn.BatchNorm1d
    assert torch.equal(norm.running_mean, bnn[1].running_mean)
    assert torch.equal(ssvi.predict(twin, x, 3), ssvi.predict(bnn, x, 3))

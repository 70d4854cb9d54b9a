"""One network, many threads: every prediction is that of a single thread, and the network stays as it was."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread

import pytest
import torch
from torch import nn

import ssvi
from ssvi.nn.random_tensor import is_random

THREADS, CALLS = 8, 48


def network():
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 25, 3), nn.Dropout(0.5)
    )
    return ssvi.to_bnn(net, 0.5, sigma_init=0.3), torch.randn(6, 1, 5, 5)


def in_threads(function):
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(function, range(CALLS)))


def check_that_it_is_as_before(bnn, state, training):
    assert is_random(bnn)
    assert all(module.training == training for module in bnn.modules())
    assert all(torch.equal(value, state[name]) for name, value in bnn.state_dict().items())
    assert type(bnn[1]) is nn.BatchNorm2d


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("fitted", [False, True])
def test_eight_threads_predict_what_one_predicts(fitted, training):
    bnn, x = network()
    if fitted:
        ssvi.fit_batchnorm(bnn, [torch.randn(30, 1, 5, 5)], samples=8)
    bnn.train(training)
    state = {name: value.clone() for name, value in bnn.state_dict().items()}

    def one(call):
        if fitted:  # theta_0, theta_1, ... with statistics of their own
            return ssvi.predict_samples(bnn, x, samples=1 + call % 8)
        return ssvi.predict_samples(bnn, x, generator=torch.Generator().manual_seed(call))

    alone = [one(call) for call in range(CALLS)]
    assert all(torch.equal(a, b) for a, b in zip(alone, in_threads(one), strict=True))
    check_that_it_is_as_before(bnn, state, training)


def test_local_noise_and_errors_in_threads_leave_the_network_as_it_was():
    bnn, x = network()
    state = {name: value.clone() for name, value in bnn.state_dict().items()}

    def one(call):
        if call % 2:
            return ssvi.predict(bnn, x, local=True)
        with pytest.raises(ValueError, match="channels"):
            ssvi.predict(bnn, x.expand(6, 3, 5, 5))
        return x.new_ones(1, 3) / 3

    for probs in in_threads(one):
        torch.testing.assert_close(probs.sum(-1), torch.ones(len(probs)))
    check_that_it_is_as_before(bnn, state, True)


def test_threads_at_the_mean_and_at_samples_do_not_meet():
    bnn, x = network()
    ssvi.fit_batchnorm(bnn, [torch.randn(30, 1, 5, 5)], samples=8)
    bnn.eval()

    def one(call):
        if call % 2:
            return ssvi.predict(bnn, x)
        with ssvi.at_mean(bnn), torch.no_grad():
            return bnn(x).softmax(-1)

    alone = [one(call) for call in range(CALLS)]
    assert all(torch.equal(a, b) for a, b in zip(alone, in_threads(one), strict=True))


def test_training_in_one_thread_is_not_disturbed_by_a_prediction_in_another():
    """The prediction begins before the step and ends inside it."""
    bnn, x = network()
    optimizer = ssvi.IVON(bnn.eval(), lr=0.1, train_size=100)
    begun, step_begun, predicted = Event(), Event(), []

    def link(y):
        begun.set()
        step_begun.wait()
        return y

    def seeded(link):
        predicted.append(ssvi.predict(bnn, x, samples=1, link=link, generator=torch.Generator().manual_seed(0)))

    thread = Thread(target=seeded, args=(link,))
    thread.start()
    begun.wait()
    with optimizer.sampled():
        before = bnn(x)
        step_begun.set()
        thread.join()
        assert torch.equal(bnn(x), before)
        before.sum().backward()
    assert is_random(bnn)
    seeded("identity")
    assert torch.equal(*predicted)
    optimizer.step()


def test_threads_share_a_compiled_network():
    bnn, x = network()
    compiled = torch.compile(bnn.eval(), backend="eager")

    def one(call):
        return ssvi.predict_samples(compiled, x, samples=2, generator=torch.Generator().manual_seed(call))

    alone = [one(call) for call in range(CALLS)]
    assert all(torch.equal(a, b) for a, b in zip(alone, in_threads(one), strict=True))

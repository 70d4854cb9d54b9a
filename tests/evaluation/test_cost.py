"""What a network costs, beside dense VI."""

import pytest
import torch
from small_runs import finished
from torch import nn

import ssvi
from ssvi import flops
from ssvi.evaluation import FinishedRun
from ssvi.evaluation.cost import cost, weights
from ssvi.inference.predict import Mixture
from ssvi.nn.layers import posteriors


def test_cost_beside_dense_vi():
    sparse, dense, point = (
        cost(FinishedRun(finished(method)), samples=5) for method in ("ssvi", "vi", "deterministic")
    )
    assert dense.training_flops == dense.training_flops_dense_vi == sparse.training_flops_dense_vi
    assert dense.inference_flops == dense.inference_flops_dense_vi == sparse.inference_flops_dense_vi
    assert sparse.training_flops < dense.training_flops / 4
    assert sparse.inference_flops < dense.inference_flops / 4
    assert point.training_flops * 2 == point.training_flops_dense_vi == dense.training_flops
    assert point.inference_flops * 5 == dense.inference_flops
    assert sparse.weights == dense.live_weights == point.live_weights
    assert sparse.sparsity == pytest.approx(0.95, abs=0.001)


@pytest.mark.parametrize("method", ["ssvi", "vi", "rigl", "deterministic", "snr-prune", "ensemble", "vd", "sbp"])
def test_dense_vi_has_the_same_bytes_as_reference_and_as_a_run(method):
    dense = cost(FinishedRun(finished("vi")), samples=5)
    assert dense.memory_bytes == dense.memory_bytes_dense_vi
    assert cost(FinishedRun(finished(method)), samples=5).memory_bytes_dense_vi == dense.memory_bytes


def test_without_statistics_of_single_thetas_too():
    runs = [FinishedRun(finished(method, batchnorm_batches=0)) for method in ("ssvi", "vi", "rigl")]
    sparse, dense, point = (cost(run, samples=5) for run in runs)
    assert sparse.memory_bytes_dense_vi == dense.memory_bytes == point.memory_bytes_dense_vi
    rest = sum(tensor.numel() * tensor.element_size() for name, tensor in runs[1].net.state_dict().items()
               if ".posterior." not in name)  # fmt: skip
    posterior = sum(4 * (2 * p.d + 1) for p in posteriors(runs[1].net).values())  # mu, rho, and the start of sigma
    assert dense.memory_bytes == rest + posterior


def test_an_index_counts_where_it_says_something(run):
    live = {name: 4 * (3 * p.s + 1) if p.s < p.d else 4 * (2 * p.d + 1) for name, p in posteriors(run.net).items()}
    other = sum(t.numel() * t.element_size() for name, t in run.net.state_dict().items() if ".posterior." not in name)
    assert cost(run, samples=5).memory_bytes == sum(live.values()) + other


def test_live_weights_are_those_of_the_layers(run):
    result = cost(run, samples=5)
    assert result.live_weights == sum(p.s for p in posteriors(run.net).values())
    assert result.inference_flops == flops.inference(run.net, torch.zeros(1, 1, 8, 8), 5)


def test_time_and_memory_are_those_of_the_epochs(run):
    result, epochs = cost(run, samples=5), run.folder.metrics()
    assert result.training_seconds == sum(line.seconds for line in epochs)
    assert result.training_flops == sum(line.flops for line in epochs)
    assert result.peak_memory_bytes == max(line.peak_memory_bytes for line in epochs)


def test_weights_of_a_network_that_is_sparse_in_part():
    net = ssvi.to_bnn(nn.Sequential(nn.Linear(10, 10), nn.Linear(10, 4), nn.Linear(4, 5)), 0.1, skip=("2",))
    sparse = sum(p.s for p in posteriors(net).values())
    counted = weights(net)
    assert (counted.networks, counted.weights, counted.live_weights) == (1, 160, sparse + 20)
    assert counted.sparsity == pytest.approx(1 - sparse / 140)
    assert counted.sparsity_of_all == pytest.approx(1 - (sparse + 20) / 160)


def test_shared_weights_count_once():
    linear = nn.Linear(6, 6)
    assert weights(nn.Sequential(linear, nn.ReLU(), linear)).weights == 36
    other = nn.Linear(6, 6)
    other.weight = linear.weight
    assert weights(nn.Sequential(linear, other)).weights == 36


def test_a_mixture_has_the_mean_of_its_networks():
    counted = weights(Mixture([nn.Linear(3, 4), nn.Linear(3, 4)]))
    assert (counted.networks, counted.weights, counted.live_weights) == (2, 12, 12.0)

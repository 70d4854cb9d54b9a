"""Every method through the same loop, run folder, resume, model file and evaluation."""

from pathlib import Path

import pytest
import torch
from small_runs import train

import ssvi
from ssvi.evaluation import FinishedRun, evaluate_run
from ssvi.inference.predict import Mixture
from ssvi.methods import NAMES, about
from ssvi.methods.states import state_gap
from ssvi.nn import models
from ssvi.nn.conversion_rules import convertible
from ssvi.nn.random_tensor import is_random
from ssvi.training import model_file
from ssvi.training.recipe import Recipe, RecipeError, from_mapping
from ssvi.training.run import finish
from ssvi.training.run_folder import RunError, RunFolder
from ssvi.training.start import resume, start

SMALL = {
    "epochs": 4, "width": 8, "batch_size": 128, "every": 3, "density": 0.2, "lr": 0.1, "members": 2, "burn_in": 0.5,
    "finetune": 0.5, "threads": 1,
}  # fmt: skip

NATURAL = {"lr": 0.8, "prior_sigma": 1.0, "h0": 0.5}
OWN = {  # what makes a method learn in four epochs, and remove something
    "ssvi": NATURAL,
    "ssvi-ensemble": NATURAL,
    "ivon": NATURAL,
    "vd": {"threshold": -3.0},
    "group-vd": {"threshold": -8.95},
    "sbp": {"threshold": 200.0},
    "mbnn": {"lam": 0.4},
}


def small(method: str, **changes: object) -> Recipe:
    return from_mapping(SMALL | {"method": method} | OWN.get(method, {}) | changes)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished run of a method, trained once."""
    root, folders = tmp_path_factory.mktemp("whole"), {}

    def run(method: str) -> Path:
        if method not in folders:
            folders[method] = root / method
            train(small(method), folders[method])
        return folders[method]

    return run


@pytest.mark.parametrize("method", NAMES)
def test_it_learns_and_its_file_says_what_the_run_said(method, whole):
    folder = whole(method)
    result = RunFolder(folder).result
    assert result["accuracy"] > 0.3, "chance is 0.1, and four epochs of a tiny network are not much more"
    run = FinishedRun(folder)
    again = ssvi.evaluate(run.net, run.batches(run.test), 5)
    assert again.nll == pytest.approx(result["nll"], rel=1e-5)
    assert isinstance(run.net, Mixture) == about(method).keeps_states


@pytest.mark.parametrize("method", NAMES)
@pytest.mark.parametrize("at", [7, 22, 38])
def test_it_goes_on_bit_for_bit(method, at, whole, tmp_path):
    """Interrupted in the first, third and last epoch: before and after pruning, states and restarts."""
    folder = tmp_path / "run"
    run = start(small(method), folder)
    run.train(lambda numbers: run.stop("a test") if numbers.step == at else None)
    assert not run.done
    run, damaged = resume(folder)
    assert damaged == []
    run.train()
    finish(run)
    expected, resumed = (model_file.read(f / "model.safetensors")[1] for f in (whole(method), folder))
    assert expected.keys() == resumed.keys()
    assert all(torch.equal(expected[name], resumed[name]) for name in expected)
    states = [sorted(file.name for file in (f / "states").glob("*")) for f in (whole(method), folder)]
    assert states[0] == states[1]


@pytest.mark.parametrize("method", [name for name in NAMES if about(name).aims_at_density])
def test_the_network_is_exactly_at_its_target(method, whole):
    net = model_file.load(whole(method))
    for member in net.members if isinstance(net, Mixture) else [net]:
        posteriors = {name: layer.posterior for name, layer in ssvi.layers(member)}
        assert posteriors.pop("0").density == 1, "the first layer is kept dense"
        assert sum(p.s for p in posteriors.values()) == round(0.2 * sum(p.d for p in posteriors.values()))


def test_dense_ivon_has_every_weight(whole):
    """It is the reference of SSVI at density 1: the same settings but for those of the support."""
    posteriors = [layer.posterior for _, layer in ssvi.layers(model_file.load(whole("ivon")))]
    assert len(posteriors) == 4
    assert all(p.s == p.d for p in posteriors)
    own, sparse = small("ivon").values, small("ssvi").values
    assert own.keys() < sparse.keys()
    assert {name for name in own if own[name] != sparse[name]} == {"method"}


@pytest.mark.parametrize("method", ["snr-finetune", "aeb"])
def test_one_epoch_is_enough_to_reach_the_target(method, tmp_path):
    net = model_file.load(train(small(method, epochs=1, members=1), tmp_path / "run"))
    net = net.members[0] if isinstance(net, Mixture) else net
    sparse = [layer.posterior for name, layer in ssvi.layers(net) if name != "0"]
    assert sum(p.s for p in sparse) == round(0.2 * sum(p.d for p in sparse))


@pytest.mark.parametrize("method", NAMES)
def test_cost_is_counted_for_all(method, whole):
    cost = evaluate_run(FinishedRun(whole(method)), samples=2).cost
    removes = about(method).unit != "none"
    assert cost.unit == about(method).unit
    assert (cost.live_weights < cost.weights) == removes
    assert cost.sparsity_of_all == pytest.approx(1 - cost.live_weights / cost.weights)
    assert cost.training_flops == sum(line.flops for line in RunFolder(whole(method)).metrics())
    assert cost.peak_memory_bytes > 1e8


PASSES = {  # forward and backward passes of a dense step, in units of one forward pass
    "deterministic": 3, "ensemble": 3, "ivon": 3, "vi": 6, "snr-prune": 6, "vd": 6, "group-vd": 6, "sbp": 3,
}  # fmt: skip


@pytest.mark.parametrize("method", PASSES)
def test_flops_of_dense_training(method, whole):
    run = FinishedRun(whole(method))
    plain = models.lenet(size=8, width=8)
    forward = ssvi.flops.inference(plain, torch.zeros(1, 1, 8, 8))
    lines = RunFolder(whole(method)).metrics()
    seen = lines[-1].step * run.recipe.batch_size
    assert sum(line.flops for line in lines) == PASSES[method] * forward * seen


def test_flops_of_sparse_methods_are_in_order(whole):
    flops = {m: sum(line.flops for line in RunFolder(whole(m)).metrics()) for m in NAMES}
    assert flops["static"] == flops["set"] < flops["rigl"] < flops["deterministic"]
    assert flops["static"] < flops["aeb"] < flops["deterministic"]
    assert flops["rigl"] == flops["ssvi"] < flops["ssvi-lrt"] < flops["snr-finetune"] < flops["vi"]


def test_members_of_an_ensemble_differ_and_states_of_a_chain_move(whole):
    for method in ("ssvi-ensemble", "ensemble", "aeb", "mbnn"):
        net = model_file.load(whole(method))
        assert len(net.members) == 2
        x = torch.rand(5, 1, 8, 8)
        with ssvi.at_sample(net):
            drawn, together = net.each(x), net(x)
        assert not torch.equal(drawn[0], drawn[1])
        torch.testing.assert_close(together.softmax(-1), drawn.mean(0))


def test_what_is_random_in_prediction(whole):
    random = {m for m in NAMES if is_random(model_file.load(whole(m)))}
    assert random == {
        "ssvi",
        "ssvi-lrt",
        "ssvi-ensemble",
        "vi",
        "ivon",
        "snr-prune",
        "snr-finetune",
        "vd",
        "group-vd",
        "sbp",
    }


def test_a_chain_needs_epochs_for_its_states():
    assert state_gap(small("aeb").settings, epochs=4) == 1
    with pytest.raises(RecipeError, match=r"epochs=4 with burn_in=0.5 .* members=3"):
        small("aeb", members=3)
    assert small("ensemble", members=3).all_epochs == 12


def test_samplers_refuse_several_processes(monkeypatch, tmp_path):
    monkeypatch.setattr("ssvi.inference.distributed.ranks", lambda: 2)
    with pytest.raises(RunError, match="one process"):
        start(small("mbnn"), tmp_path / "run")


def test_aeb_keeps_the_layers_dense_that_a_pattern_names(tmp_path):
    run = start(small("aeb", keep_dense=("first", "1*")), tmp_path / "run")
    layers = list(convertible(run.net))
    assert list(run.training.loss.priors) == [name for name in layers[1:] if not name.startswith("1")] != []
    with pytest.raises(ValueError, match="keep_dense='conv7' matches no layer: there are "):
        start(small("aeb", keep_dense=("conv7",)), tmp_path / "other")

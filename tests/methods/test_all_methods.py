"""Every method through the same loop, run folder, resume, model file and evaluation."""

import json
from pathlib import Path

import pytest
import torch

import ssvi
from ssvi.evaluation import FinishedRun, evaluate_run
from ssvi.inference.mixture import Mixture
from ssvi.methods.catalogue import METHODS
from ssvi.nn.random_tensor import is_random
from ssvi.training import model_file as saving
from ssvi.training import recipe as config
from ssvi.training import run as train
from ssvi.training.recipe import RecipeError
from ssvi.training.run_folder import RunError, RunFolder

SMALL = config.Recipe(
    epochs=4, width=8, batch_size=128, every=3, density=0.2, lr=0.1, members=2, burn_in=0.5, finetune=0.5, threads=1
)


def quiet(numbers: dict) -> None:
    pass


def recipe(method: str) -> config.Recipe:
    dial = {
        "vd": {"threshold": "-3"},
        "group-vd": {"threshold": "-8.95"},
        "sbp": {"threshold": "200"},
        "mbnn": {"lam": 0.4},
    }
    return SMALL.replace(method=method, **dial.get(method, {}))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished run of a method, trained once."""
    root, made = tmp_path_factory.mktemp("whole"), {}

    def run(method: str) -> Path:
        if method not in made:
            made[method] = root / method
            trained = train.start(recipe(method), made[method])
            trained.train(quiet, quiet)
            trained.finish()
        return made[method]

    return run


@pytest.mark.parametrize("method", METHODS)
def test_it_learns_and_its_file_says_what_the_run_said(method, whole):
    folder = whole(method)
    result = json.loads((folder / "result.json").read_text())
    assert result["accuracy"] > 0.3, "chance is 0.1, and four epochs of a tiny network are not much more"
    run = FinishedRun(folder)
    again = ssvi.evaluate(run.net, run.batches(run.test), 5)
    assert again.nll == pytest.approx(result["nll"], rel=1e-5)
    assert isinstance(run.net, Mixture) == METHODS[method].states


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("at", [7, 22, 38])
def test_it_goes_on_bit_for_bit(method, at, whole, tmp_path):
    """Interrupted in the first, third and last epoch: before and after pruning, states and restarts."""
    folder = tmp_path / "run"
    run = train.start(recipe(method), folder)

    def stop(numbers: dict) -> None:
        if numbers["step"] == at:
            run.interrupted = "a test"

    run.train(stop, quiet)
    assert not run.done
    run, damaged = train.resume(folder)
    assert damaged == []
    run.train(quiet, quiet)
    run.finish()
    expected, found = (saving.read(f / "model.safetensors")[1] for f in (whole(method), folder))
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    states = [sorted(file.name for file in (f / "states").glob("*")) for f in (whole(method), folder)]
    assert states[0] == states[1]


@pytest.mark.parametrize("method", [name for name, facts in METHODS.items() if facts.targets])
def test_the_network_is_exactly_at_its_target(method, whole):
    net = saving.load(whole(method))
    for member in net.members if isinstance(net, Mixture) else [net]:
        posteriors = {name: layer.posterior for name, layer in ssvi.layers(member)}
        assert posteriors.pop("0").density == 1, "the first layer is kept dense"
        assert sum(p.s for p in posteriors.values()) == round(0.2 * sum(p.d for p in posteriors.values()))


@pytest.mark.parametrize("method", ["snr-finetune", "aeb"])
def test_one_epoch_is_enough_to_reach_the_target(method, tmp_path):
    run = train.start(recipe(method).replace(epochs=1, members=1), tmp_path / "run")
    run.train(quiet, quiet)
    run.finish()
    net = run.net.members[0] if isinstance(run.net, Mixture) else run.net
    sparse = [layer.posterior for name, layer in ssvi.layers(net) if name != "0"]
    assert sum(p.s for p in sparse) == round(0.2 * sum(p.d for p in sparse))


@pytest.mark.parametrize("method", METHODS)
def test_cost_is_counted_for_all(method, whole):
    cost = evaluate_run(FinishedRun(whole(method)), samples=2).cost
    removes = METHODS[method].unit != "none"
    assert cost.unit == METHODS[method].unit
    assert (cost.live_weights < cost.weights) == removes
    assert cost.sparsity_of_all == pytest.approx(1 - cost.live_weights / cost.weights)
    assert cost.training_flops == sum(line["flops"] for line in RunFolder(whole(method)).metrics())
    assert cost.peak_memory_bytes > 1e8


PASSES = {  # forward and backward passes of a dense step, in units of one forward pass (facts B4)
    "deterministic": 3, "ensemble": 3, "vi": 6, "snr-prune": 6, "vd": 6, "group-vd": 6, "sbp": 3,
}  # fmt: skip


@pytest.mark.parametrize("method", PASSES)
def test_flops_of_dense_training(method, whole):
    run = FinishedRun(whole(method))
    plain = ssvi.models.lenet(size=8, width=8)
    forward = ssvi.flops.inference(plain, torch.zeros(1, 1, 8, 8))
    lines = RunFolder(whole(method)).metrics()
    seen = lines[-1]["step"] * run.recipe.batch_size
    assert sum(line["flops"] for line in lines) == PASSES[method] * forward * seen


def test_flops_of_sparse_methods_are_in_order(whole):
    flops = {m: sum(line["flops"] for line in RunFolder(whole(m)).metrics()) for m in METHODS}
    assert flops["static"] < flops["set"] == flops["rigl"] < flops["deterministic"]
    assert flops["static"] < flops["aeb"] < flops["deterministic"]
    assert flops["rigl"] < flops["ssvi"] < flops["snr-finetune"] < flops["vi"]


def test_members_of_an_ensemble_differ_and_states_of_a_chain_move(whole):
    for method in ("ensemble", "aeb", "mbnn"):
        net = saving.load(whole(method))
        assert len(net.members) == 2
        x = torch.rand(5, 1, 8, 8)
        drawn = net.each(x)
        assert not torch.equal(drawn[0], drawn[1])
        torch.testing.assert_close(net(x).softmax(-1), drawn.mean(0))


def test_what_is_random_in_prediction(whole):
    random = {m for m in METHODS if is_random(saving.load(whole(m)))}
    assert random == {"ssvi", "vi", "snr-prune", "snr-finetune", "vd", "group-vd", "sbp"}


def test_a_chain_needs_epochs_for_its_states():
    assert SMALL.replace(method="aeb").state_gap == 1
    with pytest.raises(RecipeError, match=r"epochs=4 with burn_in=0.5 .* members=3"):
        SMALL.replace(method="aeb", members=3)
    assert SMALL.replace(method="ensemble", members=3).all_epochs == 12


def test_a_table_of_a_recipe_is_for_its_method_alone(tmp_path):
    file = tmp_path / "own.toml"
    file.write_text('lr = 0.5\n[vd]\nlr = 0.25\noptimizer = "adam"\n')
    assert config.load(file).lr == 0.5
    assert config.load(file, "vi").optimizer == "sgd"
    assert (config.load(file, "vd").lr, config.load(file, "vd").method) == (0.25, "vd")
    file.write_text("[vd]\nlearning_rate = 1\n")
    with pytest.raises(RecipeError, match="learning_rate"):
        config.load(file, "vd")
    file.write_text("[vdd]\nlr = 1\n")
    with pytest.raises(RecipeError, match="vdd"):
        config.load(file, "vd")


def test_samplers_refuse_several_processes(monkeypatch, tmp_path):
    monkeypatch.setattr("ssvi.inference.distributed.ranks", lambda: 2)
    with pytest.raises(RunError, match="one process"):
        train.start(SMALL.replace(method="mbnn"), tmp_path / "run")

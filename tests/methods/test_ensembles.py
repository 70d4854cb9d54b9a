"""Ensembles: every member is what its method trains, and predictions average over members and thetas."""

import pytest
import torch
from small_runs import OWN, finished, train

import ssvi
from ssvi.evaluation import FinishedRun, evaluate_run
from ssvi.inference.predict import Mixture, draw_probabilities, networks, samples_of_each
from ssvi.inference.thetas import member_seed
from ssvi.methods import NAMES, about, members
from ssvi.methods.base import begin
from ssvi.nn.layers import posteriors
from ssvi.nn.theta_statistics import fitted
from ssvi.training import model_file, recipe_files
from ssvi.training.start import resume, start

PAIRS = [(name, about(name).members_by) for name in NAMES if about(name).members_by]


def ensemble() -> FinishedRun:
    return FinishedRun(finished("ssvi-ensemble", members=2, **OWN["ssvi"]))


def test_two_ensembles():
    assert PAIRS == [("ssvi-ensemble", "ssvi"), ("ensemble", "deterministic")]


@pytest.mark.parametrize(("method", "members_by"), PAIRS)
def test_the_first_member_is_the_network_of_a_single_run_bit_for_bit(method, members_by):
    own = OWN.get(members_by, {})
    single = model_file.read(finished(members_by, **own) / "model.safetensors")[1]
    together = model_file.read(finished(method, members=2, **own) / "model.safetensors")[1]
    assert len(together) == 2 * len(single)
    assert all(torch.equal(tensor, together[f"members.0.{name}"]) for name, tensor in single.items())


def test_members_have_supports_of_their_own():
    first, second = (posteriors(member) for member in networks(ensemble().net))
    sparse = [name for name, p in first.items() if p.s < p.d]
    assert sparse
    for name in sparse:
        assert first[name].s == second[name].s
        shared = torch.isin(first[name].index, second[name].index).double().mean().item()
        assert shared < 0.5, "the same support would be 1, and independent ones share the density"


def test_the_second_member_starts_anew_and_not_from_the_first(tmp_path):
    """After the last epoch of a member all states are those of a fresh run but for the seed: steps, moments, updates."""
    recipe = recipe_files.load("digits", "ssvi-ensemble").replace(epochs=1, width=4, members=2, every=3, **OWN["ssvi"])
    run = start(recipe, tmp_path / "run")
    lr = run.training.scheduler.get_last_lr()
    run.train(on_epoch=lambda line: run.stop("a test"))
    state = run.training.state_dict()
    assert [group["step"] for group in state["optimizer"]["param_groups"] if group["kind"] == "mu"] == [0]
    assert [group["lr"] for group in state["optimizer"]["param_groups"]] == lr == run.training.scheduler.get_last_lr()
    assert (state["rule"]["t"], state["rule"]["calls"]) == (0, 0)
    assert all(bool((values["g"] == 0).all()) for values in state["optimizer"]["state"].values() if "g" in values)
    again, damaged = resume(tmp_path / "run")
    assert damaged == []
    assert all(torch.equal(value, again.net.state_dict()[name]) for name, value in state["net"].items())


def test_after_the_last_member_nothing_begins(tmp_path, monkeypatch):
    recipe = recipe_files.load("digits", "ensemble").replace(epochs=1, width=4, members=2)
    run, begun = start(recipe, tmp_path / "run"), []
    monkeypatch.setattr(members, "begin", lambda *args: (begun.append(run.progress.epoch), begin(*args))[1])
    run.train()
    assert begun == [0]
    last = list(run.training.job.states.networks())[-1]
    assert all(torch.equal(value, run.net.state_dict()[name]) for name, value in last.state_dict().items())


def test_predictions_average_over_members_and_thetas_of_each():
    run = ensemble()
    x = next(iter(run.batches(run.test)))[0]
    members = networks(run.net)
    drawn = draw_probabilities(run.net, x, samples=6, seed=3)
    apart = [draw_probabilities(m, x, samples=3, seed=member_seed(3, n)) for n, m in enumerate(members)]
    assert torch.equal(drawn, torch.cat(apart))
    torch.testing.assert_close(drawn.mean(0), (apart[0].mean(0) + apart[1].mean(0)) / 2)
    assert len({float(p.sum(0)[0]) for p in drawn}) == 6, "six thetas, no two alike"


@pytest.mark.parametrize(("samples", "drawn"), [(1, 2), (2, 2), (5, 6), (6, 6)])
def test_samples_are_spread_evenly_over_the_members(samples, drawn):
    run = ensemble()
    x = next(iter(run.batches(run.test)))[0][:3]
    assert draw_probabilities(run.net, x, samples=samples).shape[0] == drawn == 2 * samples_of_each(run.net, samples)
    assert ssvi.predict_samples(run.net, x, samples).shape[0] == drawn


def test_the_library_predicts_as_the_run_was_evaluated():
    """Each member has BatchNorm's statistics for its thetas, and no warning says that they are of other weights."""
    run = ensemble()
    assert {statistics.samples for member in networks(run.net) for statistics in fitted(member).values()} == {20}
    again = ssvi.evaluate(run.net, run.batches(run.test), run.recipe.samples)
    assert again.nll == pytest.approx(run.folder.result["nll"], rel=1e-6)


def test_disagreement_is_that_of_thetas_and_that_of_members():
    run = ensemble()
    both = ssvi.evaluate(run.net, run.batches(run.test), 6).mutual_information
    within = [ssvi.evaluate(member, run.batches(run.test), 3).mutual_information for member in networks(run.net)]
    assert both > sum(within) / 2


def test_it_costs_as_much_as_its_members():
    one, two = (
        evaluate_run(FinishedRun(finished("ssvi", **OWN["ssvi"])), samples=4),
        evaluate_run(ensemble(), samples=4),
    )
    single, both = one.cost, two.cost
    assert both.networks == 2
    assert both.training_flops == 2 * single.training_flops
    assert both.memory_bytes == 2 * single.memory_bytes
    assert both.inference_flops == single.inference_flops, "four thetas, of one network or two of each"
    assert (both.live_weights, both.sparsity) == (single.live_weights, single.sparsity)
    assert (two.samples, two.point) == (4, "last network")


def test_the_last_network_is_shown_at_its_mean():
    run = ensemble()
    last = networks(run.net)[-1]
    with ssvi.at_mean(last):
        expected = ssvi.evaluate(last, run.batches(run.test), 1)
    assert evaluate_run(run, samples=2).at_mean["nll"] == pytest.approx(expected.nll, rel=1e-6)


def test_a_mixture_of_one_is_its_network(tmp_path):
    recipe = recipe_files.load("digits", "ssvi-ensemble").replace(epochs=1, width=4, members=1, **OWN["ssvi"])
    run = FinishedRun(train(recipe, tmp_path / "one"))
    assert isinstance(run.net, Mixture)
    x = next(iter(run.batches(run.test)))[0]
    assert torch.equal(draw_probabilities(run.net, x, seed=2), draw_probabilities(run.net.members[0], x, seed=2))

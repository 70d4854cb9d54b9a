"""A run goes on with the live weights per layer, and with the priors, that it began with."""

import pytest
import torch
from torch import nn

import ssvi
from ssvi import allocation
from ssvi.nn import starts
from ssvi.nn.models import lenet
from ssvi.training import checkpoint, posterior_facts, recipe_files
from ssvi.training.start import resume, start


def converted(allocate: allocation.Allocation = allocation.uniform, density: float = 0.05) -> nn.Module:
    return ssvi.to_bnn(lenet(size=8, width=4), density, allocation=allocate, seed=0)


def live(bnn: nn.Module) -> list[int]:
    return [layer.posterior.s for _, layer in ssvi.layers(bnn)]


def test_another_sharing_of_as_many_weights_is_taken_over():
    """Earlier versions had no floor of one weight per output."""
    earlier, now = converted(allocation.same_density), converted()
    assert live(earlier) != live(now)
    parameters = list(now.parameters())
    posterior_facts.take_over(now, earlier.state_dict(), {})
    now.load_state_dict(earlier.state_dict())
    assert live(now) == live(earlier)
    assert all(a is b for a, b in zip(now.parameters(), parameters, strict=True)), "an optimiser goes on holding them"
    x = torch.randn(3, 1, 8, 8)
    with ssvi.at_mean(earlier.eval()), ssvi.at_mean(now.eval()):
        assert torch.equal(earlier(x), now(x))


def test_another_number_of_weights_is_still_an_error():
    other, now = converted(density=0.1), converted()
    before = live(now)
    posterior_facts.take_over(now, other.state_dict(), {})
    assert live(now) == before
    with pytest.raises(RuntimeError, match="size mismatch"):
        now.load_state_dict(other.state_dict())


def test_a_run_keeps_its_priors_when_the_default_changes(tmp_path, monkeypatch):
    recipe = recipe_files.load("digits").replace(width=4, prior_sigma="fan-in")
    run = start(recipe, tmp_path / "run")
    checkpoint.save(run.folder, run.recipe, run.training, run.progress)
    began_with = posterior_facts.priors(run.training.net)
    for name in ("FREE", "NORMALISED"):
        monkeypatch.setattr(starts, name, starts.Units(prior=7.0 * getattr(starts, name).prior, sigma=0.1))
    resumed, _ = resume(tmp_path / "run")
    assert posterior_facts.priors(resumed.training.net) == began_with
    assert len(began_with) == 4
    assert posterior_facts.priors(start(recipe, tmp_path / "new").training.net) != began_with

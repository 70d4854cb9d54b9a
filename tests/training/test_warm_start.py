"""A start from a network that the run trains first: what trains when, what it costs, and that it goes on bit for bit."""

import pytest
import torch
from small_runs import train

import ssvi
from ssvi import methods
from ssvi.nn import models
from ssvi.training import model_file
from ssvi.training.errors import RunError
from ssvi.training.recipe import RecipeError, from_mapping
from ssvi.training.run import finish
from ssvi.training.run_folder import RunFolder
from ssvi.training.start import resume, start

SMALL = {
    "epochs": 4, "width": 8, "batch_size": 128, "every": 3, "density": 0.2, "lr": 0.1, "members": 1, "burn_in": 0.5,
    "warm_start": 0.5, "threads": 1,
}  # fmt: skip
OWN = {"vd": {"threshold": -3.0}, "group-vd": {"threshold": -8.95}, "sbp": {"threshold": 200.0}, "mbnn": {"lam": 0.4}}


def small(method, **changes):
    return from_mapping(SMALL | {"method": method} | OWN.get(method, {}) | changes)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished run of a method, trained once."""
    root, folders = tmp_path_factory.mktemp("warm"), {}

    def run(method):
        if method not in folders:
            folders[method] = train(small(method), root / method)
        return folders[method]

    return run


@pytest.mark.parametrize(
    ("method", "at"), [("vd", 7), ("vd", 20), ("sbp", 22), ("aeb", 7), ("aeb", 38), ("mbnn", 22), ("snr-finetune", 38)]
)
def test_it_goes_on_bit_for_bit(method, at, whole, tmp_path):
    """Interrupted in the plain training, at its end, and in the first and last epoch of the method."""
    run = start(small(method), tmp_path / "run")
    run.train(lambda numbers: run.stop("a test") if numbers.step == at else None)
    assert not run.done
    run, damaged = resume(tmp_path / "run")
    assert damaged == []
    assert (run.method is methods.get(method)) == (at >= 20)
    run.train()
    finish(run)
    expected, resumed = (model_file.read(f / "model.safetensors")[1] for f in (whole(method), tmp_path / "run"))
    assert expected.keys() == resumed.keys()
    assert all(torch.equal(expected[name], resumed[name]) for name in expected)


def test_the_first_epochs_are_those_of_plain_training(tmp_path):
    """To the bit: the network of a deterministic run of so many epochs is the one that the method begins with."""
    warm = start(small("vd"), tmp_path / "vd")
    warm.train(lambda numbers: warm.stop("a test") if numbers.step == 20 else None)
    plain = small("deterministic", epochs=2, warm_start=0.0, lr=0.1, weight_decay=5e-4)
    plain_net = model_file.load(train(plain, tmp_path / "plain"))
    means = {name: layer.posterior.mu for name, layer in ssvi.layers(warm.net)}
    for name, module in plain_net.named_modules():
        if name in means:
            assert torch.equal(means[name], module.weight.flatten())
    assert warm.first_epoch == 2


def test_the_schedules_of_the_method_are_of_its_own_epochs(tmp_path):
    lines = RunFolder(train(small("vd", lr=0.02, warm_lr=0.3), tmp_path / "run")).metrics()
    assert len(lines) == 4
    assert [line.beta > 0 for line in lines] == [False, False, True, True]
    shares = [line.lr / lr for line, lr in zip(lines, (0.3, 0.3, 0.02, 0.02), strict=True)]
    assert all(0.5 < share < 0.6 for share in shares[::2]), "just before the half of each cosine"
    assert all(0.0 < share < 0.02 for share in shares[1::2]), "just before its end"


def test_the_plain_epochs_cost_what_plain_training_costs(whole):
    forward = ssvi.flops.inference(models.lenet(size=8, width=8), torch.zeros(1, 1, 8, 8))
    seen = 10 * 128  # images of an epoch
    assert [line.flops for line in RunFolder(whole("vd")).metrics()] == [n * forward * seen for n in (3, 3, 6, 6)]


def test_a_sampler_counts_its_states_in_its_own_epochs(whole):
    names = sorted(file.name for file in (whole("aeb") / "states").iterdir())
    assert names == ["epoch-000001.safetensors"], "the last of its two epochs"


def test_it_helps_a_method_that_prunes(whole, tmp_path):
    """Two epochs of VD from a trained network are better than two from scratch."""
    scratch = RunFolder(train(small("vd", warm_start=0.0, epochs=2), tmp_path / "run")).metrics()
    assert RunFolder(whole("vd")).metrics()[-1].validation.nll < scratch[-1].validation.nll


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": 1}, "warm_start=0.5 of epochs=1 leaves no epoch to the method: raise epochs or lower warm_start"),
        ({"method": "ensemble"}, "warm_start=0.5: the members of 'ensemble' start from weights of their own"),
        ({"warm_start": 1.0}, "warm_start=1.0"),
        ({"method": "aeb", "members": 2}, "epochs=2 with burn_in=0.5 leave too few epochs"),
    ],
)
def test_what_cannot_be_is_said(changes, message):
    with pytest.raises(RecipeError, match=message):
        from_mapping(SMALL | {"method": "vd"} | changes)


def test_a_mistake_of_the_method_is_found_before_the_plain_training(tmp_path):
    with pytest.raises(RecipeError, match="keep_dense='nosuch'"):
        start(small("aeb", keep_dense=("nosuch",)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_it_cannot_be_trained_longer(whole):
    with pytest.raises(RunError, match=r"a run with warm_start=0.5 cannot be trained longer"):
        resume(whole("vd"), epochs=9)

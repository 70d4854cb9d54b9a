"""Random tensors: when theta is random, what pins it, and that a copy or a pickle starts at rest."""

import copy
import pickle

import pytest
import torch
from torch import nn

import ssvi
from ssvi.families import Laplace, StudentT
from ssvi.nn.bayes_layer import BayesLayer
from ssvi.nn.gate_kinds import BinaryGate, LogNormalGate, NormalGate
from ssvi.nn.gates import Gate
from ssvi.nn.posterior import SparseFamily, SparseGaussian, SparsePoint
from ssvi.nn.random_tensor import RandomTensor, is_random, random_tensors
from ssvi.nn.sparse import SparsePosterior
from ssvi.nn.spread import SparseSpread

PLACE = (2, 3), torch.tensor([0, 2, 5]), torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64)
MAKE = {
    "gaussian": lambda: SparseGaussian(*PLACE, prior_sigma=1.0, sigma_init=0.5, sigma_map="exp"),
    "laplace": lambda: SparseFamily(*PLACE, family=Laplace(), prior_sigma=1.0, sigma_init=0.5, sigma_map="exp"),
    "student-t": lambda: SparseFamily(*PLACE, family=StudentT(), prior_sigma=1.0, sigma_init=0.5, sigma_map="exp"),
    "point": lambda: SparsePoint(*PLACE),
    "normal gate": lambda: NormalGate(3).double(),
    "log-normal gate": lambda: LogNormalGate(3).double(),
    "binary gate": lambda: BinaryGate(3),
}
kinds = pytest.mark.parametrize("kind", MAKE)
RANDOM = {"gaussian", "laplace", "student-t", "normal gate", "log-normal gate"}


@pytest.mark.parametrize("abstract", [RandomTensor, SparsePosterior, SparseSpread, Gate, BayesLayer])
def test_an_abstract_class_makes_no_object(abstract):
    with pytest.raises(TypeError, match="abstract"):
        abstract(*PLACE)


@kinds
def test_theta_is_none_only_where_there_is_a_spread_and_no_pin(kind):
    tensor = MAKE[kind]()
    assert is_random(tensor) == (kind in RANDOM)
    if kind not in RANDOM:
        assert torch.equal(tensor.theta, tensor.mean)
    with ssvi.at_mean(tensor):
        assert torch.equal(tensor.theta, tensor.mean)
        with ssvi.at_sample(tensor, torch.Generator().manual_seed(1)):
            assert torch.equal(tensor.theta, tensor.sample(torch.Generator().manual_seed(1)))
            assert torch.equal(tensor.theta, tensor.mean) == (kind not in RANDOM)
        assert torch.equal(tensor.theta, tensor.mean)
    assert is_random(tensor) == (kind in RANDOM)


@kinds
def test_the_opposite_of_a_draw_is_as_far_from_the_mean_where_q_is_symmetric(kind):
    tensor, generator = MAKE[kind](), torch.Generator().manual_seed(1)
    theta = tensor.sample(generator)
    other = tensor.opposite(theta, generator)
    if isinstance(tensor, Gate):  # a draw of its own
        tensor.sample(again := torch.Generator().manual_seed(1))
        assert torch.equal(other, tensor.sample(again))
    else:
        torch.testing.assert_close((theta + other) / 2, tensor.mean)
    assert torch.equal(theta, other) == (kind not in RANDOM)


@kinds
def test_a_point_takes_no_random_number(kind):
    tensor, generator = MAKE[kind](), torch.Generator().manual_seed(0)
    before = generator.get_state()
    tensor.sample(generator)
    assert torch.equal(before, generator.get_state()) == (kind not in RANDOM)


@kinds
@pytest.mark.parametrize("clone", [copy.deepcopy, copy.copy, lambda t: pickle.loads(pickle.dumps(t))])
def test_a_copy_starts_at_rest_and_the_original_keeps_its_pins(kind, clone):
    tensor = MAKE[kind]()
    with ssvi.at_mean(tensor), ssvi.at_sample(tensor):
        if isinstance(tensor, SparsePosterior):
            tensor.listener = lambda: None  # cannot be pickled, and must not be
        twin = clone(tensor)
        assert twin.pinned is None
        assert twin.pins_at_mean == 0
        assert getattr(twin, "listener", None) is None
        assert is_random(twin) == (kind in RANDOM)
        assert tensor.pinned is not None
        assert tensor.pins_at_mean == 1
    assert twin.pins_at_mean == 0
    assert twin.state_dict().keys() == tensor.state_dict().keys()


def test_pins_are_not_in_the_state_dict():
    bnn = ssvi.to_bnn(nn.Linear(4, 4), 0.5)
    with ssvi.at_mean(bnn), ssvi.at_sample(bnn):
        assert set(bnn.state_dict()) == {"bias", *(f"posterior.{key}" for key in ("index", "mu", "rho", "sigma_init"))}


def test_every_random_tensor_once():
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    net[1].weight = net[0].weight
    assert len(random_tensors(ssvi.to_bnn(net, 0.5))) == 1

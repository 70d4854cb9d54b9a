"""Layers that read their weights, against torch's own: values, gradients, one theta per call, copies and files."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from read_layers import CASES, OWN, Gated, as_double, random_parameters, tensor
from torch import nn

import ssvi
from ssvi.nn.layers import posteriors

cases = pytest.mark.parametrize("name", CASES)


def converted(name: str, density: float = 1.0, **options) -> tuple[nn.Module, nn.Module, tuple[torch.Tensor, ...]]:
    """The plain network, the Bayesian one, and an input, in float64."""
    torch.manual_seed(0)
    make, inputs = CASES[name]
    net = make().double()
    args = as_double(inputs())
    own = OWN if isinstance(net, Gated) else None
    return net, ssvi.to_bnn(net, density, layers=own, sigma_init=0.3, seed=1, **options), args


@cases
@pytest.mark.parametrize("density", [1.0, 0.5])
def test_at_the_mean_it_is_torch_on_the_dense_weights(name, density):
    """Values, the gradient of mu (that of the dense parameter at the live positions), and that of all other parameters."""
    _, bnn, args = converted(name, density)
    plain = ssvi.mean(bnn, dense=True)
    want, random = tensor(plain(*args)), random_parameters(bnn)
    grad_y = torch.randn_like(want)
    want.backward(grad_y)
    with ssvi.at_mean(bnn):
        got = tensor(bnn(*args))
    got.backward(grad_y)
    torch.testing.assert_close(got, want)
    assert random
    for of_plain, parameter in plain.named_parameters():
        if of_plain in random:
            layer, of = random[of_plain]
            posterior = layer.posteriors[of]
            gradient = layer.layout.theta(parameter.grad).flatten()[posterior.index.long()]
            torch.testing.assert_close(posterior.mu.grad, gradient)
        else:
            torch.testing.assert_close(bnn.get_parameter(of_plain).grad, parameter.grad)


@cases
def test_at_density_one_the_mean_is_the_network_again(name):
    net, bnn, args = converted(name)
    plain = ssvi.mean(bnn, dense=True)
    assert [type(m) for m in plain.modules()] == [type(m) for m in net.modules()]
    assert list(plain.state_dict()) == list(net.state_dict())
    for key, value in net.state_dict().items():
        assert torch.equal(plain.state_dict()[key], value)
    assert torch.equal(tensor(plain(*args)), tensor(net(*args)))


@cases
def test_a_sample_is_the_plain_network_with_that_theta_put_in(name):
    """In training, and in evaluation without gradients, where torch has a fast path of its own for attention."""
    _, bnn, args = converted(name, 0.5)
    plain = ssvi.sample(bnn, torch.Generator().manual_seed(3), dense=True)
    sparse = ssvi.sample(bnn, torch.Generator().manual_seed(3))
    with ssvi.at_sample(bnn, torch.Generator().manual_seed(3)):
        torch.testing.assert_close(tensor(bnn(*args)), tensor(plain(*args)))
        torch.testing.assert_close(tensor(sparse(*args)), tensor(plain(*args)))
        with torch.no_grad():
            torch.testing.assert_close(tensor(bnn.eval()(*args)), tensor(plain.eval()(*args)))


@cases
def test_calls_are_random_and_the_whole_batch_has_one_theta(name):
    _, bnn, args = converted(name, 0.5)
    assert not torch.equal(tensor(bnn(*args)), tensor(bnn(*args)))
    assert not torch.equal(tensor(bnn.eval()(*args)), tensor(bnn(*args)))


def test_what_a_layer_reads_twice_in_a_call_is_the_same():
    """x W^T W is symmetric in x only if both W are the same draw."""
    bnn = ssvi.to_bnn(Gated().double(), 0.5, layers={Gated: ("weight",)})
    with torch.no_grad():
        product = bnn(torch.eye(5, dtype=torch.float64)) / bnn.gate
    torch.testing.assert_close(product, product.T)
    assert not torch.equal(bnn.weight, bnn.weight), "outside of a call each read is a draw"
    assert bnn.calls == 1, "the layer keeps what its forward writes"


def test_a_sequence_has_one_theta():
    """An LSTM called once on a sequence equals its cell at one theta; with a theta per step it would not."""
    _, bnn, (x,) = converted("lstm with projection")
    with torch.no_grad():
        twice = bnn(torch.cat([x, x]))[0]
    torch.testing.assert_close(twice[: len(x)], twice[len(x) :])


def test_threads_share_a_network():
    """Every thread reads its own theta: W^T W of each call is symmetric."""
    bnn = ssvi.to_bnn(Gated().double(), 0.5, layers={Gated: ("weight",)})

    def symmetric(_):
        with torch.no_grad():
            product = bnn(torch.eye(5, dtype=torch.float64)) / bnn.gate
        return torch.allclose(product, product.T)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(symmetric, range(200)))


@cases
def test_copies_pickles_and_states_are_the_same_network(name):
    net, bnn, args = converted(name, 0.5)
    _, fresh, _ = converted(name, 0.5, mu_init=0.1)
    fresh.load_state_dict(bnn.state_dict())
    with ssvi.at_mean(bnn):
        want = tensor(bnn(*args))
    for other in (copy.deepcopy(bnn), pickle.loads(pickle.dumps(bnn)), fresh, bnn.float().double()):
        assert [type(m) for m in other.modules()] == [type(m) for m in bnn.modules()]
        with ssvi.at_mean(other):
            torch.testing.assert_close(tensor(other(*args)), want, rtol=1e-5, atol=1e-5)
    assert not (set(net.parameters()) & set(bnn.parameters()))


@cases
def test_a_model_file_keeps_the_network(name, tmp_path):
    net, bnn, args = converted(name, 0.5)
    ssvi.save(bnn, tmp_path / "model.safetensors")
    loaded = ssvi.load(tmp_path / "model.safetensors", net)
    for (a, p), (b, q) in zip(posteriors(bnn).items(), posteriors(loaded).items(), strict=True):
        assert a == b
        assert p.prior_sigma == q.prior_sigma
    with ssvi.at_mean(bnn), ssvi.at_mean(loaded):
        assert torch.equal(tensor(bnn.eval()(*args)), tensor(loaded(*args)))


def test_a_model_file_knows_which_of_a_users_layers_are_random(tmp_path):
    """One of two of the same class, and one parameter of two; the others stay deterministic."""
    net = nn.ModuleList([Gated(), Gated(), nn.LSTM(3, 3), nn.Linear(3, 3)])
    own = {Gated: ("weight",), nn.LSTM: ("weight_ih_l0",)}
    bnn = ssvi.to_bnn(net, 0.5, layers=own, skip=("1",))
    ssvi.save(bnn, tmp_path / "model.safetensors")
    loaded = ssvi.load(tmp_path / "model.safetensors", net)
    assert list(posteriors(loaded)) == list(posteriors(bnn)) == ["0", "2.weight_ih_l0", "3"]
    assert type(loaded[1]) is Gated

"""What goes into a prediction: several inputs, names, arrays; modes and pins are respected."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import DataLoader, TensorDataset

import ssvi


class Sum(nn.Module):
    """A network with two inputs and a number."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 3), nn.Linear(6, 3)

    def forward(self, x, other, scale=1):
        return {"logits": self.a(x) + scale * self.b(other)}


def seeded(seed=1):
    return torch.Generator().manual_seed(seed)


def two_inputs():
    torch.manual_seed(0)
    return ssvi.to_bnn(Sum(), 0.5, sigma_init=0.5), torch.randn(4, 6), torch.randn(4, 6)


def test_inputs_by_place_and_by_name():
    bnn, x, other = two_inputs()
    by_place = ssvi.predict(bnn, x, other, generator=seeded())
    assert torch.equal(ssvi.predict(bnn, x=x, other=other, generator=seeded()), by_place)
    batch = {"x": x, "other": other}
    assert torch.equal(ssvi.predict(bnn, **batch, generator=seeded()), by_place)
    with ssvi.at_mean(bnn):
        torch.testing.assert_close(ssvi.predict(bnn, **batch), bnn(**batch)["logits"].softmax(-1))


def test_a_last_number_is_an_input_where_the_network_has_a_place_for_it_and_else_the_samples():
    bnn, x, other = two_inputs()
    assert len(ssvi.predict_samples(bnn, x, other, 2)) == 5  # scale = 2
    assert len(ssvi.predict_samples(bnn, x, other, 2, 3)) == 3
    with ssvi.at_mean(bnn):
        torch.testing.assert_close(ssvi.predict(bnn, x, other, 2), bnn(x, other, 2)["logits"].softmax(-1))
    with pytest.raises(TypeError, match="samples is given twice"):
        ssvi.predict(nn.Linear(6, 3), x, 4, samples=3)


@pytest.mark.parametrize("given", [lambda x: [x], lambda x: DataLoader(TensorDataset(x), 2), lambda x: {"x": x}])
@pytest.mark.parametrize("convert", [lambda net: ssvi.to_bnn(net, 0.5), lambda net: net])
def test_what_is_no_tensor_is_named_where_the_network_cannot_take_it(given, convert):
    x = given(torch.randn(4, 6))
    with pytest.raises(TypeError, match=rf"cannot take an input of type {type(x).__name__} .*for each x of a loader"):
        ssvi.predict(convert(nn.Linear(6, 3)), x)


def test_a_network_may_take_a_list():
    class Detector(nn.Linear):
        def forward(self, images):
            return torch.stack([super(Detector, self).forward(x) for x in images])

    x = [torch.randn(6), torch.randn(6)]
    assert ssvi.predict(Detector(6, 3), x).shape == (2, 3)
    with pytest.raises(AttributeError, match="nonsense"):  # the link's own
        ssvi.predict(Detector(6, 3), x, link=lambda y: y.nonsense)


@pytest.mark.parametrize("samples", [2.5, "3", None])
def test_samples_must_be_a_whole_number(samples):
    with pytest.raises(TypeError, match=f"samples={samples!r} must be a whole number"):
        ssvi.predict(ssvi.to_bnn(nn.Linear(6, 3), 0.5), torch.randn(4, 6), samples=samples)


def test_a_last_number_is_the_samples_of_a_wrapped_network_too():
    bnn, x, other = two_inputs()
    for wrapped in (AveragedModel(bnn), nn.DataParallel(bnn), AveragedModel(nn.DataParallel(bnn))):
        assert len(ssvi.predict_samples(wrapped, x, other, 2)) == 5  # scale = 2
        assert len(ssvi.predict_samples(wrapped, x, other, 2, 3)) == 3
    assert len(ssvi.predict_samples(AveragedModel(ssvi.to_bnn(nn.Linear(6, 3), 0.5)), x, 10)) == 10


def test_batches_with_names_are_evaluated():
    bnn, x, other = two_inputs()
    y = torch.tensor([0, 1, 2, 0])
    by_place = ssvi.evaluate(bnn, [(x[:1], other[:1], y[:1]), (x[1:], other[1:], y[1:])])
    assert ssvi.evaluate(bnn, [{"x": x, "other": other, "labels": y}]) == by_place
    with pytest.raises(KeyError, match="a batch has x, other and no 'labels'"):
        ssvi.evaluate(bnn, [{"x": x, "other": other}])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_arrays_become_tensors_of_the_networks_dtype(dtype):
    bnn = ssvi.to_bnn(nn.Linear(6, 3), 0.5, sigma_init=0.5).to(dtype)
    x = np.random.default_rng(0).normal(size=(4, 6))[::-1]
    probs = ssvi.predict(bnn, x, generator=seeded())
    assert probs.dtype == dtype
    assert torch.equal(ssvi.predict(bnn, torch.tensor(x.copy(), dtype=dtype), generator=seeded()), probs)
    by_name = ssvi.predict(bnn, x=x.astype(np.float32), generator=seeded())
    assert by_name.dtype == dtype
    torch.testing.assert_close(by_name, probs, rtol=1e-5, atol=1e-5)


def test_whole_numbers_stay_whole():
    net = nn.Sequential(nn.Embedding(10, 6), nn.Flatten(), nn.Linear(12, 3))
    assert ssvi.predict(ssvi.to_bnn(net, 0.5), np.array([[1, 2], [3, 4]])).shape == (2, 3)


def test_a_prediction_is_in_evaluation_mode_and_gives_every_mode_back():
    bnn = ssvi.to_bnn(nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(), nn.Linear(8, 3)), 0.5)
    bnn[2].eval()
    x = 3 + torch.randn(20, 6)
    state = {name: value.clone() for name, value in bnn.state_dict().items()}
    probs = ssvi.predict(bnn, x, generator=seeded())
    assert [module.training for module in bnn] == [True, True, False, True]
    assert all(torch.equal(value, state[name]) for name, value in bnn.state_dict().items())
    with pytest.raises(ValueError, match="does not fit a layer of 6 inputs"):
        ssvi.predict(bnn, x[:, :5])
    assert [module.training for module in bnn] == [True, True, False, True]
    assert torch.equal(ssvi.predict(bnn.eval(), x, generator=seeded()), probs)


@pytest.mark.parametrize("local", [False, True])
def test_a_pinned_network_is_predicted_with_as_it_is(local):
    bnn, x = ssvi.to_bnn(nn.Linear(6, 3), 0.5, sigma_init=1.0), torch.randn(4, 6)
    for pin in (ssvi.at_mean, ssvi.at_sample):
        with pin(bnn):
            drawn = ssvi.predict_samples(bnn, x, local=local)
            assert torch.equal(drawn, bnn(x).softmax(-1)[None])
            assert torch.equal(ssvi.predict(bnn, x, local=local), drawn[0])


def test_what_is_not_pinned_is_drawn():
    bnn = ssvi.to_bnn(nn.Sequential(nn.Linear(6, 3), nn.Linear(3, 3)), 0.5, sigma_init=1.0)
    x = torch.randn(4, 6)
    with ssvi.at_mean(bnn[0]), torch.no_grad():
        drawn = ssvi.predict_samples(bnn, x, generator=seeded())
        hidden = bnn[0](x)
        assert torch.equal(drawn, ssvi.predict_samples(bnn[1], hidden, generator=seeded()))
    assert not torch.equal(drawn, ssvi.predict_samples(bnn, x, generator=seeded()))

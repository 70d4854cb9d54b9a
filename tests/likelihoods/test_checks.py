"""Bad targets and outputs: one line that names the argument, the value and the remedy. Half precision is widened."""

import pytest
import torch
from torch import nn

import ssvi
from ssvi.likelihoods import Bernoulli, Categorical, Gaussian, LikelihoodError, StudentT

NAN = torch.tensor([0.0, torch.nan, 1.0])
THREE, CLASSES = torch.zeros(3), torch.zeros(3, 4)
BAD_TARGETS = [
    (Gaussian(1.0), torch.zeros(3, 1), NAN, r"y\[1\] = nan is not a finite number: leave such examples out"),
    (StudentT(1.0), torch.zeros(3, 1), -1 / THREE.abs(), r"y\[0\] = -inf is not a finite number"),
    (Gaussian(1.0), torch.zeros(3, 1), THREE.long(), r"y has dtype torch.int64.*pass y.float\(\).*Categorical"),
    (Gaussian(1.0), torch.zeros(3, 1), torch.zeros(3, 3), r"y has shape \(3, 3\), but .* \(3,\)"),
    (Gaussian(1.0, 2), torch.zeros(3, 2), THREE, r"y has shape \(3,\), but .* \(3, 2\)"),
    (Gaussian(1.0, 2), torch.zeros(3, 2), torch.stack([THREE, NAN], -1), r"y\[1, 1\] = nan"),
    (Categorical(4), CLASSES, torch.tensor([0, 4, 1]), r"y\[1\] = 4 is outside 0\.\.3: .*from 0"),
    (Categorical(4), CLASSES, torch.tensor([0, 1, -1]), r"y\[2\] = -1 is outside 0\.\.3"),
    (Categorical(4), CLASSES, torch.tensor([0, 10**9, 1]), r"y\[1\] = 1000000000 is outside"),
    (Categorical(4), CLASSES, THREE, r"y has dtype torch.float32, but classes are integers: pass y.long\(\)"),
    (Categorical(4), CLASSES, CLASSES.long(), r"y has shape \(3, 4\).*one-hot targets need y.argmax\(-1\)"),
    (Bernoulli(), torch.zeros(3, 1), torch.tensor([0, 1, 2]), r"y\[2\] = 2 is neither 0 \(no\) nor 1 \(yes\)"),
    (Bernoulli(), torch.zeros(3, 1), NAN, r"y\[1\] = nan is neither"),
    (Bernoulli(), torch.zeros(3, 1), torch.tensor([0.3, 1, 0]), r"y\[0\] = 0.3.* is neither"),
    (Bernoulli(2), torch.zeros(3, 2), THREE, r"y has shape \(3,\), but .* \(3, 2\): give one answer"),
]


@pytest.mark.parametrize(("likelihood", "output", "y", "message"), BAD_TARGETS)
def test_bad_targets_are_refused_by_losses_and_predictions(likelihood, output, y, message):
    with pytest.raises(LikelihoodError, match=message):
        likelihood.nll(output, y)
    with pytest.raises(LikelihoodError, match=message):
        likelihood.predictive(output[None]).log_prob(y)


@pytest.mark.parametrize(
    ("likelihood", "shape", "message"),
    [
        (Gaussian(1.0), (3,), r"output is torch.float32 of shape \(3,\), but .* \(examples, 1\)"),
        (Gaussian(), (3, 1), r"prepare the plain network by likelihood.prepare\(net\)"),
        (Gaussian("predicted"), (3, 1), r"the network needs 2 output\(s\)"),
        (
            Categorical(4),
            (3, 5),
            r"of shape \(3, 5\), but .* \(examples, 4\): the network needs one output for each class",
        ),
        (Bernoulli(), (3, 2), "one output for each question"),
    ],
)
def test_outputs_that_do_not_fit_are_refused(likelihood, shape, message):
    with pytest.raises(LikelihoodError, match=message):
        likelihood.nll(torch.zeros(shape), torch.zeros(3))


def test_predictions_need_the_axis_of_the_samples():
    with pytest.raises(LikelihoodError, match=r"outputs has shape \(3, 1\), not \(samples, examples, outputs\)"):
        Gaussian(1.0).predictive(torch.zeros(3, 1))


def test_one_weight_for_each_example():
    with pytest.raises(LikelihoodError, match=r"weight has shape \(3, 1\), but there are 3 examples"):
        Gaussian(1.0).nll(torch.zeros(3, 1), THREE, torch.ones(3, 1))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Categorical(1), "classes=1 must be at least 2"),
        (lambda: Bernoulli(0), "questions=0 must be at least 1"),
        (lambda: Gaussian(targets=0), "targets=0 must be at least 1"),
        (lambda: StudentT(df=2.0), "df=2.0 must be above 2"),
        (lambda: StudentT(df=float("nan")), "df=nan must be above 2"),
    ],
)
def test_likelihoods_that_cannot_be_are_refused(make, message):
    with pytest.raises(LikelihoodError, match=message):
        make()


@pytest.mark.parametrize("likelihood", [Gaussian(), Gaussian("predicted"), StudentT(), Categorical(4), Bernoulli()])
def test_under_autocast_the_loss_is_that_of_the_outputs_in_float32(likelihood):
    torch.manual_seed(0)
    net = likelihood.prepare(nn.Linear(3, likelihood.outputs))
    x, y = torch.randn(8, 3), torch.randint(2, (8,))
    y = y if isinstance(likelihood, Categorical | Bernoulli) else y.float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = net(x)
        loss = likelihood.nll(output, y)
        prediction = ssvi.predict(net, x, likelihood=likelihood)
    assert loss.dtype == torch.float32
    assert torch.equal(loss, likelihood.nll(output.float(), y))
    assert torch.equal(prediction.log_prob(y), likelihood.predictive(output.float()[None]).log_prob(y))
    loss.backward()


def test_a_compiled_loss_is_one_graph():
    likelihood = Gaussian("predicted")
    compiled = torch.compile(likelihood.nll, fullgraph=True, backend="eager")
    output, y = torch.randn(5, 2), torch.randn(5)
    assert torch.equal(compiled(output, y), likelihood.nll(output, y))

"""Classes, and yes or no: densities against torch.distributions, uncertainty against its definition."""

import pytest
import torch
from torch import distributions as td

from ssvi.likelihoods import Bernoulli, Categorical


def outputs(*shape, dtype=torch.float64):
    return 2 * torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(0))


CLASSES = torch.tensor([0, 3, 1, 1, 2, 0])
ANSWERS = torch.tensor([0, 1, 1, 0, 1, 0])


def test_the_density_of_classes_is_that_of_torch():
    logits = outputs(5, 6, 4)
    likelihood = Categorical(4)
    expected = td.Categorical(logits=logits).log_prob(CLASSES)
    assert torch.allclose(likelihood.log_density(logits, CLASSES), expected)
    assert torch.allclose(likelihood.predictive(logits).log_prob(CLASSES), expected.exp().mean(0).log())
    assert likelihood.nll(logits[0], CLASSES) == pytest.approx(
        float(torch.nn.functional.cross_entropy(logits[0], CLASSES))
    )


@pytest.mark.parametrize("answers", [ANSWERS, ANSWERS.bool(), ANSWERS.double(), ANSWERS[:, None]])
def test_the_density_of_yes_and_no_is_that_of_torch(answers):
    logits = outputs(5, 6, 1)
    expected = td.Bernoulli(logits=logits.squeeze(-1)).log_prob(ANSWERS.double())
    assert torch.allclose(Bernoulli().log_density(logits, answers), expected)
    assert torch.allclose(Bernoulli().predictive(logits).log_prob(answers), expected.exp().mean(0).log())


def test_several_questions_are_independent_given_theta():
    logits, y = outputs(5, 6, 3), torch.stack([ANSWERS, 1 - ANSWERS, ANSWERS], -1)
    expected = td.Independent(td.Bernoulli(logits=logits), 1).log_prob(y.double())
    prediction = Bernoulli(3).predictive(logits)
    assert torch.allclose(Bernoulli(3).log_density(logits, y), expected)
    assert torch.allclose(prediction.log_prob(y), expected.exp().mean(0).log())
    assert prediction.probs.shape == prediction.entropy.shape == (6, 3)


def test_no_logit_overflows():
    logits = torch.tensor([[1e4], [-1e4]], requires_grad=True)
    loss = Bernoulli().nll(logits, torch.tensor([0, 0]))
    loss.backward()
    assert loss.item() == 5000.0
    assert logits.grad.flatten().tolist() == [0.5, 0.0]


def test_a_probability_that_underflows_costs_as_much_as_in_the_metric():
    prediction = Categorical(2).predictive(torch.tensor([[[0.0, 500.0]]]))
    assert float(prediction.log_prob(torch.tensor([0]))) == pytest.approx(-87.3365, abs=1e-3)


def test_the_two_parts_of_the_uncertainty_add_up():
    """For yes and no they are those of the two classes with the logits (0, logit)."""
    logits = outputs(5, 6, 1)
    yes_no = Bernoulli().predictive(logits)
    both = Categorical(2).predictive(torch.cat([torch.zeros_like(logits), logits], -1))
    for name in ("entropy", "mutual_information", "data_uncertainty"):
        assert torch.allclose(getattr(yes_no, name), getattr(both, name))
    conditional = td.Bernoulli(logits=logits.squeeze(-1)).entropy().mean(0)
    assert torch.allclose(yes_no.data_uncertainty, conditional)
    assert torch.allclose(yes_no.data_uncertainty + yes_no.mutual_information, yes_no.entropy)
    assert torch.allclose(both.probs[:, 1], yes_no.probs)


@pytest.mark.parametrize(("likelihood", "y"), [(Categorical(4), CLASSES), (Bernoulli(), ANSWERS)])
def test_the_gradient_of_the_loss_is_right(likelihood, y):
    output = outputs(6, likelihood.outputs).requires_grad_()
    assert torch.autograd.gradcheck(lambda o: likelihood.nll(o, y), output)
    assert likelihood.prepare(net := torch.nn.Linear(1, 1)) is net


@pytest.mark.parametrize("likelihood", [Categorical(4), Bernoulli(4)])
def test_predictions_say_what_they_are(likelihood):
    text = repr(likelihood.predictive(outputs(5, 6, 4)))
    assert "examples=6, samples=5" in text
    assert len(text) < 120

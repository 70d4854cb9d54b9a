"""Likelihoods: what the outputs of a network mean, for classes and for numbers.

    likelihood = ssvi.likelihoods.Gaussian()                # the noise is learnt
    bnn = ssvi.to_bnn(likelihood.prepare(net), density=0.1)
    loss = likelihood.nll(bnn(x), y)                        # in the loop
    prediction = ssvi.predict(bnn, x, samples=20, likelihood=likelihood)
    low, high = prediction.interval(0.9)

A likelihood has no state: a noise that is learnt is a parameter of the network, so optimisers, checkpoints and model files
hold it like any other.
"""

from .base import Likelihood, LikelihoodError, Prediction
from .bernoulli import Bernoulli, YesNoPrediction
from .categorical import Categorical, ClassPrediction
from .gaussian import Gaussian
from .noise import NumberLikelihood, WithNoise
from .numbers import NumberPrediction
from .student_t import StudentT

__all__ = [
    "Bernoulli",
    "Categorical",
    "ClassPrediction",
    "Gaussian",
    "Likelihood",
    "LikelihoodError",
    "NumberLikelihood",
    "NumberPrediction",
    "Prediction",
    "StudentT",
    "WithNoise",
    "YesNoPrediction",
]

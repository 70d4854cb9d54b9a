"""What each criterion would remove in an update: tables worked out by hand, and what an update is seen to do."""

import numpy as np
import pytest
import torch
from torch import nn
from updates import net, train_step

import ssvi
from ssvi import criteria
from ssvi.inference.agreement import as_printed, compare_criteria, exact, iou
from ssvi.inference.removal import LayerRemoval
from ssvi.nn.posterior import SparseGaussian

NAMES = criteria.OF_PAPER


def layer(mu, sigma, k: int, removable=None, structure=None) -> LayerRemoval:
    """A layer with these live weights, of which k leave."""
    mu, sigma = torch.as_tensor(mu), torch.as_tensor(sigma)
    p = ssvi.to_bnn(nn.Linear(len(mu) // 2, 4, bias=False), 0.5, structure=structure).posterior
    with torch.no_grad():
        p.mu.copy_(mu)
        p.rho.copy_(p.rho_of(sigma))
    removable = torch.ones(p.s, dtype=torch.bool) if removable is None else torch.tensor(removable)
    return LayerRemoval("layer", p, removable, k)


def pair(removals: list[LayerRemoval], a, b) -> float:
    return iou(removals, [a, b])[0][1]


def by_mu(posterior: SparseGaussian) -> torch.Tensor:
    return posterior.mu


def against_mu(posterior: SparseGaussian) -> torch.Tensor:
    return -posterior.mu


ONES = [1.0] * 6


@pytest.mark.parametrize(
    ("k", "value"),
    [
        (1, 0.0),  # {1} and {6}
        (3, 0.0),  # {1, 2, 3} and {4, 5, 6}
        (4, 2 / 6),  # {1, 2, 3, 4} and {3, 4, 5, 6}
        (5, 4 / 6),
        (6, 1.0),
        (0, 1.0),  # nothing is removed
    ],
)
def test_opposite_orders_by_hand(k, value):
    removal = layer([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], ONES, k)
    assert pair([removal], by_mu, against_mu) == pytest.approx(value)
    assert pair([removal], by_mu, by_mu) == 1.0


def test_layers_are_pooled_and_not_averaged():
    """1 of 1 in the first layer, 2 of 6 in the second: 3 / 7, where the mean of the IoUs were 2 / 3."""
    first, second = layer([1.0, 1.0], [1.0, 1.0], 1), layer([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], ONES, 4)
    assert pair([first, second], by_mu, against_mu) == pytest.approx(3 / 7)


def test_weights_in_their_grace_period_are_removed_by_no_criterion():
    """Without the first and the last weight, k = 4 leaves no choice."""
    removal = layer([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], ONES, 4, [False, True, True, True, True, False])
    assert pair([removal], by_mu, against_mu) == 1.0


def test_criteria_that_differ_by_hand():
    """Weight 0: small and certain. Weight 1: large and uncertain. Weight 2: large and certain, and stays."""
    removal = layer([0.1, 0.5, 1.0, 1.0], [0.01, 1.0, 0.01, 0.01], 1)
    matrix = np.array(iou([removal], [exact(name) for name in NAMES]))
    by_size = [name in ("abs_mu", "mean_abs", "mean_exp_abs") for name in NAMES]  # these remove 0, the others 1
    assert np.array_equal(matrix, np.equal.outer(by_size, by_size))


def small_ratios(s: int = 4000, k: int = 100) -> LayerRemoval:
    """|mu| / sigma of about 0.03, as late in training, where few weights leave."""
    generator = torch.Generator().manual_seed(0)
    sigma = 0.01 * (0.5 + torch.rand(s, generator=generator))
    return layer(0.03 * sigma * torch.randn(s, generator=generator), sigma, k)


def test_criteria_2_and_4_are_one_and_the_textbook_formula_makes_two_of_them():
    two, four = NAMES.index("snr"), NAMES.index("snr_abs")
    result = compare_criteria(7, [small_ratios(), small_ratios(2000, 50)])
    assert (result.update, result.removed, result.criteria) == (7, 150, list(NAMES))
    assert result.exact[two][four] == 1.0
    assert result.textbook[two][four] < 0.5
    for matrix in (np.array(result.exact), np.array(result.textbook)):
        assert np.array_equal(matrix, matrix.T)
        assert np.array_equal(np.diag(matrix), np.ones(6))
        assert (matrix >= 0).all()
        assert (matrix <= 1).all()


def test_the_textbook_formula_agrees_where_nothing_cancels():
    generator = torch.Generator().manual_seed(0)
    sigma = 0.1 + torch.rand(200, generator=generator)
    removal = layer((0.5 + 2 * torch.rand(200, generator=generator)) * sigma, sigma, 40)
    for name in NAMES:
        assert pair([removal], exact(name), as_printed(name)) > 0.95, name


def test_a_score_that_is_lost_leaves_first_and_an_infinite_one_stays():
    """As in the authors' code, which takes NaN for 0. At sigma = 1e-4 criterion 6 has both."""
    mu = torch.linspace(0, 0.01, 1000)
    removal = layer(mu, torch.full((1000,), 1e-4), 300)
    score = criteria.AS_PRINTED["snr_exp_abs"](removal.posterior.mu, removal.posterior.sigma)
    lost, infinite = score.isnan(), score.isinf()
    assert 0 < lost.sum() < removal.k
    assert infinite.any()
    leave = ~removal.staying(as_printed("snr_exp_abs"))
    assert leave[lost].all()
    assert not leave[infinite].any()


def test_whole_blocks_are_compared():
    """Of a 4 x 2 weight the blocks {0, 2} and {1, 3} are live: their sums are 0.9 and 0.7, so the weakest weight stays."""
    removal = layer([0.0, 0.3, 0.9, 0.4], ONES[:4], 2, structure="block:2")
    removal.posterior.index.copy_(torch.arange(4))
    assert (~removal.staying(exact("abs_mu"))).tolist() == [False, True, False, True]
    assert pair([removal], exact("abs_mu"), exact("snr")) == 1.0


def observed_updates(steps: int = 6, **options) -> list:
    """Pairs of an update and what was observed just before it."""
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(net(), 0.2)
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.05)
    seen: list = []

    def observe(t, removals):
        index = {r.name: r.posterior.index.clone() for r in removals}
        leave = {r.name: ~r.staying(exact(options.get("removal", "snr_abs"))) for r in removals}
        seen.append((t, index, leave, compare_criteria(t, removals)))

    subspace = ssvi.Subspace(bnn, optimizer, every=2, rate=0.3, observe=observe, **options)
    updates = []
    for step in range(steps):
        train_step(bnn, optimizer, step)
        updates += [update] if (update := subspace.step()) else []
    return list(zip(updates, seen, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_what_is_observed_is_what_the_update_then_removes(name):
    """All that left were to leave by the criterion in use; the others of them came back, or never moved."""
    for update, (t, index, leave, _) in observed_updates(removal=name, addition="random", grace=1):
        assert update.t == t
        assert set(update.moves) == set(index)
        for layer_name, move in update.moves.items():
            assert set(move.removed.tolist()) <= set(index[layer_name][leave[layer_name]].tolist())
        assert update.count > 0


def test_an_observer_changes_nothing_and_draws_no_random_number():
    def trained(observe) -> tuple[list[torch.Tensor], torch.Tensor]:
        torch.manual_seed(0)
        bnn = ssvi.to_bnn(net(), 0.2)
        optimizer = torch.optim.SGD(bnn.parameters(), lr=0.05)
        subspace = ssvi.Subspace(bnn, optimizer, every=2, rate=0.3, addition="random", observe=observe)
        for step in range(6):
            train_step(bnn, optimizer, step)
            subspace.step()
        return list(bnn.state_dict().values()), torch.get_rng_state()

    compared = []
    with_it, noise = trained(lambda t, removals: compared.append(compare_criteria(t, removals)))
    without, same_noise = trained(None)
    assert len(compared) == 3
    assert all(torch.equal(a, b) for a, b in zip(with_it, without, strict=True))
    assert torch.equal(noise, same_noise)


def test_an_update_that_removes_nothing_is_not_observed():
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(net(), 0.2)
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.05)
    seen = []
    subspace = ssvi.Subspace(bnn, optimizer, every=1, rate=0.0, observe=lambda t, removals: seen.append(t))
    train_step(bnn, optimizer, 0)
    assert subspace.step().count == 0
    assert seen == []

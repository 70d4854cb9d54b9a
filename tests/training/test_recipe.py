"""Recipes: defaults, files, flags and mistakes."""

import pytest

from ssvi.cli.train import resolve
from ssvi.training import build
from ssvi.training import recipe as config
from ssvi.training.parts import parts as parts_of
from ssvi.training.recipe import Recipe, RecipeError


@pytest.mark.parametrize("name", config.names())
def test_every_recipe_loads_and_survives_a_round_trip(name):
    recipe = config.load(name)
    assert config.parse(recipe.to_toml(), name) == recipe


def test_the_recipes_of_the_issue_are_there():
    wanted = {"digits", "fashion", "cifar10", "cifar100", "cifar10-paper", "cifar100-paper", "cifar10-cpu"}
    assert wanted <= set(config.names())
    assert all(len(line) > 20 for line in config.names().values()), "each says what it is"


def test_the_paper_recipe_has_the_authors_settings():
    paper = config.load("cifar100-paper")
    assert (paper.density, paper.epochs, paper.batch_size, paper.lr, paper.weight_decay) == (0.1, 200, 128, 0.01, 5e-4)
    assert (paper.prior_sigma, paper.beta_max, paper.sigma_init, paper.sigma_map) == (0.005, 0.01, 6e-4, "softplus")
    assert (paper.every, paper.rate, paper.until, paper.skip_step, paper.fresh_sigma) == (
        100,
        0.3,
        0.75,
        True,
        "mean_rho",
    )


def test_per_epoch_schedules_are_the_authors():
    """beta = beta_max * min(2 epoch / epochs, 1) with epoch from 1, and a learning rate that is constant in an epoch."""
    recipe = config.load("cifar10-paper").replace(model="mlp", width=8, epochs=4)
    net = build.trained(recipe, build.network(recipe, 10, 1, 8))
    parts = parts_of(recipe, net, train_size=100, steps_per_epoch=3)
    beta = [parts.loss.beta(step) for step in range(12)]
    assert beta == pytest.approx([0.005] * 3 + [0.01] * 9)
    rates = []
    for _ in range(12):
        rates.append(parts.decay.get_last_lr()[0])
        parts.optimizer.step()
        parts.decay.step()
    assert rates == pytest.approx([0.01] * 3 + [0.01 * 0.853553] * 3 + [0.005] * 3 + [0.01 * 0.146447] * 3, rel=1e-5)


def test_sigma_has_its_own_learning_rate_and_no_weight_decay():
    recipe = Recipe(sigma_lr=0.3, weight_decay=0.1)
    net = build.trained(recipe, build.network(recipe, 10, 1, 8))
    rest, sigma = parts_of(recipe, net, 100, 5).optimizer.param_groups
    assert (rest["initial_lr"], rest["weight_decay"]) == (0.05, 0.1)
    assert (sigma["initial_lr"], sigma["weight_decay"]) == (0.3, 0.0)
    assert {id(p) for p in sigma["params"]} == {id(m.rho) for m in net.modules() if hasattr(m, "rho")}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"densty": 0.1}, "unknown key 'densty': did you mean 'density'"),
        ({"density": 0}, "density=0.0 must be in"),
        ({"lr": "fast"}, "lr='fast' must be of type float"),
        ({"epochs": 1.5}, "epochs=1.5 must be of type int"),
        ({"epochs": True}, "epochs=True must be of type int"),
        ({"per_epoch": 1}, "per_epoch=1 must be of type bool"),
        ({"method": "hmc"}, "method='hmc' must be one of ssvi, vi"),
        ({"warmup": 2.0}, "warmup=2.0 must be in"),
    ],
)
def test_mistakes_are_named(values, message):
    with pytest.raises(RecipeError, match=message):
        config.from_mapping(values)


def test_a_missing_recipe_suggests_the_nearest(tmp_path):
    with pytest.raises(RecipeError, match="did you mean 'cifar10-cpu'"):
        config.load("cifar10-gpu")
    bad = tmp_path / "bad.toml"
    bad.write_text("lr = ")
    with pytest.raises(RecipeError, match=r"bad\.toml is not TOML"):
        config.load(bad)


def test_flags_override_the_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('lr = 1\nkeep_dense = ["a", "b"]\n')
    recipe = resolve(str(file), {"keep_dense": "x,y", "epochs": 3}, sparsity=0.9)
    assert (recipe.lr, recipe.keep_dense, recipe.epochs, recipe.density) == (1.0, ("x", "y"), 3, pytest.approx(0.1))
    with pytest.raises(RecipeError, match="not both"):
        resolve("digits", {"density": 0.1}, sparsity=0.9)

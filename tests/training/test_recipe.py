"""Recipes: defaults, files, flags and mistakes."""

import pytest

from ssvi import methods
from ssvi.cli.options import resolve
from ssvi.methods.base import begin
from ssvi.methods.job import Job, Training
from ssvi.methods.settings import takes_words_and_numbers
from ssvi.nn.models import mlp
from ssvi.training import recipe_files
from ssvi.training.recipe import Recipe, RecipeError, all_fields, fields_of, from_mapping


def training_of(recipe: Recipe, train_size: int, steps_per_epoch: int) -> Training:
    """What trains a small network by this recipe."""
    job = Job(
        recipe.settings, recipe.lr, recipe.epochs, recipe.per_epoch, recipe.seed, train_size, steps_per_epoch,
        fresh=lambda: mlp(size=8, width=8), inputs=lambda: iter(()), states=None,
    )  # fmt: skip
    return begin(methods.get(recipe.method), job)


@pytest.mark.parametrize("name", recipe_files.names())
def test_every_recipe_loads_and_survives_a_round_trip(name):
    recipe = recipe_files.load(name)
    assert recipe_files.parse(recipe.to_toml(), name) == recipe


def test_the_recipes_that_the_docs_name_come_with_the_package():
    named = {"digits", "fashion", "cifar10", "cifar100", "cifar10-paper", "cifar100-paper", "cifar10-cpu"}
    assert named <= set(recipe_files.names())
    assert all(len(line) > 20 for line in recipe_files.names().values()), "each says what it is"


def test_the_paper_recipe_has_the_authors_settings():
    authors = {
        "density": 0.1, "epochs": 200, "batch_size": 128, "lr": 0.01, "weight_decay": 5e-4, "prior_sigma": 0.005,
        "beta_max": 0.01, "sigma_init": 6e-4, "sigma_map": "softplus", "every": 100, "rate": 0.3, "until": 0.75,
        "skip_step": True, "fresh_sigma": "mean_rho", "mu_init": 0.01, "sigma_init_std": 5e-4,
    }  # fmt: skip
    paper = recipe_files.load("cifar100-paper").values
    assert {name: paper[name] for name in authors} == authors


def test_per_epoch_schedules_are_the_authors():
    """beta = beta_max * min(2 epoch / epochs, 1) with epoch from 1, and a learning rate that is constant in an epoch."""
    recipe = recipe_files.load("cifar10-paper").replace(model="mlp", width=8, epochs=4)
    training = training_of(recipe, train_size=100, steps_per_epoch=3)
    beta = [training.loss.beta(step) for step in range(12)]
    assert beta == pytest.approx([0.005] * 3 + [0.01] * 9)
    rates = []
    for _ in range(12):
        rates.append(training.scheduler.get_last_lr()[0])
        training.optimizer.step()
        training.scheduler.step()
    assert rates == pytest.approx([0.01] * 3 + [0.01 * 0.853553] * 3 + [0.005] * 3 + [0.01 * 0.146447] * 3, rel=1e-5)


def test_sigma_has_its_own_learning_rate_and_no_weight_decay():
    training = training_of(Recipe().replace(method="ssvi-lrt", lr=0.05, sigma_lr=0.3, weight_decay=0.1), 100, 5)
    rest, sigma = training.optimizer.param_groups
    assert (rest["initial_lr"], rest["weight_decay"]) == (0.05, 0.1)
    assert (sigma["initial_lr"], sigma["weight_decay"]) == (0.3, 0.0)
    assert {id(p) for p in sigma["params"]} == {id(m.rho) for m in training.net.modules() if hasattr(m, "rho")}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"densty": 0.1}, "unknown key 'densty': did you mean 'density'"),
        ({"density": 0}, "density=0.0 must be in"),
        ({"lr": "fast"}, "lr='fast' must be of type float"),
        ({"epochs": 1.5}, "epochs=1.5 must be of type int"),
        ({"epochs": True}, "epochs=True must be of type int"),
        ({"per_epoch": 1}, "per_epoch=1 must be of type bool"),
        ({"method": "hmc"}, "method='hmc' must be one of ssvi, "),
        ({"lr_warmup": 2.0}, "lr_warmup=2.0 must be in"),
        ({"method": "vi", "warmup": 2.0}, "warmup=2.0 must be in"),
        ({"removal": "largest"}, "removal='largest' must be one of abs_mu"),
        ({"mu_init": "zeros"}, "mu_init='zeros' must be 'fan-in', 'net' or a number"),
        ({"prior_sigma": "net"}, "prior_sigma='net' must be 'fan-in' or a positive number"),
        ({"method": "ssvi-lrt", "sigma_init": 0}, "sigma_init=0.0 must be 'fan-in' or a positive number"),
        ({"method": "mbnn", "prior_sigma": "fan-in"}, "prior_sigma='fan-in' must be of type float"),
        ({"lr": float("inf")}, "lr=inf must be positive"),
        ({"seed": -1}, "seed=-1 must be 0 or more"),
        ({"method": "mbnn", "epochs": 1}, "epochs=1 with burn_in=0.5 leave too few epochs"),
    ],
)
def test_mistakes_are_named(values, message):
    with pytest.raises(RecipeError, match=message):
        from_mapping(values)


def test_a_missing_recipe_suggests_the_nearest(tmp_path):
    with pytest.raises(RecipeError, match="did you mean 'cifar10-cpu'"):
        recipe_files.load("cifar10-gpu")
    bad = tmp_path / "bad.toml"
    bad.write_text("lr = ")
    with pytest.raises(RecipeError, match=r"bad\.toml is not TOML"):
        recipe_files.load(bad)


def test_flags_override_the_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('lr = 1\nkeep_dense = ["a", "b"]\n')
    recipe = resolve(str(file), {"keep_dense": "x,y", "epochs": 3}, sparsity=0.9)
    assert (recipe.lr, recipe.epochs) == (1.0, 3)
    assert (recipe.settings.keep_dense, recipe.settings.density) == (("x", "y"), pytest.approx(0.1))
    with pytest.raises(RecipeError, match="not both"):
        resolve("digits", {"density": 0.1}, sparsity=0.9)


def test_a_table_of_a_recipe_is_for_its_method_alone(tmp_path):
    file = tmp_path / "own.toml"
    file.write_text('lr = 0.5\n[vd]\nlr = 0.25\noptimizer = "adam"\n')
    assert recipe_files.load(file).lr == 0.5
    assert recipe_files.load(file, "vi").settings.optimizer == "sgd"
    of_vd = recipe_files.load(file, "vd")
    assert (of_vd.lr, of_vd.method, of_vd.settings.optimizer) == (0.25, "vd", "adam")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[vd]\nlearning_rate = 1\n", r"unknown key 'learning_rate' in the table \[vd\]"),
        ("[vd]\nlam = 1\n", r"unknown key 'lam' in the table \[vd\]"),
        ("[vdd]\nlr = 1\n", r"unknown table \[vdd\]"),
    ],
)
def test_a_mistake_in_the_table_of_another_method_is_named(text, message, tmp_path):
    file = tmp_path / "own.toml"
    file.write_text(text)
    with pytest.raises(RecipeError, match=message):
        recipe_files.load(file, "ssvi")


def test_settings_of_other_methods_are_passed_over_in_files_and_refused_as_changes():
    assert "lam" not in from_mapping({"lam": 0.1}).values
    with pytest.raises(RecipeError, match="method 'ssvi' does not use 'lam'"):
        Recipe().replace(lam=0.1)


def test_another_method_takes_over_the_values_that_it_shares():
    recipe = Recipe().replace(density=0.2, lr=0.7).replace(method="rigl")
    assert (recipe.settings.density, recipe.lr, recipe.method) == (0.2, 0.7, "rigl")
    assert "prior_sigma" not in recipe.values


def test_a_recipe_without_a_learning_rate_has_that_of_its_method():
    for method in methods.NAMES:
        assert from_mapping({"method": method}).lr == methods.about(method).lr
        assert recipe_files.parse("epochs = 30", "mine.toml", method).lr == methods.about(method).lr
    assert methods.about("ssvi").lr != methods.about("rigl").lr, "there is something to choose from"


@pytest.mark.parametrize("name", recipe_files.names())
@pytest.mark.parametrize("method", [method for method in methods.NAMES if methods.about(method).members_by])
def test_an_ensemble_has_the_settings_of_the_method_that_trains_its_members(name, method):
    own = recipe_files.load(name, method).values
    single = recipe_files.load(name, methods.about(method).members_by).values
    assert {key for key in own if own[key] != single.get(key)} == {"method", "members"}


def test_another_method_takes_over_a_chosen_learning_rate_and_not_a_default_one():
    point = Recipe().replace(method="rigl")
    assert (Recipe().lr, point.lr) == (methods.about("ssvi").lr, methods.about("rigl").lr)
    assert point.replace(method="ssvi") == Recipe()
    assert point.replace(epochs=3).lr == point.lr
    assert Recipe().replace(lr=0.7).replace(method="rigl").lr == 0.7
    assert point.replace(method="ssvi", lr=0.7).lr == 0.7


def test_the_warm_up_of_the_learning_rate_is_not_that_of_beta():
    """They would be one setting if they had one name, and a method would take over the other's share of the steps."""
    recipe = Recipe().replace(lr_warmup=0.2)
    assert recipe.replace(method="ivon").settings.lr_warmup == 0.2
    assert recipe.replace(method="vi").settings.warmup == methods.get("vi").Settings().warmup


def test_ssvi_of_version_0_1_is_read_as_local_reparameterisation():
    """Its recipes have a beta_max; the default of today has none."""
    old = recipe_files.parse('method = "ssvi"\nlr = 0.1\nbeta_max = 0.3\n', "recipe.toml")
    assert (old.method, old.lr, old.settings.beta_max) == ("ssvi-lrt", 0.1, 0.3)
    assert recipe_files.parse(old.to_toml(), "recipe.toml") == old
    assert recipe_files.parse('method = "ssvi"\n', "new.toml").method == "ssvi"
    assert recipe_files.parse("beta_max = 0.3\n", "for-all.toml").method == "ssvi"
    assert recipe_files.parse('method = "vi"\nbeta_max = 0.3\n', "dense.toml").method == "vi"
    assert recipe_files.parse('method = "ssvi"\nbeta_max = 0.3\n', "recipe.toml", "ssvi").method == "ssvi"


def test_another_method_does_not_take_over_a_setting_that_is_something_else_for_it():
    """The prior of mBNN is a Cauchy distribution, whose scale has no word."""
    assert Recipe().settings.prior_sigma == "fan-in"
    assert Recipe().replace(method="mbnn").settings.prior_sigma == methods.get("mbnn").Settings().prior_sigma


def test_every_setting_has_help_and_every_number_a_rule():
    for name, about in all_fields().items():
        assert len(about.metadata["help"]) >= 2, name
        number = isinstance(about.default, (int, float)) and not isinstance(about.default, bool)
        assert not number or about.metadata["rule"] is not None or name == "threshold", f"{name} has no rule"


def test_the_settings_of_ssvi_are_the_first_flags_after_the_common_ones():
    of_ssvi = list(fields_of("ssvi"))
    assert list(all_fields())[: len(of_ssvi)] == of_ssvi


@pytest.mark.parametrize("method", methods.NAMES)
def test_a_shared_setting_has_the_type_of_its_flag(method):
    flags = all_fields()
    for name, about in fields_of(method).items():
        number_or_word = takes_words_and_numbers(flags[name]) and isinstance(about.default, float)
        assert number_or_word or type(about.default) is type(flags[name].default), name


def test_a_flag_that_is_a_word_or_a_number_is_read_by_every_method_that_has_it():
    assert resolve("digits", {"prior_sigma": "0.3"}).settings.prior_sigma == 0.3
    assert resolve("digits", {"prior_sigma": "fan-in"}).settings.prior_sigma == "fan-in"
    assert resolve("digits", {"method": "mbnn", "prior_sigma": "0.3"}).settings.prior_sigma == 0.3
    assert resolve("digits", {"method": "group-vd", "sigma_init": "0.3"}).settings.sigma_init == 0.3


def test_a_threshold_of_an_earlier_recipe_is_read():
    assert from_mapping({"method": "vd", "threshold": "own"}).settings.threshold == 3.0
    assert from_mapping({"method": "vd", "threshold": "-2.5"}).settings.threshold == -2.5

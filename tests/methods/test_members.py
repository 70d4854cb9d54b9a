"""Every method is a module with the same members in the same order, and knows its own settings."""

import ast
import inspect
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path

import pytest
from torch import nn

import ssvi
from ssvi import methods
from ssvi.methods import natural
from ssvi.methods.base import MEMBERS, Method
from ssvi.methods.job import Job
from ssvi.methods.settings import RecipeError, Settings


def defined(path: Path) -> list[str]:
    """The members that a module defines at its top level, in the order of the file."""
    names: list[str] = []
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [target.id for target in node.targets]
        elif isinstance(node, ast.AnnAssign):
            names.append(node.target.id)
    return [name for name in names if name in MEMBERS]


@pytest.mark.parametrize("name", methods.NAMES)
def test_members_in_order(name):
    module = methods.get(name)
    assert defined(Path(module.__file__)) == list(MEMBERS)
    assert is_dataclass(module.Settings)
    assert issubclass(module.Settings, Settings)
    required = [field.name for field in fields(module.Settings) if field.default is field.default_factory is MISSING]
    assert required == [], "every setting has a default"


@pytest.mark.parametrize("name", methods.NAMES)
@pytest.mark.parametrize("member", [m for m in MEMBERS if not m[0].isupper()])
def test_a_member_takes_the_arguments_of_the_protocol(name, member):
    """mypy does not look at modules that are imported by name, so the test does."""
    asked = [p for p in inspect.signature(getattr(Method, member)).parameters if p != "self"]
    taken = inspect.signature(getattr(methods.get(name), member)).parameters
    required = [p for p, about in taken.items() if about.default is about.empty and about.kind is not about.VAR_KEYWORD]
    assert required == list(taken)[: len(required)] == asked[: len(required)]
    assert len(taken) >= len(asked)


def test_no_setting_is_defined_twice_with_another_type():
    """But for two that are a number for some methods, and a word or a number for others."""
    types: dict[str, set[str]] = {}
    for name in methods.NAMES:
        for field in fields(methods.get(name).Settings):
            types.setdefault(field.name, set()).add(str(field.type))
    number_or_word = {"float", "str | float"}
    assert {setting: kinds for setting, kinds in types.items() if len(kinds) > 1} == {
        "prior_sigma": number_or_word,  # mbnn: the scale of a Cauchy distribution
        "sigma_init": number_or_word,  # group-vd: the authors' number
    }


def test_the_table_of_the_documentation_has_every_method():
    page = (Path(__file__).parents[2] / "docs" / "methods.md").read_text()
    rows = [[cell.strip() for cell in line.split(" | ")] for line in page.splitlines() if line.startswith("| `")][1:]
    assert [row[0].split("`")[1] for row in rows] == list(methods.NAMES)
    for name, (_, _, removes, *_) in zip(methods.NAMES, rows, strict=True):
        assert removes == {"weight": "weights", "channel": "channels", "none": "-"}[methods.about(name).unit]


def test_natural_gradients_have_a_learning_rate_of_their_own():
    rates = {name: methods.about(name).lr for name in methods.NAMES}
    assert {name for name, lr in rates.items() if lr == natural.LR} == {"ssvi", "ssvi-ensemble", "ivon"}


def test_the_name_of_an_earlier_version():
    assert methods.present_name("ssvi", {"lr", "beta_max"}) == "ssvi-lrt"
    for name in methods.NAMES:
        assert methods.present_name(name, {"lr"}) == name
    assert methods.present_name("vi", {"beta_max"}) == "vi"


def ivon_of(steps_per_epoch: int, **settings: float) -> ssvi.IVON:
    """The optimiser of a training of ten epochs."""
    job = Job(
        settings=methods.get("ssvi").Settings(**settings), lr=0.1, epochs=10, per_epoch=False, seed=0, train_size=100,
        steps_per_epoch=steps_per_epoch, fresh=lambda: nn.Linear(4, 2), inputs=lambda: iter(()), states=None, nll=None,
    )  # fmt: skip
    return natural.optimizer(job, ssvi.to_bnn(nn.Linear(4, 2), 0.5))[0]


def b2_of(steps_per_epoch: int, **settings: float) -> float:
    """The b2 with which it averages the curvature."""
    return ivon_of(steps_per_epoch, **settings).param_groups[0]["betas"][1]


def test_the_memory_of_the_curvature_follows_the_length_of_the_training():
    assert b2_of(100, memory=0.4) == 1 - 1 / 400
    assert b2_of(1, memory=0.4) == 1 - 1 / 50, "one step sees it with much noise"
    assert b2_of(100, b2=0.9) == 0.9
    with pytest.raises(RecipeError, match=r"memory=0.4 and b2=0.9 .* give one of them"):
        b2_of(100, memory=0.4, b2=0.9)


def test_the_temperature_rises_in_its_warm_up_and_stays():
    ivon = ivon_of(4, temperature=0.5, temperature_warmup=0.5)

    def at(step: int) -> float:
        ivon.param_groups[0]["step"] = step
        return ivon.temperature

    assert [at(step) for step in (0, 10, 20, 40)] == pytest.approx([0.005, 0.2525, 0.5, 0.5])
    assert ivon_of(4, temperature=0.5).temperature == 0.5

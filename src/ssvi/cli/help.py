"""The help of `ssvi train`, `compare` and `tune`: the settings of one method, in groups, with the values of one recipe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import Field
from typing import Any, NamedTuple

import click

from ssvi import methods
from ssvi.cli.options import DEFAULT_RECIPE, FIELDS, resolve
from ssvi.errors import UserError
from ssvi.methods.settings import help_group, takes_words_and_numbers
from ssvi.training.recipe import COMMON, Recipe, fields_of

GROUPS: dict[str, tuple[str, ...]] = {
    "Data": (
        "data", "target", "task", "likelihood", "categories", "ignore", "test", "test_share", "validation", "examples",
        "size", "fit", "channels", "augment", "data_dir",
    ),
    "Network": ("model", "width", "pretrained", "warm_start", "warm_lr", "sparsity"),
    "Posterior": ("samples", "batchnorm_batches"),
    "Updates of gamma": (),
    "Optimiser": ("epochs", "batch_size", "micro_batches", "lr", "per_epoch", "clip"),
    "Run": ("method", "seed", "device", "precision", "threads", "sync_batchnorm", "checkpoint_steps"),
}  # fmt: skip
"""The groups, and the settings of each that all methods have. Those of methods say it in `Settings.GROUP`. What is in none
of them is an option of the command, and belongs to the run."""

LONGEST = 30
"""Characters of the choices that stand beside a flag; those of more characters stand in its text."""

WORDS = "ssvi.words"
Row = tuple[str, str]


class Shown(NamedTuple):
    """The recipes that the help is about, one for each method, and the name that was typed."""

    name: str
    recipes: tuple[Recipe, ...]
    problem: str = ""
    """Why the recipe that was typed is not shown."""

    @property
    def methods(self) -> str:
        """The names of the methods."""
        return ", ".join(recipe.method for recipe in self.recipes)

    def of(self, setting: str) -> Recipe | None:
        """The first recipe that has the setting."""
        return next((recipe for recipe in self.recipes if setting in recipe.values), None)


class RecipeCommand(click.Command):
    """A command with a flag for every setting; its help shows those that the recipe and the method in question have."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the words, since the help is asked for before they are parsed."""
        ctx.meta[WORDS] = tuple(args)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options in their groups, and how to see those of other methods."""
        shown = _shown(self._typed(ctx))
        groups: dict[str, list[Row]] = {title: [] for title in (*GROUPS, "")}
        for option in self.get_params(ctx):
            if isinstance(option, click.Option) and (row := _row(ctx, option, shown)) is not None:
                groups[_group(str(option.name), shown)].append(row)
        own = groups.pop("")
        run = groups.pop("Run")
        for title, rows in (*groups.items(), (f"Of {shown.methods} alone", own), ("Run", run)):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        _explain(formatter, ctx, shown)

    def _typed(self, ctx: click.Context) -> dict[str, Any]:
        """The values that were typed, by name; nothing if they cannot be parsed."""
        try:
            return dict(self.make_parser(ctx).parse_args(list(ctx.meta.get(WORDS, ())))[0])
        except click.UsageError:
            return {}


def _shown(typed: dict[str, Any]) -> Shown:
    """The recipe and the methods that were typed, or the default ones."""
    name = _text(typed, "recipe") or DEFAULT_RECIPE
    asked = [word.strip() for key in ("method", "methods") for word in _text(typed, key).split(",") if word.strip()]
    target = {"target": target} if (target := _text(typed, "target")) else {}
    try:
        recipes = [resolve(name, target | ({"method": method} if method else {})) for method in asked or [""]]
    except UserError as error:
        return Shown(DEFAULT_RECIPE, (resolve(DEFAULT_RECIPE, {}),), str(error))
    return Shown(name, tuple(recipes))


def _text(typed: dict[str, Any], key: str) -> str:
    value = typed.get(key)
    return value if isinstance(value, str) else ""


def _row(ctx: click.Context, option: click.Option, shown: Shown) -> Row | None:
    """The flag and its text; None for a setting that the methods do not have."""
    name = str(option.name)
    if name not in FIELDS:
        is_density = name == "sparsity"  # another word for it
        return None if is_density and shown.of("density") is None else option.get_help_record(ctx)
    recipe = shown.of(name)
    if recipe is None:
        return None
    about = fields_of(recipe.method)[name]
    flag, text = " / ".join([*option.opts, *option.secondary_opts]), about.metadata["help"]
    kind, words = _kind(about), _choices(about)
    if not kind.startswith("[") and any(word not in text for word in words):
        text += f": one of {', '.join(words)}"
    return f"{flag} {kind}".strip(), f"{text}{_value(recipe.values[name])}"


def _kind(about: Field[Any]) -> str:
    """What stands behind the flag: its choices if they are short, or the kind of value; nothing behind a switch."""
    if isinstance(about.default, bool):
        return ""
    if isinstance(about.default, tuple):
        return "A,B,..."
    mixed = takes_words_and_numbers(about)
    choices = "|".join([*_choices(about), *(["NUMBER"] if mixed else [])])
    if 0 < len(choices) <= LONGEST:
        return f"[{choices}]"
    return "TEXT" if mixed else {int: "INTEGER", float: "FLOAT"}.get(type(about.default), "TEXT")


def _choices(about: Field[Any]) -> tuple[str, ...]:
    rule = about.metadata["rule"]
    return () if rule is None else rule.choices


def _value(value: object) -> str:
    """The value of the recipe, in brackets."""
    if isinstance(value, bool):
        return " [on]" if value else " [off]"
    text = ",".join(value) if isinstance(value, tuple) else str(value)
    return f" [{text}]" if text else ""


def _group(name: str, shown: Shown) -> str:
    """The group of an option; "" for a setting that its method declares itself."""
    for title, names in GROUPS.items():
        if name in names:
            return title
    recipe = shown.of(name)
    if recipe is None or name in COMMON:
        return "Run"
    return help_group(methods.get(recipe.method).Settings, name) or ""


def _explain(formatter: click.HelpFormatter, ctx: click.Context, shown: Shown) -> None:
    """Whose values these are, and how to see others."""
    flag = "--methods" if "methods" in _names(ctx.command.params) else "--method"
    lines: Sequence[str] = (
        f"Values in brackets are those of the recipe {shown.name} for "
        f"{'the first of ' if len(shown.recipes) > 1 else ''}{shown.methods}.",
        f"For another recipe or method: {ctx.command_path} RECIPE {flag} NAME --help. "
        f"Names of methods: {', '.join(methods.NAMES)}.",
    )
    formatter.write_paragraph()
    for line in (*lines, *([f"Not shown: {shown.problem}."] if shown.problem else [])):
        formatter.write_text(line)


def _names(parameters: Iterable[click.Parameter]) -> set[str]:
    return {str(parameter.name) for parameter in parameters}

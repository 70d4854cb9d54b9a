"""The commands: their names, their short helps, and where they are. Nothing here imports torch."""

from __future__ import annotations

from importlib import import_module

import click

COMMANDS = {
    "bench": (
        "ssvi.cli.bench:bench_command",
        "Measure speed and memory against dense VI and the deterministic network. Takes minutes; needs an idle machine.",
    ),
    "compare": (
        "ssvi.cli.compare:compare_command",
        "Train a RECIPE by several methods, densities and seeds, and print the tables of the paper.",
    ),
    "corrupt": (
        "ssvi.cli.evaluate:corrupt_command",
        "Quality of RUN under the 15 common corruptions at 5 severities.",
    ),
    "demo": (
        "ssvi.cli.demo:demo_command",
        "Two minutes, offline: plain training, dense variational inference and SSVI at 95 % sparsity on handwritten digits.",
    ),
    "doctor": (
        "ssvi.cli.installation:doctor_command",
        "Tell what this installation has: versions, threads, kernels, and what is missing.",
    ),
    "ensemble": (
        "ssvi.cli.ensemble:ensemble_command",
        "Make one run of several finished RUNs of the same recipe with different seeds: an ensemble of their networks.",
    ),
    "evaluate": (
        "ssvi.cli.evaluate:evaluate_command",
        "Quality of the predictions of RUN on its test images or rows, with intervals; and what the network costs.",
    ),
    "inspect": (
        "ssvi.cli.inspect:inspect_command",
        "Show each layer of RUN after training, and whether the removal criteria choose the same weights.",
    ),
    "ood": (
        "ssvi.cli.evaluate:ood_command",
        "Does the uncertainty of RUN show which images belong to none of its classes?",
    ),
    "plot": (
        "ssvi.cli.plot:plot_command",
        "Draw a number of many RUNS against one of their settings, or against the epochs, with bands over the seeds.",
    ),
    "predict": (
        "ssvi.cli.predict:predict_command",
        'What RUN says of image files, of all images in folders, or of the rows of a table; or "don\'t know".',
    ),
    "recipes": (
        "ssvi.cli.installation:recipes_command",
        "List the recipes that come with the package, and the data sets that it knows.",
    ),
    "report": (
        "ssvi.cli.report:report_command",
        "One self-contained HTML page about one RUN, or several side by side; and the same as Markdown, a model card.",
    ),
    "reproduce": (
        "ssvi.cli.reproduce:reproduce_command",
        "Repeat tables and figures of the paper, and print ours beside the paper's. Without ITEM, list them.",
    ),
    "serve": (
        "ssvi.cli.serve:serve_command",
        "Answer images over HTTP with RUN: class, probabilities and uncertainty as JSON, and a page to drop an image on.",
    ),
    "train": (
        "ssvi.cli.train:train_command",
        "Train a network by a RECIPE: a name from `ssvi recipes` (default: digits) or the path of a .toml file.",
    ),
    "trust": (
        "ssvi.cli.trust:trust_command",
        "Let run folders and model files name code of yours: a network package.module:function, the module of a method.",
    ),
    "tune": (
        "ssvi.cli.tune:tune_command",
        "Search the settings of each method with the same budget, and print the best as tables for the RECIPE.",
    ),
    "zoo": (
        "ssvi.cli.zoo:zoo_command",
        "List the networks that come with the package, with their quality on test images; or copy one of them.",
    ),
}
"""Name: where the command is, as module:attribute, and the first line of its docstring."""


SHOW_TRACEBACKS = "ssvi.debug"
"""Where the context of a command keeps `--debug`."""


def _show_tracebacks(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    """Note `--debug`, which may stand before the name of the command or behind it."""
    ctx.meta[SHOW_TRACEBACKS] = value or ctx.meta.get(SHOW_TRACEBACKS, False)


DEBUG = click.Option(
    ["--debug"], is_flag=True, is_eager=True, expose_value=False, callback=_show_tracebacks,
    help="Show the traceback of every error.",
)  # fmt: skip


def load_command(name: str) -> click.Command:
    """The command of this name; imports its module."""
    module, attribute = COMMANDS[name][0].split(":")
    command: click.Command = getattr(import_module(module), attribute)
    if DEBUG not in command.params:
        command.params.append(DEBUG)
    return command

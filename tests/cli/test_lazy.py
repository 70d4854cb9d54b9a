"""What is imported when: help, version and completion answer without torch, and the library without the command line."""

import os
import pkgutil
import subprocess
import sys
from importlib import import_module

import click
import pytest

import ssvi.cli
from ssvi.cli import COMMANDS, load_command

TELL_MODULES = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
COMMAND_LINE = "from ssvi.cli import main; sys.argv = ['ssvi', *sys.argv[1:]]; main()"


def run(program: str, *words: str, **environment: str) -> tuple[str, set[str]]:
    """What a program prints in a Python of its own, and the modules that are loaded at its end."""
    done = subprocess.run(
        [sys.executable, "-c", TELL_MODULES + program, *words],
        env=os.environ | environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout, set(done.stderr.split())


def assert_light(modules: set[str]) -> None:
    """The command line is loaded, and nothing that takes long."""
    assert "ssvi.cli" in modules
    heavy = {"torch", "numpy", "rich", "ssvi.nn", "ssvi.methods", "ssvi.data", "ssvi.training", "ssvi.evaluation"}
    assert modules & heavy == set()


def test_version_loads_no_torch():
    printed, modules = run(COMMAND_LINE, "--version")
    assert printed == f"ssvi, version {ssvi.__version__}\n"
    assert_light(modules)
    assert "importlib.metadata" not in modules


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_lists_every_command_and_loads_no_torch(flag):
    printed, modules = run(COMMAND_LINE, flag)
    listed = printed.split("Commands:\n")[1].splitlines()
    assert [line.split()[0] for line in listed] == sorted(COMMANDS)
    assert_light(modules)


def test_completion_of_a_command_loads_no_torch():
    ask = {"_SSVI_COMPLETE": "bash_complete", "COMP_WORDS": "ssvi co", "COMP_CWORD": "1"}
    printed, modules = run(COMMAND_LINE, **ask)
    assert printed.splitlines() == ["plain,compare", "plain,corrupt"]
    assert_light(modules)


def test_completion_knows_the_flags_of_a_command():
    ask = {"_SSVI_COMPLETE": "bash_complete", "COMP_WORDS": "ssvi doctor --j", "COMP_CWORD": "2"}
    assert run(COMMAND_LINE, **ask)[0] == "plain,--json\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_says_what_the_command_says_itself(name):
    command = load_command(name)
    assert command.name == name
    assert command.help.splitlines()[0] == COMMANDS[name][1]


def test_no_command_is_missing_in_the_table():
    places = set()
    for info in pkgutil.iter_modules(ssvi.cli.__path__, "ssvi.cli."):
        for attribute, value in vars(import_module(info.name)).items():
            if isinstance(value, click.Command) and value.callback.__module__ == info.name:
                places.add(f"{info.name}:{attribute}")
    assert places == {place for place, _ in COMMANDS.values()}


def test_the_bare_import_loads_nothing():
    _, modules = run("import ssvi")
    assert "ssvi" in modules
    assert {name for name in modules if name.startswith("ssvi.")} == set()
    assert "torch" not in modules


def test_the_library_loads_neither_command_line_nor_methods_nor_data():
    _, modules = run("import ssvi; ssvi.to_bnn")
    assert {"torch", "ssvi.nn.convert"} <= modules
    assert modules & {"click", "ssvi.cli", "ssvi.methods", "ssvi.data", "ssvi.training"} == set()


def test_prediction_loads_no_compiler():
    _, modules = run("import torch, ssvi; ssvi.predict(ssvi.to_bnn(torch.nn.Linear(4, 2), 0.5), torch.ones(1, 4))")
    assert "torch._dynamo" not in modules  # two seconds


OWN_LOOP = """
import torch, ssvi
bnn = ssvi.to_bnn(torch.nn.Linear(8, 4), 0.5)
optimizer = ssvi.IVON(bnn, train_size=16)
subspace = ssvi.Subspace(bnn, optimizer, rate=0.5, every=1, until=10)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 3)
for _ in range(3):
    with optimizer.sampled():
        bnn(torch.ones(2, 8)).square().mean().backward()
    optimizer.step(), subspace.step(), scheduler.step()
optimizer.load_state_dict(optimizer.state_dict())
"""


def test_natural_gradients_and_updates_of_gamma_load_no_compiler():
    _, modules = run(OWN_LOOP)
    assert "torch._dynamo" not in modules

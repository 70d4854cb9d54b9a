"""The packages of `make dist`: what is in them, and what they do in an empty environment, with and without a compiler."""

import json
import os
import platform
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from PIL import Image
from readme import quick_start

from ssvi import __version__, zoo
from ssvi.data import load

pytestmark = [pytest.mark.packages, pytest.mark.timeout(900)]

ROOT = Path(__file__).parent.parent.parent
DIST = ROOT / "dist"
KERNELS = {
    "x86_64": {"kernels_x86_64.so", "kernels_x86_64_v3.so", "kernels_x86_64_v4.so"},
    "aarch64": {"kernels_arm64.so"},
}
FOLDER = Path("ssvi/kernels/native")
MOST_BYTES = 5_000_000


def package(ending: str) -> Path:
    """The one file of `make dist` that ends so."""
    (file,) = DIST.glob(f"ssvi-{__version__}*{ending}")
    return file


# ---- what is in them -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", KERNELS)
def test_a_wheel_is_small_and_has_the_kernels_of_its_machine_alone(machine):
    wheel = package(f"{machine}.whl")
    assert wheel.name.startswith(f"ssvi-{__version__}-py3-none-manylinux_2_27_"), "what docs/packages.md promises"
    assert wheel.stat().st_size < MOST_BYTES
    names = {Path(name) for name in zipfile.ZipFile(wheel).namelist()}
    assert {name.name for name in names if name.suffix == ".so"} == KERNELS[machine]
    assert {name.parent for name in names if name.suffix == ".so"} == {FOLDER}
    assert {name.parts[0] for name in names} == {"ssvi", f"ssvi-{__version__}.dist-info"}, "no libraries of others"


# ---- what they do ----------------------------------------------------------------------------------------------------


class Environment:
    """A virtual environment with torch and the other dependencies, whose programs find no compiler unless told to."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.python = folder, folder / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)

    def run(self, *words: object, **variables: str) -> str:
        """What `python WORDS` prints, far from our source."""
        kept = {name: os.environ[name] for name in ("HOME", "PIP_CONFIG_FILE", "SSL_CERT_FILE") if name in os.environ}
        done = subprocess.run(
            [self.python, *map(str, words)],
            cwd=self.folder, env=kept | {"PATH": "/nowhere"} | variables, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def pip(self, *words: object, **variables: str) -> None:
        """Install packages."""
        self.run("-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words, **variables)

    def doctor(self, **variables: str) -> dict[str, object]:
        """What `ssvi doctor` says."""
        return json.loads(self.run("-m", "ssvi", "doctor", "--json", **variables))


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The wheel of this machine and its dependencies, in an environment that was empty."""
    made = Environment(tmp_path_factory.mktemp("empty") / "environment")
    made.pip("--constraint", ROOT / "constraints.txt", package(f"{platform.machine()}.whl"))
    return made


def test_the_wheel_needs_no_compiler(environment):
    told = environment.doctor()
    assert told["ssvi"] == __version__
    assert told["native kernels"].startswith("yes, built for")


def test_torch_and_the_kernels_share_one_openmp(environment):
    program = (
        "import torch, ssvi; bnn = ssvi.to_bnn(torch.nn.Linear(64, 64), 0.1); bnn(torch.randn(8, 64)); "
        "print({line.split()[-1] for line in open('/proc/self/maps') if 'omp' in line.split('/')[-1]}, sep='')"
    )
    (runtime,) = eval(environment.run("-c", program))
    assert Path(runtime).name.startswith("libgomp")
    assert "torch" in Path(runtime).parts or "torch.libs" in Path(runtime).parts


QUICK_START = """
import torch
from ssvi.data import load
torch.manual_seed(0)
torch.set_num_threads(1)
digits = load("digits")
train_set = torch.utils.data.TensorDataset(digits.normalise(digits.train.x), digits.train.y)
images, epochs = digits.normalise(digits.test.x), 2
{}
print((probs.argmax(-1) == digits.test.y).double().mean().item())
"""


def test_the_quick_start_runs_on_the_wheel(environment):
    assert float(environment.run("-c", QUICK_START.format(quick_start()))) > 0.9


def test_a_network_of_the_zoo_answers_offline(environment, tmp_path):
    images = load("digits").test.x[:1]
    Image.fromarray(images[0, 0].numpy()).save(tmp_path / "image.png")
    no_network = {"https_proxy": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9"}
    said = environment.run("-m", "ssvi", "predict", "--model", "digits", tmp_path / "image.png", "--json", **no_network)
    assert json.loads(said)["answers"][0]["class"] == zoo.load("digits").predict(images).classes[0]


@pytest.mark.parametrize("compiler", [True, False], ids=["with a compiler", "without"])
def test_the_sdist_installs_with_and_without_a_compiler(environment, tmp_path, compiler):
    """Into a folder that is found before the wheel."""
    if compiler and not shutil.which("g++"):
        pytest.skip("no g++")
    path = {"PATH": os.environ["PATH"]} if compiler else {}
    environment.pip("--no-deps", "--target", tmp_path / "built", package(".tar.gz"), **path)
    found = {"PYTHONPATH": str(tmp_path / "built")}
    libraries = {file.name for file in (tmp_path / "built" / FOLDER).glob("*.so")}
    assert libraries == (KERNELS[platform.machine()] if compiler else set())
    told = str(environment.doctor(**found)["native kernels"])
    assert told.startswith("yes, built for" if compiler else "no: the native kernels were not built: install a C++")
    assert float(environment.run("-c", QUICK_START.format(quick_start()), **found)) > 0.9

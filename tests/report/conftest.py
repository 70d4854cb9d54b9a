"""Reports of small runs, written once."""

import shutil

import pytest
from small_runs import finished

from ssvi.evaluation import FinishedRun, evaluate_corruption
from ssvi.report import write_report


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Copies of a run of each method, one of them under a name that would break a careless page."""
    root = tmp_path_factory.mktemp("report")
    names = {"ssvi": "a<b> & 'c'", "vi": "vi", "deterministic": "deterministic-with-a-very-long-name"}
    for method, name in names.items():
        shutil.copytree(finished(method), root / name)
    sparse = FinishedRun(root / names["ssvi"])
    sparse.write("corruption.json", evaluate_corruption(sparse, 1, images=20, cache=False))
    return root


@pytest.fixture(scope="session")
def report(folder):
    runs = [FinishedRun(path) for path in sorted(path for path in folder.iterdir() if path.is_dir())]
    return write_report(runs, folder / "report.html", samples=2)


@pytest.fixture(scope="session")
def written(report):
    return report.html.read_text(), report.markdown.read_text()

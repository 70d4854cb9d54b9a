"""The drawing of a comparison at equal time: which words its labels have."""

from pathlib import Path

import pytest

EXPERIMENTS = Path(__file__).parent.parent.parent / "experiments"


@pytest.fixture(autouse=True)
def on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))


@pytest.mark.parametrize(
    ("entrants", "expected"),
    [
        ([("ssvi", 32, "long"), ("rigl", 32, "long")], ["ssvi", "rigl"]),
        ([("ssvi", 32, ""), ("ssvi", 32, "long")], ["ssvi", "ssvi long"]),
        ([("ssvi", 32, ""), ("vi", 16, "")], ["w32 ssvi", "w16 vi"]),
    ],
)
def test_labels_say_what_differs(entrants, expected):
    from equal.curves import Progress, labels
    from equal.entrants import Entrant

    assert labels([Progress(Entrant(*entrant), 1, ()) for entrant in entrants]) == expected

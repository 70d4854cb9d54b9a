"""Networks in folders and on the Hub: what is written can be read again, and the Hub is asked for the right things."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import yaml
from small_runs import finished
from small_tables import finished_table
from torch import nn

import ssvi
from ssvi.errors import UserError
from ssvi.hub import HubError

huggingface_hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed: `ssvi[hub]`")


@pytest.fixture
def own() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


def probabilities(bnn: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return ssvi.predict(bnn, x, generator=torch.Generator().manual_seed(0))


def front_matter(card: str) -> dict[str, object]:
    return yaml.safe_load(card.split("---\n")[1])


def test_a_network_of_ones_own_comes_back_from_its_folder(tmp_path: Path, own: nn.Module):
    bnn, x = ssvi.to_bnn(own, 0.5, seed=0), torch.randn(4, 6)
    folder = ssvi.save_pretrained(bnn, tmp_path / "net")
    assert sorted(file.name for file in folder.iterdir()) == ["README.md", "model.safetensors"]
    again = ssvi.from_pretrained(folder, net=own)
    assert torch.equal(probabilities(again, x), probabilities(bnn, x))
    assert front_matter((folder / "README.md").read_text())["library_name"] == "ssvi"


def test_the_card_of_a_run_is_its_report(tmp_path: Path):
    run = shutil.copytree(finished(), tmp_path / "run")
    folder = ssvi.save_pretrained(run, tmp_path / "shared")
    names = {"README.md", "model.safetensors", "recipe.toml", "report.html"}
    assert {file.name for file in folder.iterdir()} == names
    card = (folder / "README.md").read_text()
    assert "## Use" in card
    assert "marginal calibration error" in card
    (entry,) = front_matter(card)["model-index"]
    metrics = {metric["type"]: metric["value"] for metric in entry["results"][0]["metrics"]}
    assert 0 < metrics["accuracy"] <= 1
    assert metrics["nll"] > 0
    x = torch.randn(2, 1, 8, 8)
    assert torch.equal(probabilities(ssvi.from_pretrained(folder), x), probabilities(ssvi.load(run), x))


def test_a_run_on_a_table_is_refused_with_a_line(tmp_path: Path):
    with pytest.raises(UserError, match="was trained on a table, but this needs a run on images"):
        ssvi.save_pretrained(finished_table(), tmp_path / "card")
    assert not (tmp_path / "card" / "README.md").exists()


def test_a_name_that_is_no_folder_is_downloaded(tmp_path: Path, own: nn.Module, monkeypatch):
    folder = ssvi.save_pretrained(ssvi.to_bnn(own, 0.5, seed=0), tmp_path / "net")
    asked = {}

    def download(name: str, **arguments: object) -> str:
        asked.update(name=name, **arguments)
        return str(folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert isinstance(ssvi.from_pretrained("somebody/net", net=own, revision="v1"), nn.Sequential)
    assert asked == {"name": "somebody/net", "allow_patterns": ["model.safetensors"], "revision": "v1"}


def test_what_the_hub_says_is_passed_on(monkeypatch):
    def download(name: str, **arguments: object) -> str:
        raise OSError("no connection")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    with pytest.raises(HubError, match=r"somebody/net is neither a folder nor .* no connection"):
        ssvi.from_pretrained("somebody/net")


def test_upload_sends_the_folder_and_returns_the_address(own: nn.Module, monkeypatch):
    sent = {}

    def upload(repo_id: str, folder_path: str, commit_message: str) -> None:
        sent.update({file.name: file.stat().st_size for file in Path(folder_path).iterdir()})

    def api(token: str | None) -> SimpleNamespace:
        assert token == "secret"
        create = lambda repo_id, private, exist_ok: f"https://hub/{repo_id}?private={private}"  # noqa: E731
        return SimpleNamespace(create_repo=create, upload_folder=upload)

    monkeypatch.setattr(huggingface_hub, "HfApi", api)
    address = ssvi.push_to_hub(ssvi.to_bnn(own, 0.5), "somebody/net", private=True, token="secret")
    assert address == "https://hub/somebody/net?private=True"
    assert set(sent) == {"README.md", "model.safetensors"}
    assert min(sent.values()) > 0


def test_without_the_package_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(HubError, match=r"pip install 'ssvi\[hub\]'"):
        ssvi.from_pretrained("somebody/net")

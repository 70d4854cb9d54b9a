"""Networks on the Hugging Face Hub: a folder with the model file and a model card, here or there.

The card of a run of `ssvi train` is its report. `pip install 'ssvi[hub]'` brings what the Hub needs; a folder of your own
needs nothing.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch import nn

from ssvi.errors import UserError
from ssvi.evaluation import FinishedRun
from ssvi.nn.summary import summary
from ssvi.report import ReportedRun, write_report
from ssvi.training import model_file
from ssvi.training.model_header import ModelAbout, ModelFileError
from ssvi.training.trusted_code import UntrustedCodeError

MODEL, CARD = "model.safetensors", "README.md"


class HubError(UserError, RuntimeError):
    """The Hub, or what it needs, is not there."""


def save_pretrained(source: nn.Module | str | Path, folder: str | Path) -> Path:
    """Write a network, or the finished run in a folder, to `folder`: model.safetensors and README.md, the model card.

    Of a run the card is the report (computed if need be), and the folder also has its recipe and the report as HTML.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    if isinstance(source, nn.Module):
        model_file.save(source, target / MODEL)
        card = _front_matter([]) + f"# A Bayesian network\n\n```\n{summary(source)}\n```\n" + _usage(own=True)
    else:
        card = _copy_run(Path(source), target)
    (target / CARD).write_text(card, encoding="utf-8")
    return target


def from_pretrained(name: str | Path, net: nn.Module | None = None, **download: Any) -> nn.Module:
    """The network in a folder of `save_pretrained`, or in a repository of the Hub ("owner/name"), in eval mode.

    `net` is the plain network that was converted; runs of `ssvi train` do not need it. What else is given (revision,
    token, cache_dir, ...) goes to `huggingface_hub.snapshot_download`. A file of tensors is read. Code that it names is run
    only if you trust that name (`ssvi trust NAME`); else give `net`.
    """
    if Path(name).exists():
        return model_file.load(name, net)
    hub = _huggingface_hub()
    try:
        folder = hub.snapshot_download(str(name), allow_patterns=[MODEL], **download)
    except (OSError, ValueError) as error:  # those of huggingface_hub are one of the two
        raise HubError(f"{name} is neither a folder nor can it be had from the Hub: {error}") from error
    try:
        return model_file.load(folder, net)
    except (ModelFileError, UntrustedCodeError) as error:
        raise HubError(f"{name} on the Hub: {error}") from error


def push_to_hub(
    source: nn.Module | str | Path, repo_id: str, *, private: bool = False, token: str | None = None
) -> str:
    """Upload what `save_pretrained` writes to the repository "owner/name", which is made if need be; returns its address."""
    api = _huggingface_hub().HfApi(token=token)
    with TemporaryDirectory() as folder:
        save_pretrained(source, folder)
        try:
            address = api.create_repo(repo_id, private=private, exist_ok=True)
            api.upload_folder(repo_id=repo_id, folder_path=folder, commit_message="Upload by ssvi")
        except (OSError, ValueError) as error:
            raise HubError(
                f"{repo_id} could not be uploaded: {error}. Log in with `hf auth login`, or give token"
            ) from error
    return str(address)


def _copy_run(run: Path, target: Path) -> str:
    """Copy what others need of a run, write its report, and return the card."""
    finished = FinishedRun(run)
    about = finished.about  # an error for a run on a table: the card tells of images
    report = write_report([finished], target / "report.html")
    for name in (MODEL, "recipe.toml"):
        shutil.copyfile(run / name, target / name)
    body = report.markdown.read_text(encoding="utf-8")
    report.markdown.unlink()  # it becomes the card
    return (
        _front_matter([one for one in report.runs if isinstance(one, ReportedRun)])
        + body
        + _usage(own=False)
        + _images(about)
    )


def _front_matter(runs: Sequence[ReportedRun]) -> str:
    """What the Hub reads of a card: YAML, of which JSON is a part."""
    facts: dict[str, Any] = {
        "library_name": "ssvi",
        "tags": ["bayesian-neural-network", "sparse", "variational-inference", "uncertainty"],
    }
    if runs:
        facts |= {"pipeline_tag": "image-classification", "model-index": [_results(run) for run in runs]}
    lines = [f"{key}: {json.dumps(value)}" for key, value in facts.items()]
    return "\n".join(["---", *lines, "---", "", ""])


def _results(run: ReportedRun) -> dict[str, Any]:
    """The numbers of a run in the form of the Hub's model-index."""
    found = run.evaluation.metrics
    metrics = [{"type": name, "value": round(found[name].value, 6)} for name in ("accuracy", "nll", "ece")]
    data = {"name": run.recipe.data, "type": run.recipe.data}
    task = {"type": "image-classification"}
    return {"name": run.name, "results": [{"task": task, "dataset": data, "metrics": metrics}]}


def _usage(own: bool) -> str:
    net = ", net=your_plain_network" if own else ""
    return (
        "\n## Use\n\n```python\nimport ssvi\n\n"
        f'bnn = ssvi.from_pretrained("owner/name"{net})\nprobabilities = ssvi.predict(bnn, x)\n```\n'
    )


def _images(about: ModelAbout) -> str:
    """Which images the network sees, for the card."""
    numbers = {"mean": about.mean, "std": about.std}
    moments = " and ".join(f"{name} {', '.join(f'{v:.4f}' for v in values)}" for name, values in numbers.items())
    return (
        f"\n`x` are images of {' x '.join(map(str, about.shape))} (channels x height x width), from 0 to 1, normalised by "
        f"{moments}. In a folder with this repository, `ssvi.load_run(folder).predict(images)` does this for any image.\n"
    )


def _huggingface_hub() -> Any:
    try:
        import huggingface_hub
    except ImportError as error:
        raise HubError("the Hub needs the package huggingface_hub: pip install 'ssvi[hub]'") from error
    return huggingface_hub

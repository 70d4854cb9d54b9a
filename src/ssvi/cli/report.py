"""`ssvi report`: one or several finished runs as a page."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from ssvi.cli.completion import run_folders
from ssvi.cli.options import open_run, run_options, samples_of
from ssvi.cli.progress import bar
from ssvi.evaluation import FinishedRun
from ssvi.report import write_report


@click.command("report")
@click.argument(
    "runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path), shell_complete=run_folders
)
@click.option("--out", type=click.Path(path_type=Path), help="the HTML file; the Markdown file is written beside it")
@run_options
@click.pass_context
def report_command(
    context: click.Context, runs: tuple[Path, ...], out: Path | None, samples: int, seed: int, data_dir: Path | None,
    threads: int | None, device: str, as_json: bool,
) -> None:  # fmt: skip
    """One self-contained HTML page about one RUN, or several side by side; and the same as Markdown, a model card.

    It shows the results that are stored in the run folders. If that of `evaluate` is missing, it is computed; if there is
    none of `ood`, that on noise is. The default of --out is report.html in RUN, and for several runs, or a RUN that is
    read-only, report-A-B.html in the current folder. For a RUN on a table --samples is by default that of the recipe.
    """
    if out is not None and out.suffix not in ("", ".html"):
        raise click.BadParameter(f"{out}: the page is HTML, so give a name that ends in .html", param_hint="--out")
    finished = [open_run(path, data_dir, threads, device) for path in runs]
    report = write_report(
        finished, out or _default_target(finished), samples_of(context, finished[0], samples), seed, bar
    )
    if as_json:
        click.echo(json.dumps({"html": str(report.html), "markdown": str(report.markdown)}))
    else:
        click.echo(f"report: {report.html}\nmodel card: {report.markdown}")


def _default_target(runs: list[FinishedRun]) -> Path:
    """In the run folder; several runs, or one that cannot be written, have their report in the current folder."""
    if len(runs) == 1 and os.access(runs[0].folder.path, os.W_OK):
        return runs[0].folder.path / "report.html"
    return Path(f"report-{'-'.join(run.name for run in runs)}.html")

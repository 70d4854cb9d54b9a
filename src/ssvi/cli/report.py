"""`ssvi report`: one or several finished runs as a page."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ssvi.cli.completion import run_folders
from ssvi.cli.options import open_run, run_options, samples_of
from ssvi.cli.progress import bar
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
    none of `ood`, that on noise is. The default of --out is report.html in RUN, and for several runs
    report-A-B.html in the current folder. For a RUN on a table --samples is by default that of the recipe.
    """
    if out is not None and out.suffix not in ("", ".html"):
        raise click.BadParameter(f"{out}: the page is HTML, so give a name that ends in .html", param_hint="--out")
    finished = [open_run(path, data_dir, threads, device) for path in runs]
    target = out or (
        runs[0] / "report.html" if len(runs) == 1 else Path(f"report-{'-'.join(r.name for r in finished)}.html")
    )
    report = write_report(finished, target, samples_of(context, finished[0], samples), seed, bar)
    if as_json:
        click.echo(json.dumps({"html": str(report.html), "markdown": str(report.markdown)}))
    else:
        click.echo(f"report: {report.html}\nmodel card: {report.markdown}")

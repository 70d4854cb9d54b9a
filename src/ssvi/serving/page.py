"""The page of the server: one HTML file that loads nothing else."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import ssvi
from ssvi.plotting import style
from ssvi.serving.model import Facts


def _part(name: str) -> Markup:
    return Markup((files("ssvi.serving") / "templates" / name).read_text(encoding="utf-8"))  # our own file  # nosec B704


SCRIPT = Markup("\n") + _part("page.js")
"""What stands between the script tags, letter by letter: the policy has its hash."""

POLICY = (
    "default-src 'none'; connect-src 'self'; img-src blob: data:; style-src 'unsafe-inline'; base-uri 'none'; "
    f"form-action 'none'; frame-ancestors 'none'; script-src 'sha256-{b64encode(sha256(SCRIPT.encode()).digest()).decode()}'"
)
"""The browser runs this script and no other, and talks to this server and no other."""


def page(facts: Facts) -> str:
    """The page for a model of this kind."""
    environment = Environment(
        loader=PackageLoader("ssvi.serving"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("page.html.jinja").render(
        facts=facts, style=style() + _part("page.css"), script=SCRIPT, version=ssvi.__version__
    )

"""The page itself: one file with its style, scripts and data inside, that can load nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from ...config import BASELINE
from ..figures import config
from .examples import ALPHABET, HALF, TOP, as_json

CODE = {"alphabet": ALPHABET, "top": TOP, "half": HALF, "baseline": BASELINE}
"""What the script needs to read the texts."""
SCRIPTS = ("page.js", "charts.js", "numbers.js", "examples.js")


def render(specs: Mapping[str, Any], texts: Sequence[Mapping[str, Any]], **shown: Any) -> str:
    """HTML of the charts' specs, the packed texts, and what the template shows in words."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    scripts = [_vega(), *map(_resource, SCRIPTS)]
    style = _resource("page.css")
    charts = {"specs": specs, "light": config(dark=False), "dark": config(dark=True)}
    template = Environment(
        loader=PackageLoader(__package__, ""), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    ).get_template("page.html")
    return template.render(
        policy=_policy(scripts, style),
        style=Markup(style),
        scripts=[Markup(script) for script in scripts],
        chart_data=Markup(as_json(charts)),
        example_data=Markup(as_json({**CODE, "groups": texts}) if texts else ""),
        examples=bool(texts),
        **shown,
    )


@cache
def _vega() -> str:
    """Vega, Vega-Lite and vega-embed, in a function: their top-level names would otherwise be everyone's."""
    import vl_convert

    return f"(() => {{{vl_convert.javascript_bundle('window.vegaEmbed = vegaEmbed;')}\n}})();"


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _policy(scripts: Sequence[str], style: str) -> str:
    """Nothing is fetched, and nothing runs but what is named here by its hash."""

    def sources(*contents: str) -> str:
        hashes = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in contents)
        return " ".join(f"'sha256-{value}'" for value in hashes)

    return (
        f"default-src 'none'; script-src {sources(*scripts)}; style-src {sources(style)}; "
        "base-uri 'none'; form-action 'none'"
    )

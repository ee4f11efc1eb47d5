"""HTML of the page, which includes its style, scripts and data and loads nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from ...config import BASELINE, SIGNIFICANCE_LEVEL
from ...verdict import STEP_WARNING
from ..figures import config
from ..fragments import fill
from ..heat import heat_script, heat_style
from ..styles import resource
from .examples import SCORE_LEVELS, compress_json, to_json

CONSTANTS = {
    "baseline": BASELINE,
    "levels": SCORE_LEVELS,
    "significance": SIGNIFICANCE_LEVEL,
    "stepWarning": STEP_WARNING,
}
"""Constants that Python passes to the scripts."""
SCRIPTS = ("page.js", "charts.js", "numbers.js", "examples.js")


def render(
    specs: Mapping[str, Any], texts: Sequence[Mapping[str, Any]], *, top: str = "", **values: Any
) -> str:
    """Return the HTML of the page.

    Args:
        specs: Vega-Lite specs of the charts by name.
        texts: Groups of example texts, from `example_groups`.
        top: HTML of the first screen.
        values: Variables of the template.
    """
    from markupsafe import Markup

    scripts = [_vega(), heat_script(), *map(_resource, SCRIPTS)]
    charts = {"specs": specs, "light": config(dark=False), "dark": config(dark=True)}
    return fill_template(
        "page/page.html",
        scripts,
        chart_data=Markup(to_json(charts)),
        example_data=compress_json({**CONSTANTS, "groups": texts}) if texts else "",
        examples=bool(texts),
        top=top,
        **values,
    )


def fill_template(name: str, scripts: Sequence[str], **values: Any) -> str:
    """Return a page from a template, with the style of the report.

    Args:
        name: Path of the template in `faithmeter.report`.
        scripts: Contents of the scripts that the page may run.
        values: Variables of the template.
    """
    from markupsafe import Markup

    style = heat_style() + resource("area.css") + _resource("page.css")
    values |= {"style": Markup(style), "scripts": list(map(Markup, scripts))}
    return fill(name, policy=_policy(scripts, style), **values)


@cache
def _vega() -> str:
    """Return a script with Vega, Vega-Lite and vega-embed, wrapped so that only `vegaEmbed` is global."""
    import vl_convert  # it holds the scripts that draw charts, so that the page loads nothing

    return f"(() => {{{vl_convert.javascript_bundle('window.vegaEmbed = vegaEmbed;')}\n}})();"


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _policy(scripts: Sequence[str], style: str) -> str:
    """Return a content security policy that forbids requests and allows only these scripts and styles."""

    def sources(*contents: str) -> str:
        # by their hashes, so that a script in a text of the data could not run even if it were not escaped
        hashes = [hashlib.sha256(text.encode()).digest() for text in contents]
        return " ".join(f"'sha256-{base64.b64encode(each).decode()}'" for each in hashes)

    return (
        f"default-src 'none'; script-src {sources(*scripts)}; style-src {sources(style)}; "
        "base-uri 'none'; form-action 'none'"
    )

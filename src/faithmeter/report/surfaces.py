"""Results on the surfaces that show one at a time: terminal, notebook, and a page of their own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ..files import atomic
from . import html
from . import terminal as screen
from .view import view

if TYPE_CHECKING:
    from rich.console import RenderableType

SCOPE = ".faithmeter"
"""Selector of our rules in a notebook, which has a style of its own."""


def terminal(result: object) -> RenderableType:
    """Return a result as something that rich prints."""
    return screen.render(view(result))


def notebook(*results: object) -> str:
    """Return results as one HTML element that includes its style sheet."""
    # each cell has its own rules, as another cell may be deleted with its style sheet
    shared = map(html.resource, ("styles/card.css", "styles/area.css"))
    rules = "".join([html.palette_style(SCOPE), *shared, html.heat_style(SCOPE)])
    content = "<hr>".join(map(html.render, map(view, results)))
    return f"<div class='faithmeter'><style>{rules}</style>{content}</div>"


def page(results: Iterable[object], *, title: str) -> str:
    """Return a self-contained HTML page of results."""
    from markupsafe import Markup

    content, palette = Markup(notebook(*results)), Markup(html.palette_style())
    return html.fill("results.html", title=title, content=content, palette=palette) + "\n"


def write_page(results: Iterable[object], path: str | Path, *, title: str = "faithmeter") -> None:
    """Write a self-contained HTML page of results."""
    text = page(results, title=title)
    with atomic(Path(path)) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_picture(result: object, path: str | Path, *, width: int = 100) -> None:
    """Write what a terminal of so many columns shows of a result, as a PNG."""
    import io

    import vl_convert
    from rich.console import Console
    from rich.terminal_theme import DEFAULT_TERMINAL_THEME

    console = Console(record=True, file=io.StringIO(), width=width, color_system="truecolor")
    console.print(terminal(result))
    svg = console.export_svg(title="faithmeter", theme=DEFAULT_TERMINAL_THEME)
    with atomic(Path(path)) as temporary:
        temporary.write_bytes(vl_convert.svg_to_png(svg, scale=2))

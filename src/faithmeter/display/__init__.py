"""Colors and HTML elements of results in notebooks, explanation pages and the live page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files

MOODS = {"good": "callout good", "caution": "callout", "bad": "callout", "note": "soft"}
"""CSS classes of a sentence, by mood or severity."""


@cache
def palette_style(scope: str = ":root") -> str:
    """Return the CSS that defines the colors and fonts as variables of the selector `scope`."""
    return _resource("palette.css").replace(":root", scope)


def card(*parts: str, style: str = "") -> str:
    """Return HTML fragments as one element that includes its style sheet, for a notebook.

    Args:
        parts: HTML fragments of the content.
        style: Additional CSS rules.
    """
    rules = palette_style(".faithmeter") + _resource("card.css") + style
    return f"<div class='faithmeter'><style>{rules}</style>{''.join(parts)}</div>"


def sentence(text: str, mood: str = "note") -> str:
    """Return a plain text as an HTML paragraph, styled by mood: good, caution, bad or note."""
    return f"<p class='{MOODS[mood]}'>{escape(text)}</p>"


def grid(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with a title as HTML; the first column holds names, the others numbers."""
    head = "".join(f"<th{_number_class(place)}>{escape(text)}</th>" for place, text in enumerate(headings))
    lines = (
        "".join(f"<td{_number_class(place)}>{escape(text)}</td>" for place, text in enumerate(row))
        for row in rows
    )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<h3>{escape(title)}</h3><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _number_class(place: int) -> str:
    return " class='number'" if place else ""


@cache
def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")

"""Style sheets and scripts of pages and notebooks."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def resource(name: str) -> str:
    """Return a file of this folder."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def palette_style(scope: str = ":root") -> str:
    """Return the CSS that defines the colors and fonts as variables of the selector `scope`."""
    return resource("palette.css").replace(":root", scope)

"""Base class of results that notebooks and terminals display and that are written as pages."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType


class Rendered:
    """Base class of results, which `faithmeter.report` renders."""

    def _repr_html_(self) -> str:
        html: str = _surfaces().notebook(self)
        return html

    def __rich__(self) -> RenderableType:
        renderable: RenderableType = _surfaces().terminal(self)
        return renderable

    def to_html(self, path: str | Path) -> None:
        """Write the result as a page that loads nothing else."""
        _surfaces().write_page([self], path)

    def to_png(self, path: str | Path) -> None:
        """Write what a terminal shows of the result as a picture; needs the extra `report`."""
        _surfaces().write_picture(self, path)


def _surfaces() -> Any:
    # the only way from a result up to what renders it: a module of this layer must not import `report`
    return import_module("faithmeter.report.surfaces")

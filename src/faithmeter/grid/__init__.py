"""Grids of runs: the grid file, the planned runs, and their execution."""

from .execution import execute, failure_file
from .file import Grid, read
from .planned import Run

__all__ = ["Grid", "Run", "execute", "failure_file", "read"]

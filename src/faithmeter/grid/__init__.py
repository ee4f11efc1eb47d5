"""Grids of runs: the grid file, the planned runs, and their execution."""

from .execution import Run, execute, failure_file
from .file import Grid, read

__all__ = ["Grid", "Run", "execute", "failure_file", "read"]

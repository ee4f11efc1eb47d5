"""Grids of runs: the grid file, the planned runs, their expected times, and their execution."""

from .costs import seconds
from .execution import execute, failure_file
from .file import Grid, read
from .planned import Run

__all__ = ["Grid", "Run", "execute", "failure_file", "read", "seconds"]

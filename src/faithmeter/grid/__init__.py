"""A TOML file → many runs in dependency order, each done once, by any number of processes."""

from .costs import seconds
from .execution import execute, failure_file
from .file import Grid, read
from .planned import Run

__all__ = ["Grid", "Run", "execute", "failure_file", "read", "seconds"]

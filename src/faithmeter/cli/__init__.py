"""The command line: verbs → functions. Parsing and talking only; heavy imports happen inside a verb."""

from __future__ import annotations

import runpy
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import DamageWarning, InputError
from . import demo, explain, grid, listing, measure, report, serve, train
from .screen import console, marked

app = typer.Typer(
    name="faithmeter",
    help="Masked language models as text classifiers whose explanations can be measured for faithfulness.",
    epilog="Begin with: faithmeter demo",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
VERBS: dict[str, Callable[..., None]] = {
    "demo": demo.demo,
    "train": train.train,
    "explain": explain.explain,
    "measure": measure.measure,
    "check": measure.check,
    "grid": grid.grid,
    "report": report.report,
    "serve": serve.serve,
    "list": listing.listing,
}
for name, verb in VERBS.items():
    app.command(name)(verb)


@app.callback()
def before(
    imported: Annotated[
        list[str], typer.Option("--import", help="a Python file or module that registers methods of your own")
    ] = [],  # noqa: B006
) -> None:
    # what --help shows is the text of `app`
    for name in imported:
        _import(name)


def _import(name: str) -> None:
    path = Path(name)
    try:
        if path.suffix == ".py":
            runpy.run_path(str(path), run_name=path.stem)
        else:
            sys.path.append(str(Path.cwd()))  # last, so that no file there hides a library
            import_module(name)
    except Exception as error:  # of a user's code, which may do anything
        raise InputError(f"--import {name}: {type(error).__name__}: {error}") from error


def _warn(message: Warning | str, *place: Any, **rest: Any) -> None:
    """Our own warnings in one line; those of others as Python shows them."""
    if isinstance(message, DamageWarning):
        console.print(marked("warning: ", "yellow", str(message)), soft_wrap=True)
    else:
        _shown_by_python(message, *place, **rest)


_shown_by_python = warnings.showwarning


def main() -> None:
    """Exit codes: 0 done, 1 not as required or our fault, 2 a mistake in what was given, 130 Ctrl-C."""
    warnings.showwarning = _warn
    try:
        app()
    except InputError as error:
        console.print(marked("error: ", "bold red", str(error)), soft_wrap=True)
        sys.exit(2)
    except SystemExit as stop:
        if stop.code == 130:
            console.print("interrupted; what was finished is kept")
        raise

"""Command line, with one function per command; heavy imports happen inside these functions."""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from ..errors import DamageWarning, InputError, optional
from ..files import REMEDIES
from . import audit, demo, explain, grid, listing, measure, report, serve, train
from .options import as_command, import_all
from .screen import console, marked, output, prepare_streams, volume

VERBS: dict[str, Callable[..., None]] = {
    "demo": demo.demo,
    "audit": audit.audit,
    "train": train.train,
    "adapt": train.adapt,
    "explain": explain.explain,
    "measure": measure.measure,
    "check": measure.check,
    "grid": grid.grid,
    "report": report.report,
    "serve": serve.serve,
    "list": listing.listing,
}

COLLECTED_OBJECTS = 10_000
"""Objects after which Python looks for cycles that nothing uses."""


class FlagsWithoutType:
    """Part of a command whose help shows flags without a type: `--json` instead of `--json <bool>`."""

    def get_params(self, ctx: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return parameters


class Command(FlagsWithoutType, TyperCommand):
    """Verb."""


class Group(FlagsWithoutType, TyperGroup):
    """Command line with its verbs."""


app = typer.Typer(
    name="faithmeter",
    cls=Group,
    help="Masked language models as text classifiers whose explanations can be measured for faithfulness.",
    epilog="Begin with: faithmeter demo. With a classifier of yours: faithmeter audit --help.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for name, verb in VERBS.items():
    app.command(name, cls=Command)(as_command(verb))


def _print_version(requested: bool) -> None:
    if requested:
        output.print(f"faithmeter {version('faithmeter')}")
        raise typer.Exit


@app.callback()
def before(
    imported: Annotated[
        list[str],
        typer.Option("--import", help="a Python file or module that registers your own methods and metrics"),
    ] = [],  # noqa: B006
    version: Annotated[
        bool,
        typer.Option("--version", help="print the version and exit", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    # no docstring: --help shows the help text of `app`
    import_all(imported)


def main() -> None:
    """Run the command line and exit.

    The exit code is 0 on success; 1 if a requirement is not met, a run failed or the program has a bug;
    2 for a mistake in the input; and 130 after Ctrl-C.
    """
    prepare_streams()  # first, as any message may hold a character that the terminal lacks
    # Read when torch is loaded. Threads that spin while they wait took 14 times the CPU time of threads that
    # sleep where two of them shared a busy core (docs/performance.md).
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # Python's 700 collects hundreds of times while libraries are imported: 0.3 s of the start of `explain`
    gc.set_threshold(COLLECTED_OBJECTS)
    warnings.showwarning = _show_warning
    warnings.simplefilter("always", DamageWarning)  # Python shows equal ones once
    if not _has_working_directory():
        _exit_with_error("the working directory was deleted; change to a folder that exists (cd)")
    try:
        with optional():
            app(_decode_arguments(sys.argv[1:]))
    except InputError as error:
        if volume.verbose:
            console.print_exception()
        _exit_with_error(str(error))
    except OSError as error:
        if error.errno not in REMEDIES:  # not a full disk or the like: a bug, which shows its traceback
            raise
        _exit_with_error(f"{error.filename or 'a file'}: {error.strerror}; {REMEDIES[error.errno]}")
    except SystemExit as stop:
        if stop.code == 130:  # typer's code for Ctrl-C
            console.print("interrupted; what was finished is kept")
        raise


def _has_working_directory() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def _exit_with_error(message: str) -> NoReturn:
    console.print(marked("error: ", "bold red", message), soft_wrap=True)
    sys.exit(2)


def _decode_arguments(arguments: list[str]) -> list[str]:
    """Return the arguments decoded as UTF-8, whatever the locale.

    Raises:
        InputError: An argument is not valid UTF-8.
    """
    texts = []
    for number, argument in enumerate(arguments, start=1):
        try:
            texts.append(os.fsencode(argument).decode("utf-8"))
        except UnicodeError:
            raise InputError(
                f"argument {number} ({argument!r:.60}) is not UTF-8; convert it, for example with iconv"
            ) from None
    return texts


_show_python_warning = warnings.showwarning


def _show_warning(message: Warning | str, *place: Any, **rest: Any) -> None:
    """Print a `DamageWarning` in one line, and any other warning as Python does."""
    if isinstance(message, DamageWarning):
        console.print(marked("warning: ", "yellow", str(message)), soft_wrap=True)
    else:
        _show_python_warning(message, *place, **rest)

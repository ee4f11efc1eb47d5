"""Options of `measure` and `check` that name the test texts: a task, or all rows of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError

if TYPE_CHECKING:
    from ..data import Task

TaskName = Annotated[str, typer.Option("--task", help="default: the task that the checkpoint was trained on")]
DataDir = Annotated[Path | None, typer.Option(help="folder with the official files of the task")]
Limit = Annotated[int, typer.Option(min=0, help="only the first texts of the test split; 0 takes all")]
Data = Annotated[
    Path | None,
    typer.Option(
        help="with columns: a file whose rows are all test texts; without: the data that the checkpoint was "
        "trained on with --data, if moved"
    ),
]
TextColumn = Annotated[str | None, typer.Option(help="column of --data with the text to explain")]
LabelColumn = Annotated[
    str | None,
    typer.Option(help="column of --data with the label; several columns of 0 and 1: with commas between"),
]
PairColumn = Annotated[str | None, typer.Option(help="column of --data with a second text, the context")]
RationaleColumn = Annotated[str | None, typer.Option(help="column of --data with human rationales")]
Valid = Annotated[
    Path | None,
    typer.Option(help="file with validation rows for the check of --data; default: those of the training"),
]


def own_test_texts(
    checkpoint: str,
    task: str,
    data: Path | None,
    text: str | None,
    label: str | None,
    pair: str | None,
    valid: Path | None,
    rationale: str | None = None,
) -> Task | None:
    """Return the task of --data with columns, all rows of which are test texts; None without columns.

    Labels are classes, several at once or numbers, as the checkpoint's head says.
    """
    from ..models.loading import kind_of_model
    from ..runs.measured import own_texts

    options = {"--text-column": text, "--label-column": label, "--pair-column": pair, "--valid": valid}
    options |= {"--rationale-column": rationale}
    option, value = next(((name, value) for name, value in options.items() if value), ("", None))
    if data is None and option:
        raise InputError(f"{option} {value} goes with --data, the file that it belongs to")
    if task and option:
        raise InputError(f"--task {task} and --data with columns exclude each other; leave one of them out")
    if data is None or not option:
        return None
    return own_texts(data, text, label, pair, valid, rationale, kind_of_model(checkpoint))

"""Options that name the texts: a task, or files with their columns; they mean the same in every verb."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..config import CLASSES
from ..errors import InputError
from .screen import note

if TYPE_CHECKING:
    from ..data import Task
    from ..runs.measured import Origin

TaskName = Annotated[str, typer.Option("--task", help="default: the task that the checkpoint was trained on")]
DataDir = Annotated[Path | None, typer.Option(help="folder with the official files of the task")]
Limit = Annotated[int, typer.Option(min=0, help="only the first texts of the test split; 0 takes all")]
Data = Annotated[
    Path | None,
    typer.Option(
        help="your own data instead of a task; without --text: the data that the checkpoint was trained on, "
        "if moved"
    ),
]
TextColumn = Annotated[str | None, typer.Option("--text", help="column with the text to explain")]
LabelColumn = Annotated[
    str | None,
    typer.Option("--label", help="column with the label; several columns of 0 and 1: with commas between"),
]
PairColumn = Annotated[str | None, typer.Option("--pair", help="column with a second text, the context")]
RationaleColumn = Annotated[str | None, typer.Option("--rationale", help="column with human rationales")]
Valid = Annotated[
    Path | None,
    typer.Option(
        help="file with validation rows, which the check is fitted on; default: split off from --data, else "
        "those of the training"
    ),
]
Test = Annotated[
    Path | None,
    typer.Option(help="file whose rows are all test texts; default: test rows are split off from --data"),
]
Classes = Annotated[str, typer.Option(help=CLASSES)]
ClassName = Annotated[
    str | None, typer.Option("--class", help="label to look at, for a model that gives several at once")
]


@dataclass(frozen=True)
class Texts:
    """Options that name the texts to measure or check."""

    task: TaskName = ""
    data_dir: DataDir = None
    limit: Limit = 0
    data: Data = None
    text: TextColumn = None
    label: LabelColumn = None
    pair: PairColumn = None
    valid: Valid = None
    test: Test = None
    classes: Classes = ""
    name: ClassName = None

    @property
    def settings(self) -> dict[str, Any]:
        """Fields of a `MeasureConfig`."""
        return {
            "task": self.task,
            "limit": self.limit,
            "classes": self.classes,
            "label": self.name or "",
        }


def read_origin(checkpoint: str, texts: Texts, rationale: str | None = None) -> Origin:
    """Return where the texts to measure come from; the arguments are those of `_own_test_texts`."""
    from ..runs.measured import Origin

    own = _own_test_texts(checkpoint, texts, rationale)
    return Origin(texts.data_dir, None if own else texts.data, own)


def _own_test_texts(checkpoint: str, texts: Texts, rationale: str | None = None) -> Task | None:
    """Return the task of the user's own files and columns; None if no column is named.

    Labels are classes, several at once or numbers, as the checkpoint's head says.

    Args:
        checkpoint: Folder or hub name of the model.
        texts: The options; a task excludes files of one's own.
        rationale: Name of the column with rationales.
    """
    text, label, pair, task = texts.text, texts.label, texts.pair, texts.task
    valid, test = texts.valid, texts.test
    data = None if texts.data == test else texts.data  # all rows are test texts
    columns = {"--text": text, "--label": label, "--pair": pair, "--rationale": rationale}
    named = {**columns, "--valid": valid, "--test": test}
    given = [f"{option} {value}" for option, value in named.items() if value]
    if not given:
        return None
    source = f"--data {data}" if data else f"--test {test}"
    if data is None and test is None:
        raise InputError(f"{given[0]} goes with --data or --test, the file that it belongs to")
    if task:
        raise InputError(f"--task {task} and {source} with columns exclude each other; leave one of them out")
    for option in ("--text", "--label"):
        if not columns[option]:
            raise InputError(f"{source} requires {option}, the name of that column")
    from ..data import own_task
    from ..models.loading import kind_of_model

    own = own_task(
        data or str(test),
        text=str(text),
        label=str(label),
        label_kind=kind_of_model(checkpoint),
        pair=pair,
        rationale=rationale,
        valid=valid,
        test=test if data else None,
        all_test=data is None,
    )
    if test is None:
        rows = {role: len(part) for role, part in own.load().items()}
        note(
            f"{rows['test']} of {sum(rows.values())} rows are test texts, split off as in training; to take "
            f"all: --test {data} instead of --data"
        )
    return own

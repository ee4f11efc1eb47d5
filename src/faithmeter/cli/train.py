"""`faithmeter train` and `faithmeter adapt`: fine-tuning on masked texts, with labels or without."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ..config import AdaptConfig, TrainConfig
from ..files import require_writable
from ..runs.processes import require_one_process
from .listing import describe_task, task_parts
from .options import Restart, Resume
from .progress import bars, phase_bars, training_bar
from .screen import Json, Store, note, note_reused, output, print_json, print_truncated, quiet, show, volume

if TYPE_CHECKING:
    from ..store.records import AdaptRecord, TrainRecord

Processes = Annotated[
    int, typer.Option(min=1, help="processes that share the training, one for each GPU of this machine")
]


def train(
    config: TrainConfig,
    store: Store = Path("runs"),
    resume: Resume = False,
    restart: Restart = False,
    processes: Processes = 1,
    as_json: Json = False,
) -> None:
    """Fine-tune a masked language model with half of every mini-batch masked.

    Example: faithmeter train --task bAbI-1 --epochs 3 --learning-rate 1e-3
    """
    require_one_process()  # torchrun would start this verb once for each GPU; --processes is ours
    if config.data:
        _preview(config, as_json)
    record = run(config, store, resume=resume, restart=restart, processes=processes)
    if as_json:
        print_json(record.to_dict())
    else:
        from ..report.view import training_table

        show([training_table([record])])


def adapt(
    config: Annotated[AdaptConfig, "model"],
    store: Store = Path("runs"),
    resume: Resume = False,
    restart: Restart = False,
    as_json: Json = False,
) -> None:
    """Fine-tune a classifier on masked texts with its own predictions as labels, to make it measurable.

    Example: faithmeter adapt my-classifier --data texts.csv --text review
    """
    from ..report.view import view
    from ..runs.adaptation import complete_config

    record = cast("AdaptRecord", run(complete_config(config), store, resume=resume, restart=restart))
    if as_json:
        answers = [{"question": a.question, "mood": a.mood, "text": a.text} for a in record.answers]
        print_json({**record.to_dict(), "verdict": answers})
    else:
        show(view(record))


def _preview(config: TrainConfig, as_json: bool) -> None:
    """Print what the rows of the user's own data are, and whether they are enough for a check.

    Raises:
        InputError: There is no such model, the data cannot be used, or there are too few rows.
    """
    from ..models.loading import kind_of_model
    from ..runs.measured import task_of
    from ..stats.masf import MIN_ROWS
    from ..training.inputs import load_splits

    kind_of_model(config.model)  # raises before the rows are read if there is no such model
    task = task_of(config)
    validation = len(load_splits(config, task)["validation"])  # as a training cuts them, with its limits
    if not (as_json or volume.quiet):
        for part in task_parts(task, describe_task(task)):
            output.print(part)
    if validation < MIN_ROWS:
        note(
            f"{validation} validation rows: check and measure need at least {MIN_ROWS}; give more rows, or a "
            "file of them with --valid"
        )


def run(
    config: TrainConfig, root: Path, *, resume: bool = False, restart: bool = False, processes: int = 1
) -> TrainRecord:
    """Train or adapt a model, show its progress, print the checkpoint's folder, and return the record."""
    from ..runs.adaptation import adapt
    from ..runs.run import train
    from ..store.run_store import RunStore

    quiet()
    require_writable(root, "--output")
    store = RunStore(root)
    is_finished = not restart and store.find(config) is not None
    with bars() as progress:
        bar = training_bar(progress, Path(config.title).name)
        options: dict[str, Any] = {"resume": resume, "restart": restart, "progress": phase_bars(progress)}
        record: TrainRecord = (
            adapt(config, store, callbacks=[bar], **options)
            if isinstance(config, AdaptConfig)
            else train(config, store, callbacks=[bar], processes=processes, **options)
        )
    if is_finished:
        note_reused(store.folder(config))
    note(f"checkpoint: {store.folder(config)}")
    note(f"next: faithmeter measure {store.folder(config)}")
    print_truncated(record)
    return record

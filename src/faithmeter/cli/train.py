"""`faithmeter train`: fine-tuning of a pre-trained encoder on a task with masked inputs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from ..config import TrainConfig
from ..runs.processes import require_one_process
from ..verdict.formats import format_metric
from .listing import task_parts
from .options import Restart, Resume, configured
from .progress import bars, phase_bars, training_bar
from .results import print_truncated
from .screen import Json, Store, console, output, print_json, quiet, table

if TYPE_CHECKING:
    from ..store.records import TrainRecord

CONSTANTS = {
    "single-label": "the most frequent label in training",
    "multi-label": "the labels of most training texts",
    "regression": "the mean of the training labels",
}
"""What the constant guess in the last row of the table is, by kind of task."""
Processes = Annotated[
    int, typer.Option(min=1, help="processes that share the training, one for each GPU of this machine")
]


@configured(TrainConfig)
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
    if config.data and not as_json:
        from ..runs.measured import task_of
        from .summary import detail

        for part in task_parts(detail(task_of(config))):
            output.print(part)
    require_one_process()
    record = run(config, store, resume=resume, restart=restart, processes=processes)
    if as_json:
        print_json(record.to_dict())
    else:
        output.print(summary([record]))


def run(
    config: TrainConfig, root: Path, *, resume: bool = False, restart: bool = False, processes: int = 1
) -> TrainRecord:
    """Train a model, show a progress bar, print the checkpoint's folder, and return the record."""
    from ..runs import run as runs
    from ..store.run_store import RunStore

    quiet()
    store = RunStore(root)
    with bars() as progress:
        record = runs.train(
            config,
            store,
            resume=resume,
            restart=restart,
            callbacks=[training_bar(progress, Path(config.title).name)],
            processes=processes,
            progress=phase_bars(progress),
        )
    console.print(f"checkpoint: {store.folder(config)}", soft_wrap=True)
    print_truncated(record)
    return record


def summary(records: list[TrainRecord]) -> Table:
    """Return a table of test performance by percent masked, with the constant guess in the last row."""
    from ..runs.measured import task_of

    first = task_of(records[0].config)
    metric = first.metric
    points = [line.masking for line in records[0].test if isinstance(line.masking, int)]
    title = f"{first.name}: test {format_metric(metric)} in %, by percent of the tokens masked at random"
    rows = table(title, "fine-tuning", *map(str, points))
    for record in records:
        values = {line.masking: line.score(metric) for line in record.test}
        rows.add_row(record.config.strategy, *(f"{100 * values[percent]:.1f}" for percent in points))
    baseline = records[0].majority["test"][metric]
    guess = "majority" if first.kind != "regression" else "the mean"
    rows.add_row(guess, *[""] * (len(points) - 1), f"{100 * baseline:.1f}", style="dim")
    seen = "the length" if first.context is None else f"the length and the column {first.context}"
    rows.caption = f"{guess}: always {CONSTANTS[first.kind]}; of a wholly masked text, the model sees {seen}"
    rows.caption_justify = "left"
    return rows

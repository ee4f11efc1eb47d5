"""What every verb shares on the screen: results go to standard output, everything else to standard error."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from ..files import plain

if TYPE_CHECKING:
    from transformers import TrainerCallback

Store = Annotated[Path, typer.Option("--output", "-o", help="folder for the runs")]
Json = Annotated[bool, typer.Option("--json", help="print the result as JSON on standard output")]

# what is shown may hold brackets of its own: nothing in a text is markup
console = Console(stderr=True, markup=False, highlight=False)
output = Console(markup=False, highlight=False)


def print_json(value: Any) -> None:
    print(json.dumps(plain(value), ensure_ascii=False, allow_nan=False))


def marked(mark: str, style: str, text: str) -> Text:
    """A line that begins with a word in color."""
    return Text.assemble((mark, style), text)


def quiet() -> None:
    """Silence the bars and hints of the libraries below; our own bars say what happens."""
    import datasets
    import transformers

    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # its retries
    datasets.disable_progress_bars()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()


def table(title: str, *headings: str, numbers: bool = True) -> Table:
    """A plain table: the first column is a name, the others are numbers unless told otherwise."""
    shown = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for place, heading in enumerate(headings):
        shown.add_column(heading, justify="right" if numbers and place else "left")
    return shown


def bars() -> Progress:
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    rest = (TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.fields[note]}", markup=False))
    return Progress(*columns, *rest, console=console)


def training_bar(progress: Progress, title: str) -> TrainerCallback:
    """A callback that moves one bar with the optimizer steps and notes the newest validation result."""
    from transformers import TrainerCallback

    class Bar(TrainerCallback):  # type: ignore[misc]
        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.bar = progress.add_task(title, total=state.max_steps, completed=state.global_step, note="")

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            progress.update(self.bar, completed=state.global_step)
            if control.should_evaluate:
                progress.update(self.bar, note="validating")

        def on_evaluate(
            self, args: Any, state: Any, control: Any, metrics: dict[str, float], **_: Any
        ) -> None:
            note = f"epoch {round(state.epoch)}: validation {metrics['eval_selection']:.3f}"
            progress.update(self.bar, note=note)

    return Bar()

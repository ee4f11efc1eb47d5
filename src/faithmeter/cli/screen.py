"""Output that all verbs share: results go to standard output, everything else to standard error."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from ..errors import escape_controls
from ..files import plain

if TYPE_CHECKING:
    from transformers import TrainerCallback

Store = Annotated[Path, typer.Option("--output", "-o", help="folder for the runs")]
Json = Annotated[bool, typer.Option("--json", help="print the result as JSON on standard output")]

MARKS = {
    "good": ("✓ ", "green"),
    "caution": ("! ", "yellow"),
    "bad": ("✕ ", "red"),
    "note": ("· ", "dim"),
}
"""Mark and style of each mood and severity."""


class SafeConsole(Console):
    """A console that escapes control characters, so that no text can control the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            safe = escape_controls(segment.text)
            yield segment if segment.control or safe == segment.text else segment._replace(text=safe)


# texts may hold brackets: nothing in them is markup
console = SafeConsole(stderr=True, markup=False, highlight=False)
output = SafeConsole(markup=False, highlight=False)


def prepare_streams() -> None:
    """Let both streams escape what their encoding cannot hold, e.g. on an ASCII terminal."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def print_json(value: Any) -> None:
    """Print one line of JSON, escaped where the stream is not UTF-8; NaN becomes null."""
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    print(json.dumps(plain(value), ensure_ascii=not unicode, allow_nan=False))


def marked(mark: str, style: str, text: str) -> Text:
    """Return a line that begins with a colored word."""
    return Text.assemble((mark, style), text)


def quiet() -> None:
    """Silence the progress bars and hints of libraries; our own bars replace them."""
    import datasets
    import transformers

    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # its retries
    datasets.disable_progress_bars()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()


def table(title: str, *headings: str, numbers: bool = True) -> Table:
    """Return an empty table: the first column holds names, the others numbers or, if not `numbers`, text."""
    grid = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for place, heading in enumerate(headings):
        grid.add_column(heading, justify="right" if numbers and place else "left")
    return grid


def bars() -> Progress:
    """Return progress bars on standard error, with counts, times and a note."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    rest = (TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.fields[note]}", markup=False))
    return Progress(*columns, *rest, console=console)


def training_bar(progress: Progress, title: str) -> TrainerCallback:
    """Return a callback that moves one bar with the optimizer steps and notes the last validation result."""
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

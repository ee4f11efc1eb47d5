"""Output of all commands: results go to standard output, everything else to standard error."""

from __future__ import annotations

import json
import logging
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from ..config import ADAPTATION
from ..errors import escape_controls
from ..files import plain

if TYPE_CHECKING:
    from ..measuring.costs import Bounds
    from ..report.blocks import Block
    from ..store.records import TrainRecord
    from ..verdict.sentences import Verdict

Store = Annotated[Path, typer.Option("--output", "-o", help="folder for the runs")]
Json = Annotated[bool, typer.Option("--json", help="print the result as JSON on standard output")]


class SafeConsole(Console):
    """Console that escapes control characters, so that no text can control the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            safe = escape_controls(segment.text)  # texts of others could otherwise move the cursor or ring
            yield segment if segment.control or safe == segment.text else segment._replace(text=safe)


# markup is off because texts may contain brackets
console = SafeConsole(stderr=True, markup=False, highlight=False)
output = SafeConsole(markup=False, highlight=False)


def prepare_streams() -> None:
    """Make standard output and error escape characters that their encoding lacks, e.g. on ASCII terminals."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def print_json(value: Any) -> None:
    """Print a value as one line of JSON; NaN becomes null. Non-ASCII is escaped unless output is UTF-8."""
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    # by print, not by rich, which would wrap the line and color it
    print(json.dumps(plain(value), ensure_ascii=not unicode, allow_nan=False))


def marked(mark: str, style: str, text: str) -> Text:
    """Return a line that consists of a styled mark and plain text."""
    return Text.assemble((mark, style), text)


@dataclass
class Volume:
    """How much is printed besides results and errors: everything with `verbose`, nothing with `quiet`."""

    quiet: bool = False
    verbose: bool = False


volume = Volume()


def note(text: str | Text) -> None:
    """Print a remark that is no result; --quiet omits it."""
    if not volume.quiet:
        console.print(text, soft_wrap=True)


def note_reused(place: object) -> None:
    """Say that nothing was computed, as a result was finished before."""
    note(f"reused: {place} was finished before")


def quiet() -> None:
    """Silence the progress bars and hints of the libraries, which our own bars replace, unless --verbose."""
    if volume.verbose:
        return
    import transformers

    # the bars of libraries would be drawn into ours
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # hides its messages about retries
    # `datasets` takes as long to import as an explanation: it is told by its variable, before it is loaded
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    if "datasets" in sys.modules:
        sys.modules["datasets"].disable_progress_bars()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()


def table(title: str, *headings: str, numbers: bool = True) -> Table:
    """Return a table without rows; with `numbers`, all columns but the first are right-aligned."""
    grid = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for place, heading in enumerate(headings):
        grid.add_column(heading, justify="right" if numbers and place else "left")
    return grid


def show(blocks: Sequence[Block], screen: Console = output) -> None:
    """Print blocks, wrapped at the width of a terminal; in a pipe, each sentence is one line."""
    # here and below, modules that load slowly are imported by the functions that need them: --help is fast
    from ..report.terminal import render

    screen.print(render(blocks), soft_wrap=not screen.is_terminal)


def remark_verdict(verdict: Verdict, *, methods: bool = True) -> None:
    """Print the verdict beside results in JSON, on standard error; --quiet omits it."""
    from ..report.view import verdict_sentences

    if not volume.quiet:
        show(verdict_sentences(verdict, methods=methods), console)


def join_values(values: Mapping[str, float], form: str) -> str:
    """Return names with their values, all in one number format."""
    return ", ".join(f"{name} {value:{form}}" for name, value in values.items())


def describe_given(options: Mapping[str, object]) -> list[str]:
    """Return the options that have a value, each with it."""
    return [f"{name} {value}" for name, value in options.items() if value]


def print_bounds(bounds: Bounds) -> None:
    """Print how many evaluations each method needs at most, if all texts are like the first ones."""
    ranked = sorted(bounds.evaluations.items(), key=lambda item: item[1])
    each = join_values(dict(ranked), ",")
    note(f"{bounds.texts} texts, evaluations at most, judged by the first: {each}")


def print_costs(seconds: Mapping[str, float], budget: float = math.inf) -> None:
    """Print how long each part of an audit takes at most, and which parts a budget may leave out."""
    parts = ", ".join(f"{part} {format_duration(cost)}" for part, cost in seconds.items())
    total = format_duration(sum(seconds.values()))
    note(f"at most {total} on this machine: {parts} (the {ADAPTATION} only if the check does not accept)")
    beyond, spent = [], 0.0
    for part, cost in seconds.items():
        spent += cost
        if spent > budget:
            beyond.append(part)
    if beyond:
        note(f"the budget of {format_duration(budget)} may leave out: {', '.join(beyond)}")
    note("what is finished is kept: the same command continues after a stop")


def format_duration(seconds: float) -> str:
    """Return a duration in the largest unit of which it has two: 90 s, 15 min, 3 h."""
    for unit, length in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(1.0, seconds):.0f} s"


def print_truncated(record: TrainRecord) -> None:
    """Print which share of a split's texts was truncated in training, if any was."""
    from ..verdict.formats import format_percent

    role, share = max(record.truncated.items(), key=lambda item: item[1])
    if share:
        note(
            f"{format_percent(share)}% of the {role} texts are too long for the model: training reads only "
            "their beginnings; check, measure and explain read them in windows with --overlap"
        )

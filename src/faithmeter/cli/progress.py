"""Progress of long work: bars on a terminal, lines in a log file, nothing with --quiet."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.text import Text

from .screen import console, volume

if TYPE_CHECKING:
    from transformers import TrainerCallback

    from ..grid.execution import Run
    from ..grid.ray_engine import Step

LINE_PERCENT = 10
"""Percent of the work after which a log file gets a line."""
LINE_SECONDS = 60.0
"""Seconds after which a log file gets a line in any case, while the work goes on."""
MIN_SHARE = 0.02
"""Share of the work that must be done before the time left is told."""
MAX_RUN_BARS = 16
"""Maximum number of runs with a bar of their own, so that the display fits on a screen."""


class OwnTime(ProgressColumn):
    """Time spent on a task and the time left; the field `spent` replaces the time since its start."""

    def render(self, task: Task) -> Text:
        return Text(describe_time(task))


def describe_time(task: Task) -> str:
    """Return the time spent on a task and, unless it is finished, about how much is left."""
    spent = float(task.fields.get("spent", task.finished_time or task.elapsed or 0.0))
    text = str(timedelta(seconds=round(spent)))
    if not task.total or not MIN_SHARE <= task.completed / task.total < 1:
        return text
    left = spent / task.completed * (task.total - task.completed)  # what is left is as slow as what was done
    return f"{text}, {timedelta(seconds=round(left))} left"


class Lines(Progress):
    """Progress as lines of text, for output that is not a terminal."""

    def __init__(self) -> None:
        super().__init__(console=console, disable=True)
        self._printed: dict[TaskID, tuple[int, float]] = {}

    def update(self, task_id: TaskID, **changes: Any) -> None:
        super().update(task_id, **changes)
        self._print_line(task_id)

    def advance(self, task_id: TaskID, advance: float = 1) -> None:
        super().advance(task_id, advance)
        self._print_line(task_id)

    def _print_line(self, task_id: TaskID) -> None:
        task = self._tasks[task_id]
        if not task.total:
            return
        now, reached = time.monotonic(), int(task.percentage) // LINE_PERCENT
        # a log file of a night's work stays readable: a line at every tenth, and one a minute at most
        before, printed = self._printed.setdefault(task_id, (0, now))
        if reached == before and now - printed < LINE_SECONDS:
            return
        self._printed[task_id] = reached, now
        count = f"{task.percentage:.0f} %"
        if task.total != 100:
            count = f"{task.completed:.0f} of {task.total:.0f} ({count})"
        parts = (f"{task.description}: {count}", describe_time(task), str(task.fields.get("note", "")))
        console.print(", ".join(filter(None, parts)), soft_wrap=True)


def bars() -> Progress:
    """Return progress bars on standard error; every task needs the field `note`, shown after its bar.

    In a log file each task prints a line every ten per cent.
    """
    if volume.quiet:
        return Progress(console=console, disable=True)  # callers need not know that nothing is shown
    if not console.is_terminal:
        return Lines()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, OwnTime(), TextColumn("{task.fields[note]}", markup=False), console=console)


class Clock:
    """Stopwatch of tasks that take turns: the time between two calls belongs to the task of the second."""

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self._spent: dict[str, float] = {}

    def spend(self, name: str) -> float:
        """Add the time since the last call to a task, and return its total in seconds."""
        now = time.perf_counter()
        self._spent[name] = self._spent.get(name, 0.0) + now - self._last
        self._last = now
        return self._spent[name]


class Overall:
    """One bar for a work of several phases, by what each costs; the phase at work stands beside it.

    Where the phases follow each other `in_order`, those before the one at work are over: a training may stop
    early, and is then not counted as work that is left.
    """

    def __init__(self, progress: Progress, title: str, *, in_order: bool = False) -> None:
        self.progress, self.title, self.in_order = progress, title, in_order
        self.costs: dict[str, float] = {}
        self.shares: dict[str, float] = {}
        self.bar: TaskID | None = None

    def plan(self, costs: Mapping[str, float]) -> None:
        """Set what each phase costs, in evaluations or seconds; a phase that is not named costs nothing."""
        self.costs = dict(costs)
        self.bar = self.progress.add_task(self.title, total=100, note="")

    def show(self, phase: str, done: int, total: int) -> None:
        """Show how far a phase is; one that begins again does not turn the bar back."""
        if self.bar is None:
            return
        share = done / total if total else 1.0
        self.shares[phase] = max(share, self.shares.get(phase, 0.0))
        names = list(self.costs)
        if self.in_order and phase in names:
            self.shares.update(dict.fromkeys(names[: names.index(phase)], 1.0))
        spent = sum(cost * self.shares.get(name, 0.0) for name, cost in self.costs.items())
        percent = 100 * spent / max(sum(self.costs.values()), 1e-9)  # 0 of 0 is nothing left to do
        self.progress.update(self.bar, completed=percent, note=f"{phase} {done} of {total}")


def phase_bars(progress: Progress, overall: Overall | None = None) -> Callable[[str, int, int], None]:
    """Return a function that shows each phase of a work in a bar of its own, with the phase's own time.

    It is called with the phase, the amount done in it so far, and the total. A log file gets the lines of
    `overall` alone, once that is planned.
    """
    phases: dict[str, TaskID] = {}
    clock = Clock()

    def show(phase: str, done: int, total: int) -> None:
        spent = clock.spend(phase)
        if overall is not None:
            overall.show(phase, done, total)
            if overall.bar is not None and isinstance(progress, Lines):
                return
        if phase not in phases:
            phases[phase] = progress.add_task(phase, total=total, note="")
        progress.update(phases[phase], completed=done, total=total, spent=spent)

    return show


@contextmanager
def phases() -> Iterator[Callable[[str, int, int], None]]:
    """Show a bar for each phase of the work in the block; yield the function that `phase_bars` returns."""
    with bars() as progress:
        yield phase_bars(progress)


def training_bar(progress: Progress, title: str) -> TrainerCallback:
    """Return a trainer callback that shows the optimizer steps and the last validation result in one bar."""
    from ..training.trainer import StepReport

    bars: list[TaskID] = []  # made at the first step: only then is the number of steps known

    def show(completed: int, total: int, note: str) -> None:
        if not bars:
            bars.append(progress.add_task(title, total=total, note=note))
        progress.update(bars[0], completed=completed, note=note)

    return StepReport(show)


class RunLines:
    """Bars of a grid's runs that are at work, below one for all runs; a log file gets their starts and ends.

    Args:
        progress: Display of the bars.
        total: Number of runs in all.
        log: Log file; if it cannot be written, there is none.
    """

    def __init__(self, progress: Progress, total: int, log: Path) -> None:
        self.progress, self.log = progress, log
        self.all = progress.add_task("runs", total=total, note="")
        self.hosts: dict[str, str] = {}
        self.bars: dict[str, TaskID] = {}

    def show(self, name: str, host: str, part: str, done: int, total: int, note: str) -> None:
        """Show the progress of a run; `host` is empty on this machine."""
        place = f" on {host}" if host else ""
        if self.hosts.get(name) != host:  # a run begins, or goes on at another node
            self.hosts[name] = host
            self._write(f"started: {name}{place}")
        # a cluster may run more than a screen holds; the log has them all
        if name not in self.bars and len(self.bars) < MAX_RUN_BARS:
            self.bars[name] = self.progress.add_task(name, total=None, note=note)
        if name in self.bars:
            title = ": ".join(filter(None, (f"{name}{place}", part)))
            self.progress.update(
                self.bars[name], description=title, completed=done, total=total or None, note=note
            )

    def show_step(self, run: Run, step: Step) -> None:
        """Show the progress of a run on a node of a cluster."""
        self.show(run.name, *step)
        nodes = {*self.hosts.values()}
        self.progress.update(self.all, note=f"{len(self.hosts)} running on {len(nodes)} nodes")

    def end(self, name: str, outcome: str) -> None:
        """Count a run, remove its bar, and print the outcome of one that was executed."""
        host = self.hosts.get(name, "")
        self.remove(name)
        self.progress.advance(self.all)
        if outcome in ("finished", "failed"):  # other workers print their own
            line = f"{outcome}: {name}{f' on {host}' if host else ''}"
            self.progress.console.print(line)
            done = self.progress.tasks[0]
            self._write(f"{line} ({done.completed:.0f} of {done.total:.0f})")

    def remove(self, name: str) -> None:
        """Remove the bar of a run that is no longer at work."""
        self.hosts.pop(name, None)
        if name in self.bars:
            self.progress.remove_task(self.bars.pop(name))

    def _write(self, line: str) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        # opened for each line: several processes append to it, and a full disk must not end a run
        with suppress(OSError), self.log.open("a", encoding="utf-8") as file:
            file.write(f"{now} {line}\n")

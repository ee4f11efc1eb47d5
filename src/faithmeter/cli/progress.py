"""Progress of long work: bars on a terminal, lines in a log file, nothing with --quiet."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.text import Text

from .screen import console, volume

if TYPE_CHECKING:
    from transformers import TrainerCallback

LINE_PERCENT = 10
"""Percent of the work after which a log file gets a line."""
LINE_SECONDS = 60.0
"""Seconds after which a log file gets a line in any case, while the work goes on."""


class OwnTime(ProgressColumn):
    """Time spent on a task and the time left; the field `spent` replaces the time since its start."""

    def render(self, task: Task) -> Text:
        return Text(describe_time(task))


def describe_time(task: Task) -> str:
    """Return the time spent on a task and, unless it is finished, about how much is left."""
    spent = float(task.fields.get("spent", task.elapsed or 0.0))
    text = str(timedelta(seconds=round(spent)))
    if not task.total or not task.completed or task.completed >= task.total:
        return text
    left = spent / task.completed * (task.total - task.completed)
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
        before, printed = self._printed.setdefault(task_id, (0, now))
        if reached == before and now - printed < LINE_SECONDS:
            return
        self._printed[task_id] = reached, now
        count = f"{task.completed:.0f} of {task.total:.0f} ({task.percentage:.0f} %)"
        parts = (f"{task.description}: {count}", describe_time(task), str(task.fields.get("note", "")))
        console.print(", ".join(filter(None, parts)), soft_wrap=True)


def bars() -> Progress:
    """Return progress bars on standard error; every task needs the field `note`, shown after its bar.

    In a log file each task prints a line every ten per cent.
    """
    if volume.quiet:
        return Progress(console=console, disable=True)
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


def training_bar(progress: Progress, title: str) -> TrainerCallback:
    """Return a trainer callback that shows the optimizer steps and the last validation result in one bar."""
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

"""Progress of long work: one meaning of `progress` in all functions that take one."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], object]
"""Function that is called with a phase, the amount done in it so far (0 when it starts), and the total."""
Advance = Callable[[int], None]
"""Function that is called with the amount just finished."""


def start_phase(progress: Progress | None, phase: str, total: int) -> Advance:
    """Report that a phase starts, and return the function that reports what is done in it."""
    done = 0

    def advance(amount: int) -> None:
        nonlocal done
        done += amount
        if progress is not None:
            progress(phase, done, total)

    # a display shows the phase before its first text is done, which may take long
    advance(0)
    return advance


def as_part(progress: Progress | None, phase: str, before: int, total: int) -> Progress | None:
    """Return a function for a part of a phase, of which so much was done before the part."""
    if progress is None:
        return None
    report = progress

    def show(_: str, done: int, __: int) -> None:
        report(phase, before + done, total)

    return show

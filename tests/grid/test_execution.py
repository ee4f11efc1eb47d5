"""Planned runs: their progress."""

from __future__ import annotations

from faithmeter.grid.execution import _summed


def test_parts_of_different_sizes_count_equally() -> None:
    steps: list[tuple[str, int, int, str]] = []
    move = _summed(lambda *step: steps.append(step), parts=2)
    for part, done, total in (
        ("check", 600, 1000),
        ("check", 1000, 1000),
        ("random", 5, 10),
        ("random", 10, 10),
    ):
        move(part, done, total)
    assert steps == [
        ("check", 30, 100, ""),
        ("check", 50, 100, ""),
        ("random", 75, 100, ""),
        ("random", 100, 100, ""),
    ]

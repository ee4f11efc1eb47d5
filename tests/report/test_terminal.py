"""Blocks in a terminal: nothing is cut at any width, and sentences wrap where there is a screen."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from rich.console import Console

from faithmeter.report.blocks import Block, Cell, Chart, Column, Section, Sentence, Table
from faithmeter.report.terminal import render

METHOD = "int-grad-sign(baseline=mask,steps=10)"
HEADINGS = ("ACU", "RACU", "p published", "p crossfit", "texts", "evals", "seconds")


def printed(blocks: Sequence[Block], width: int = 80, *, terminal: bool = True) -> str:
    """The blocks as the command line prints them."""
    console = Console(
        width=width, file=io.StringIO(), force_terminal=terminal, color_system=None, legacy_windows=False
    )
    console.print(render(blocks), soft_wrap=not console.is_terminal)
    return console.file.getvalue()


def table(method: str = METHOD) -> Table:
    columns = (Column(("method",), "label"), *(Column((name,), form="number") for name in HEADINGS))
    cells = (Cell(54.1, 30.2, 77.3), *(Cell(1000.0 + place) for place, _ in enumerate(HEADINGS[1:])))
    return Table("areas", columns, ((Cell(method), *cells),), ("a note",))


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_number_of_a_table_is_cut(width: int) -> None:
    lines = printed([table()], width).splitlines()
    assert max(map(len, lines)) <= width
    text = " ".join(lines)
    assert "…" not in text
    for part in ("54.1", "[30.2, 77.3]", *(f"{1000 + n}.0" for n in range(6)), *HEADINGS, "a note"):
        assert part in text
    names = [line.split(" ")[0] for line in lines]
    assert METHOD in "".join(names), "a name is folded between its options"


def test_sentences_wrap_on_a_screen_and_are_one_line_in_a_pipe() -> None:
    sentence = Sentence("word " * 40 + "end", "bad", "answer", "Why?")
    screen = printed([sentence]).splitlines()
    assert len(screen) == 3
    assert screen[0].startswith("✕ Why? word")
    assert all(line.startswith("  word") and len(line) <= 80 for line in screen[1:])
    assert printed([sentence], terminal=False) == "✕ Why? " + "word " * 40 + "end\n"


def test_a_chart_has_both_curves_the_area_between_them_and_its_label() -> None:
    curves = {"best": [100.0, 20.0, 10.0], "random": [100.0, 80.0, 10.0]}
    lines = printed([Chart("accuracy in %", (0, 50, 100), curves, "60 %")], 50).splitlines()
    assert lines[0] == "accuracy in %"
    assert lines[-1].split() == ["●", "best", "·", "random", "░", "60", "%"]
    assert lines[-2].split() == ["0", "100"]
    # of 9 lines from 100 down to 0, values 80 and 20 are nearest to the third and the seventh
    middle = "".join(line.ljust(50)[4 + 22] for line in lines[1:-2])
    assert middle == "  ·░░░●  "
    assert max(map(len, lines)) <= 50


def test_a_section_has_its_title_above_its_blocks() -> None:
    text = printed([Section("Details", (Sentence("inside"),), folded=True)])
    assert text == "Details\ninside\n"

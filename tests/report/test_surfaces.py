"""Results show themselves: HTML in a notebook, one line in a shell, a table, a CSV file."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import faithmeter as fm
from faithmeter.data import Task
from faithmeter.report.blocks import Cell, Column, Sentence, Table
from faithmeter.report.html import palette_style, render
from toy import WORDS, tiny

HOSTILE = "<script>alert(1)</script>"


class Reader(HTMLParser):
    """Collects tags and text, and checks that tags are closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.texts.append(data)


@pytest.fixture(scope="module")
def clf() -> fm.Classifier:
    return tiny(dtype=torch.float32, labels=2)


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    path = tmp_path_factory.mktemp("display") / "own.csv"
    rows = [f"{' '.join(WORDS[n % 9 : n % 9 + 5])},LABEL_{n % 2}" for n in range(200)]
    path.write_text("\n".join(["text,label", *rows]))
    return fm.own_task(path, text="text", label="label")


@pytest.fixture(scope="module")
def results(clf: fm.Classifier, task: Task) -> dict[str, Any]:
    features = clf.features(clf.encode([" ".join(WORDS[n % 9 : n % 9 + 5]) for n in range(40)])).detach()
    tests = {name: fm.MaSF(calibration=name).fit(features) for name in ("published", "crossfit")}
    return {
        "Result": fm.measure(clf, task, ["grad-l2", "loo-sign"], limit=10, tests=tests),
        "Verified": fm.explain_text(clf, "the film was good", method=["loo-sign"], orders=19, tests=tests),
        "Explanation": fm.explain_text(clf, "the film was good", verify=False),
    }


@pytest.mark.parametrize("name", ["Result", "Verified", "Explanation"])
def test_every_result_writes_a_page_a_picture_and_a_table(
    results: dict[str, Any], name: str, tmp_path
) -> None:
    result = results[name]
    for ending in ("html", "png", "csv"):
        getattr(result, f"to_{ending}")(tmp_path / f"result.{ending}")
    assert (tmp_path / "result.png").read_bytes().startswith(b"\x89PNG\r\n")
    assert "</html>" in (tmp_path / "result.html").read_text(encoding="utf-8")
    table = pd.read_csv(tmp_path / "result.csv")
    assert "loo-sign" in {*table["method"]}


def test_the_table_of_an_explanation_has_a_row_for_each_word(results: dict[str, Any], tmp_path) -> None:
    explanation = results["Explanation"]
    explanation.to_csv(tmp_path / "words.csv")
    table = pd.read_csv(tmp_path / "words.csv")
    assert [*table["word"]] == [word.text for word in explanation.words]
    assert [*table["score"]] == pytest.approx([word.scores["loo-sign"] for word in explanation.words])


def test_a_text_given_to_explain_is_led_to_explain_text(clf: fm.Classifier) -> None:
    with pytest.raises(fm.InputError, match=r"fm\.explain_text\(clf, \"a text\"\)"):
        fm.explain(clf, "the film was good", [0], "loo-sign")


@pytest.mark.parametrize("name", ["Result", "Verified", "Explanation"])
def test_a_result_is_a_card_in_a_notebook_and_a_line_in_a_shell(results: dict[str, Any], name: str) -> None:
    line = repr(results[name])
    assert "\n" not in line
    assert len(line) < 250
    assert type(results[name]).__name__ in line
    html = results[name]._repr_html_()
    assert html.startswith("<div class='faithmeter'><style>")
    assert ":root" not in html, "a notebook keeps its own style"
    assert "".join(Reader(html).texts).strip()


def test_a_measurement_shows_areas_and_verdict(results: dict[str, Any]) -> None:
    measurement = results["Result"]
    text = "\n".join(Reader(measurement._repr_html_()).texts)
    for part in ("ACU", "p crossfit", "loo-sign", *(doubt.text for doubt in measurement.doubts)):
        assert part in text
    one = results["Verified"]
    text = "\n".join(Reader(one._repr_html_()).texts)
    assert all(answer.text in text for answer in one.verdict.answers)
    assert one.verdict.headline in text
    assert all(word.text in text for word in one.words), "colors and verdict together"


def test_tables_hold_the_numbers_most_faithful_first(results: dict[str, Any], tmp_path: Path) -> None:
    measurement = results["Result"]
    table = measurement.table()
    assert list(table["method"])[-1] == "random"
    assert list(table["acu"][:-1]) == sorted(table["acu"][:-1], reverse=True)
    assert dict(zip(table["method"], table["acu"], strict=True)) == {
        m: measurement.acu(m) for m in table["method"]
    }
    measurement.to_csv(tmp_path / "table.csv")
    read = pd.read_csv(tmp_path / "table.csv")
    pd.testing.assert_frame_equal(read, table, check_dtype=False, rtol=1e-12)
    one = results["Verified"]
    [row] = one.table().to_dict("records")
    assert (row["method"], row["acu"]) == ("loo-sign", one.erasures["loo-sign"].acu)


def test_a_test_is_a_line_in_a_shell() -> None:
    assert repr(fm.MaSF("published").fit(np.random.default_rng(0).normal(size=(20, 2, 3)))).startswith(
        "<MaSF, published: 2 layers × 3 dimensions"
    )
    assert repr(fm.MaSF("published")) == "<MaSF, published, not fitted>"
    assert repr(fm.MaSF()) == "<MaSF, crossfit, not fitted>", "the valid one"


def test_html_escapes_text() -> None:
    columns = (Column(("name",), "label"), Column((HOSTILE,)))
    table = Table(HOSTILE, columns, ((Cell(HOSTILE), Cell(1.0)),))
    html = render([table, Sentence(HOSTILE, "bad")])
    assert "script" not in Reader(html).tags
    assert "".join(Reader(html).texts).count(HOSTILE) == 4
    assert ".faithmeter {" in palette_style(".faithmeter")


def test_a_csv_holds_no_formula(tmp_path: Path) -> None:
    from faithmeter.files import write_csv

    write_csv(pd.DataFrame({"method": ["=1+1"], "acu": [-0.5]}), tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text() == "method,acu\n'=1+1,-0.5\n"
    with pytest.raises(fm.InputError, match="cannot write to"):
        write_csv(pd.DataFrame({"a": np.zeros(1)}), tmp_path / "table.csv" / "below.csv")

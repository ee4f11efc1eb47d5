"""What a reader sees first: one sentence, one chart of the numbers by hand, one table."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from faithmeter.measuring.result import Result
from faithmeter.report.blocks import Chart, Sentence, Table
from faithmeter.report.html import render
from faithmeter.report.page.verdicts import Judged, together, view_top
from faithmeter.report.view import areas_table, lead, view
from faithmeter.verdict.sentences import QUESTIONS, Answer, Verdict
from traces import PERCENTS, falling, result, traces

LABELS = np.arange(60) % 2
SHARES = {"random": 0.8, "grad-l2": 0.4, "loo-sign": 0.2}


@pytest.fixture(scope="module")
def measured() -> Result:
    return result(traces(falling(SHARES, LABELS), LABELS, p={"published": 0.4, "crossfit": 0.6}))


def test_the_first_blocks_are_a_sentence_a_chart_and_a_table(measured: Result) -> None:
    top, chart, table = lead(measured)
    assert isinstance(top, Sentence)
    assert (top.role, top.text) == ("top", measured.verdict.headline or measured.verdict.answers[1].text)
    assert isinstance(chart, Chart)
    assert isinstance(table, Table)
    assert [type(block) for block in view(measured)[:3]] == [Sentence, Chart, Table]


def test_the_chart_shows_the_best_method_against_random(measured: Result) -> None:
    chart = lead(measured)[1]
    assert isinstance(chart, Chart)
    assert tuple(chart.curves) == ("loo-sign", "random")
    assert chart.percents == PERCENTS
    trace = measured.seeds[0]["loo-sign"]
    right = trace.probabilities if measured.main_kind == "faithfulness" else trace.right
    assert chart.curves["loo-sign"] == pytest.approx([100 * value for value in right.mean(axis=0)])
    assert f"{100 * measured.area('loo-sign'):.1f} %" in chart.area


def test_the_table_ranks_methods_with_their_areas_and_intervals(measured: Result) -> None:
    table = areas_table(measured)
    assert [row[0].value for row in table.rows] == ["loo-sign", "grad-l2", "random"]
    headings = [column.heading[0] for column in table.columns]
    best, *_, random = table.rows
    for name, kind in (("ACU", "acu"), ("RACU", "racu")):
        assert best[headings.index(name)].value == pytest.approx(100 * measured.area("loo-sign", kind))
    low, high = measured.interval("loo-sign", "acu")[1:3]
    cell = best[headings.index("ACU")]
    assert (cell.low, cell.high) == pytest.approx((100 * low, 100 * high))
    assert not random[headings.index("ACU")].has_interval
    assert best[headings.index("p crossfit")].value == pytest.approx(measured.p("loo-sign", "crossfit"))


def test_random_alone_has_no_chart() -> None:
    alone = result(traces(falling({"random": 0.8}, LABELS), LABELS))
    assert [type(block) for block in lead(alone)] == [Sentence, Table]


def test_methods_on_fewer_texts_are_compared_on_those_that_all_share(measured: Result) -> None:
    seed = dict(measured.seeds[0])
    fewer = replace(measured, seeds=({**seed, "loo-sign": seed["loo-sign"].first(40)},))
    [note] = [note for note in areas_table(fewer).notes if "40 texts" in note]
    shared = fewer.first(40)
    assert f"loo-sign {100 * shared.acu('loo-sign'):.1f}" in note


def test_the_svg_has_both_names_and_the_area(measured: Result) -> None:
    html = render(lead(measured))
    assert html.index("callout top") < html.index("<svg") < html.index("<table>")
    assert "<span class='key'>loo-sign</span><span class='key'>random</span>" in html
    assert html.count("<path class='line") == 2


def test_the_label_of_an_area_at_the_edge_stays_in_the_picture() -> None:
    curves = {"best": [100.0, 0.0], "random": [100.0, 90.0]}
    html = render([Chart("title", (0, 100), curves, "faithfulness 61.0 %")])
    [x] = re.findall(r"class='label' x='(\d+)'", html)
    assert 0 <= int(x) <= 440 - len("faithfulness 61.0 %") * 9


def test_several_models_are_one_sentence_and_a_table(measured: Result) -> None:
    moods = ("good", "caution", "good")
    texts = ("Yes: it passes.", "Not decided: a and b.", "Nothing.")
    answers = tuple(map(Answer, QUESTIONS, moods, texts))
    area = measured.interval("loo-sign")
    leading = Verdict((), (), ("loo-sign",), answers, ())
    one = Judged("bAbI-1", "tiny", leading, measured.evidence)
    other = Judged("SST2", "tiny", replace(leading, leaders=()))
    top, table = view_top([measured, measured], [one, other])
    assert isinstance(top, Sentence)
    assert top.text == together([one, other])[1].text
    assert isinstance(table, Table)
    first, second = table.rows
    assert [cell.value for cell in first[:4]] == ["bAbI-1", "tiny", "✓ Yes", "loo-sign"]
    assert first[4].value == pytest.approx(100 * area.mean)
    assert [cell.value for cell in second[3:6]] == ["–", None, "–"]
    assert "Report" not in render([table]), "one page has no links to others"
    [alone] = view_top([], [one, other])
    assert isinstance(alone, Sentence)

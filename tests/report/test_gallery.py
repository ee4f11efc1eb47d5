"""The gallery: an index of all models with the verdicts of their reports, and links that lead there."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from faithmeter.errors import InputError
from faithmeter.report import gallery
from faithmeter.report.page.verdicts import models_table
from faithmeter.store.run_store import RunStore
from faithmeter.verdict.faithful import format_area
from faithmeter.verdict.sentences import QUESTIONS
from fixtures_report import measure, train
from traces import perfect

TEXTS = [{"text": f"Sandra walked to room {n}.", "label": n % 6} for n in range(120)]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A model with a faithful method, one whose masked texts are out of distribution, one without results."""
    folder = tmp_path_factory.mktemp("stores")
    good, bad, unmeasured = (RunStore(folder / name) for name in ("good", "bad/runs", "unmeasured"))
    measure(good, train(good), TEXTS, {"loo-sign": 0.4, "grad-l2": 0.1, "random": 0.0})
    sharper = perfect(6)._replace(scales=(5.0,) * 9)  # its masked predictions could be far better
    outside, known = {"loo-sign": 0.001, "random": 0.001}, {"recalibration": sharper}
    measure(bad, train(bad), TEXTS, {"loo-sign": 0.4, "random": 0.0}, p=outside, **known)
    train(unmeasured)
    return [good.root, bad.root, unmeasured.root]


@pytest.fixture(scope="module")
def written(stores: list[Path], tmp_path_factory: pytest.TempPathFactory) -> gallery.Gallery:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("faithmeter.report.figures.FIGURES", {})
        return gallery.write(stores, tmp_path_factory.mktemp("gallery") / "site", examples=5)


def overview(written: gallery.Gallery) -> list[list[str]]:
    """Cells of the overview, without tags."""
    page = written.index.read_text(encoding="utf-8")
    body = page[page.index("<tbody>") : page.index("</tbody>")]
    rows = re.findall(r"<tr>(.*?)</tr>", body)
    return [[unescape(re.sub("<.*?>", "", cell)) for cell in re.split("</t[hd]>", row)[:-1]] for row in rows]


def test_a_row_has_area_and_p_value_only_where_a_method_leads(
    written: gallery.Gallery, stores: list[Path]
) -> None:
    good, bad, unmeasured = overview(written)
    measured = next(one for one in RunStore(stores[0]).results() if "loo-sign" in one.result.methods)
    area = format_area(measured.result.interval("loo-sign"))
    assert area.startswith("59.3% [56.9, 61.")
    assert good[3:] == ["loo-sign", area.replace("%", ""), "p = 0.60", "good"]
    assert bad[3:] == ["–", "–", "p = 0.001", "runs"]
    assert unmeasured[3:] == ["–", "–", "–", "unmeasured"]


def test_many_tied_methods_leave_room_for_the_other_columns(written: gallery.Gallery) -> None:
    [one, *_] = written.models
    methods = dict.fromkeys("abcdefghi", one.evidence.methods["loo-sign"])
    evidence = replace(one.evidence, methods=one.evidence.methods | methods)
    many = replace(one, verdict=replace(one.verdict, leaders=tuple("abcdefghi")), evidence=evidence)
    [row] = models_table([many]).rows
    assert row[3].value == "a, b, c and 6 more"


def test_the_index_has_the_sentences_of_the_reports(written: gallery.Gallery) -> None:
    index = unescape(written.index.read_text(encoding="utf-8"))
    assert [len(report.models) for report in written.reports.values()] == [1, 1, 1]
    for report in written.reports.values():
        page = unescape(report.page.read_text(encoding="utf-8"))
        for sentence in report.answers:
            text = sentence.points[0] if len(sentence.points) > 1 else sentence.text
            assert text in index
            assert text in page
    moods = [one.verdict.answers[0].mood for one in written.models]
    assert moods[0] == "good"
    assert moods[1] == "bad"
    assert index.count(QUESTIONS[1]) == 3


def test_every_link_of_the_index_leads_to_a_file(written: gallery.Gallery) -> None:
    links = re.findall(r'href="([^#"]+)"', written.index.read_text(encoding="utf-8"))
    assert set(links) == {"good/report.html", "runs/report.html", "unmeasured/report.html"}
    assert all((written.index.parent / link).is_file() for link in links)


def test_stores_are_named_by_the_shortest_ends_that_differ(tmp_path: Path) -> None:
    alone = gallery.name_stores([tmp_path / "a b" / "runs"])
    assert list(alone) == ["runs"]
    both = gallery.name_stores([tmp_path / "a b" / "runs", tmp_path / "c" / "runs"])
    assert list(both) == ["a-b-runs", "c-runs"]
    with pytest.raises(InputError, match="given twice"):
        gallery.name_stores([tmp_path / "c" / "runs", tmp_path / "c" / ".." / "c" / "runs"])


def test_the_command(faithmeter, stores: list[Path], tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("faithmeter.report.figures.FIGURES", {})
    outcome = faithmeter("report", *stores[:2], "--gallery", "site", "--page-only")
    assert outcome.code == 0, outcome.err
    assert "1 of 2 models are measurable" in outcome.out
    assert (tmp_path / "site/index.html").is_file()
    assert not (tmp_path / "site/good/report_files").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a", "b"), "a is neither a store nor a run; expected a folder made by faithmeter"),
        (
            ("a", "--gallery", "site", "-o", "page.html"),
            "--output writes page.html and --gallery writes site",
        ),
        (("a", "--gallery", "file"), "--gallery file cannot be written: Not a directory"),
        (("a", "--gallery", "site"), "a holds no finished run"),
    ],
)
def test_mistakes(faithmeter, tmp_path: Path, monkeypatch, arguments: Any, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    outcome = faithmeter("report", *arguments)
    assert outcome.code == 2
    assert message in outcome.err


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_index_in_a_browser(browser: Any, written: gallery.Gallery, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    context = browser.new_context(viewport={"width": 360, "height": 740}, color_scheme=scheme)
    page = context.new_page()
    wrong: list[str] = []
    page.on("console", lambda message: message.type in ("error", "warning") and wrong.append(message.text))
    page.goto(written.index.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == 360, "a phone scrolls the table only"
    violations = axe.Axe().run(page).response["violations"]
    assert [one["id"] for one in violations if one["impact"] in ("serious", "critical")] == []
    page.set_viewport_size({"width": 1280, "height": 740})
    page.evaluate("document.querySelectorAll('.name').forEach(cell => cell.textContent = 'x'.repeat(60))")
    hidden = "document.querySelector('.scroll').scrollWidth - document.querySelector('.scroll').clientWidth"
    assert page.evaluate(hidden) == 0, "long names wrap, so that all columns are visible"
    page.get_by_role("link", name="Open the report").first.click()
    assert "faithfulness report" in page.title()
    assert wrong == []
    context.close()

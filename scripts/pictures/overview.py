"""Draw docs/overview.png, the first picture of the README, from the store of `faithmeter demo`.

python scripts/pictures/overview.py runs
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from jinja2 import Template
from markupsafe import Markup
from playwright.sync_api import sync_playwright

from faithmeter.config import BASELINE
from faithmeter.measuring.trace import frame_trace
from faithmeter.report.heat import Part, score_tone
from faithmeter.report.html import heat_style, part_html
from faithmeter.store.results import Run
from faithmeter.store.run_store import RunStore
from faithmeter.verdict.formats import format_percent, format_pvalue

ROOT = Path(__file__).parents[2]
METHOD = "loo-sign"
ROW, PERCENT = 11, 10
"""Text of the first two panels, and the percentage of its tokens that the second masks."""
LEFT, TOP, WIDTH, HEIGHT = 40, 24, 332, 172
"""Frame of the chart, in its own units."""


def find_run(store: RunStore) -> Run:
    """Return the run with the method on the most texts."""
    runs = [run for pooled in store.results() for run in pooled.runs if METHOD in run.sources]
    return max(runs, key=lambda run: run.result.texts_of(METHOD))


def mark_words(text: Mapping[Any, Any], scores: list[float], masked: set[int]) -> tuple[Markup, Markup]:
    """Return a text as HTML with its words colored by their scores, and with the masked words crossed out."""
    colored, crossed, end = "", "", 0
    largest = max(map(abs, scores))
    for number, (start, stop) in enumerate(zip(text["starts"], text["ends"], strict=True)):
        gap, word = escape(text["text"][end:start]), text["text"][start:stop]
        part = Part(word, abs(scores[number]) / largest, score_tone(scores[number], True))
        colored += gap + part_html(part)
        crossed += gap + (f"<span class='heat masked'>{word}</span>" if number in masked else escape(word))
        end = stop
    return Markup(colored), Markup(crossed)


def place(percent: float, value: float) -> tuple[float, float]:
    """Return the coordinates of a point of a curve."""
    return LEFT + WIDTH * percent / 100, TOP + HEIGHT * (1 - value)


def join_points(points: list[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def panels(run: Run) -> dict[str, Any]:
    """Return the variables of the template."""
    result, labels = run.result, run.newest.labels
    text = run.texts[run.texts["row"] == ROW].iloc[0].to_dict()
    steps = frame_trace(run.traces[METHOD])
    own = steps[steps["row"] == ROW].set_index("percent")
    colored, masked = mark_words(text, [*own["scores"][0]], {*own["masked"][PERCENT]})
    curves = {METHOD: result.curve(METHOD), BASELINE: result.random_curve(METHOD)}
    points = {
        name: [place(*point) for point in zip(curve.percents, curve.values, strict=True)]
        for name, curve in curves.items()
    }
    between = [curve.values[3] for curve in curves.values()]
    return {
        "style": Markup(heat_style()),
        "colored": colored,
        "masked": masked,
        "context": text["context"],
        "before": labels[own["prediction"][0]],
        "after": labels[own["prediction"][PERCENT]],
        "p": format_pvalue(own["p_crossfit"][PERCENT]),
        "texts": result.texts_of(METHOD),
        "acu": f"{format_percent(result.acu(METHOD))} %",
        "area": join_points([*points[METHOD], *reversed(points[BASELINE])]),
        "area_at": place(30, sum(between) / 2),
        "method": join_points(points[METHOD]),
        "random": join_points(points[BASELINE]),
        "ticks": [(*place(percent, -0.1), percent) for percent in (0, 50, 100)]
        + [(LEFT - 6, place(0, value)[1] + 4, round(100 * value)) for value in (0, 0.5, 1)],
    }


def main() -> None:
    template = Path(__file__).with_name("overview.html.jinja").read_text(encoding="utf-8")
    page_html = Template(template, autoescape=True).render(panels(find_run(RunStore(sys.argv[1]))))
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 400}, device_scale_factor=2)
        page.set_content(page_html)
        page.locator("body").screenshot(path=ROOT / "docs/overview.png")
        browser.close()


if __name__ == "__main__":
    main()

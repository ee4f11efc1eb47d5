"""The report in a real browser: what can be moved, read and copied; hostile texts; accessibility."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from faithmeter.paper.tables import TABLES
from faithmeter.report import figures
from faithmeter.report import page as report
from faithmeter.store.run_store import RunStore
from fixtures_report import PLACES, measure, train

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: make setup")

HOSTILE = "<script>alert(1)</script> </script> <img src=x onerror=alert(2)> & \u202eabc"
TEXTS = [
    {"text": "Mary went to the garden. John moved to the office.", "context": "Where is Mary?", "label": 2},
    {"text": HOSTILE, "context": "<i>&amp;</i>", "label": 5},
    {"text": "ذهبت مريم إلى الحديقة", "label": 2},
    {"text": "👩‍🚀 flew 🚀🚀 home 😀", "label": 1},
    {"text": "a" + "very" * 100 + "longword", "label": 0},
    {"text": "word " * 10_000, "label": 3, "read": 500},
    {"text": "", "label": 4},
    *({"text": f"Sandra walked to room {n}.", "label": n % 6} for n in range(8, 201)),
]
STRENGTHS = {"loo-sign": 0.3, "grad-l2": 0.1, "random": 0.0}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    store = RunStore(folder / "runs")
    trained = train(store, epochs=2)
    train(store, epochs=2, strategy="none", validation="unmasked", value=0.98)
    measure(store, trained, TEXTS, STRENGTHS, labels=[*PLACES[:5], "<u>office"], p={"grad-l2": 0.2})
    chosen = ("performance-unmasked", "epochs", "faithfulness")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("faithmeter.report.figures.FIGURES", {name: figures.FIGURES[name] for name in chosen})
        return report.write(store, folder / "report.html", tables=TABLES).page


@pytest.fixture
def page(browser: Any, path: Path) -> Iterator[Any]:
    """The page, opened from disk; whatever goes wrong in it fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    found = context.new_page()
    wrong: list[str] = []
    found.on("console", lambda message: message.type in ("error", "warning") and wrong.append(message.text))
    found.on("pageerror", lambda error: wrong.append(str(error)))
    found.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    found.on("request", lambda asked: asked.url.startswith("file:") or wrong.append(asked.url))
    found.goto(path.as_uri())
    found.locator("#chart-faithfulness svg").wait_for()
    yield found
    context.close()
    assert wrong == []


def erase(page: Any, step: int) -> None:
    page.locator("#erased").focus()
    page.keyboard.press("Home")
    for _ in range(step):
        page.keyboard.press("ArrowRight")


def test_the_slider_erases_and_shows_what_becomes_of_it(page: Any) -> None:
    expect = playwright.expect
    expect(page.locator("#text-title")).to_have_text("Text 1, labeled garden")
    expect(page.locator("#heat")).to_have_text(TEXTS[0]["text"])
    assert page.locator("#heat .masked").count() == 0
    erase(page, 3)
    expect(page.locator("#percent")).to_have_text("30 %")
    expect(page.locator("#probability")).to_have_text("0.710")  # 0.98 - 0.3 * 0.9
    expect(page.locator("#prediction")).to_have_text("garden")
    expect(page.locator("#pvalue")).to_have_text("0.600")
    assert page.locator("#heat .masked").count() == 12 * 30 // 100
    assert page.locator("#spoken").inner_text().count("[mask]") == 3
    erase(page, 10)
    expect(page.locator("#probability")).to_have_text("0.080")
    expect(page.locator("#prediction")).to_have_text("hallway")
    expect(page.locator("#right")).to_have_text("✕ not the label")
    expect(page.locator("#pvalue")).to_have_text("0.030: do not trust this step")
    assert page.locator("#heat .masked").count() == 12
    page.get_by_role("radio", name="grad-l2").check()
    expect(page.locator("#probability")).to_have_text("0.280")
    expect(page.locator("#pvalue")).to_have_text("0.010: do not trust this step")


def test_methods_have_heat_maps_of_their_own(page: Any) -> None:
    def colors() -> list[str]:
        return page.locator("#heat .token").evaluate_all("all => all.map(token => token.title)")

    first, spelled = colors(), page.locator("#strongest").inner_text()
    assert spelled.startswith("Strongest, in logit points: ")
    strongest = max(first, key=lambda title: abs(float(title.split()[1])))
    assert strongest.split()[1][:3] in spelled  # it says the same as the color, with more digits
    playwright.expect(page.locator("#for")).to_have_text("for garden")
    assert page.locator("#against").is_visible()
    signs = page.locator("#heat .token.against").evaluate_all("all => all.map(one => one.title)")
    assert all("-" in sign for sign in signs)
    page.get_by_role("radio", name="grad-l2").check()
    assert colors() != first
    assert page.locator("#strongest").inner_text() != spelled
    assert page.locator("#heat .token.important").count() > 0
    playwright.expect(page.locator("#important")).to_have_text("important")
    assert not page.locator("#for").is_visible()
    assert not page.locator("#against").is_visible()


def test_a_random_order_has_no_colors(page: Any) -> None:
    page.get_by_role("radio", name="random").check()
    assert page.locator("#heat .token").count() == 12
    assert page.locator("#heat .for, #heat .against").count() == 0
    assert not page.locator("#for").is_visible()
    assert page.locator("#strongest").inner_text().startswith("A random order")


def test_texts_can_be_found_and_walked_through(page: Any) -> None:
    expect = playwright.expect
    assert page.locator("#texts li").count() == 60  # the others are made when they are needed
    expect(page.locator("#previous")).to_be_disabled()
    page.locator("#next").click()
    expect(page.locator("#text-title")).to_have_text("Text 2, labeled <u>office")
    page.locator("#texts").focus()
    page.keyboard.press("End")
    expect(page.locator("#text-title")).to_have_text("Text 200, labeled garden")
    expect(page.locator("#texts li[aria-selected=true]")).to_be_in_viewport()
    page.locator("#filter").fill("ROOM 77")
    expect(page.locator("#count")).to_have_text("1 of 200 texts")
    expect(page.locator("#text-title")).to_have_text("Text 77, labeled <u>office")
    page.locator("#filter").fill("no such text")
    expect(page.locator("#count")).to_have_text("0 of 200 texts")
    page.locator("#filter").fill("kitchen")
    assert page.locator("#texts li").count() == sum(text["label"] == 4 for text in TEXTS)


def test_a_long_list_is_made_while_it_is_scrolled(page: Any) -> None:
    page.locator("#texts").evaluate("list => { list.scrollTop = list.scrollHeight }")
    playwright.expect(page.locator("#texts li").nth(60)).to_be_attached()


def test_any_text_shows_as_it_is(page: Any) -> None:
    special = {5: TEXTS[5]["text"][:699] + "… and 49301 characters more", 6: "(empty text)"}
    for number in range(1, 7):
        page.locator(f"#text-{number}").click()
        shown = page.locator("#heat").evaluate("heat => heat.textContent")
        assert shown == special.get(number, TEXTS[number]["text"])
        erase(page, 10)
        assert page.locator("#heat .masked").count() == page.locator("#heat .token").count()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_right_to_left_text_runs_right_to_left(page: Any) -> None:
    page.locator("#text-2").click()
    places = page.locator("#heat .token").evaluate_all("all => all.map(one => one.getBoundingClientRect().x)")
    assert places == sorted(places, reverse=True)


def test_curves_can_be_switched_off_by_keyboard(page: Any) -> None:
    lines = page.locator("#chart-faithfulness .mark-line path")
    before = lines.count()
    page.get_by_role("checkbox", name="loo-sign").focus()
    page.keyboard.press("Space")
    playwright.expect(lines).to_have_count(before - 1)  # it is a signed method, and in one panel only
    assert "loo-sign" not in page.locator("#chart-faithfulness .role-legend").text_content()
    page.locator("#switch-none").click()
    playwright.expect(page.locator("#chart-faithfulness")).to_have_text("No curve is chosen.")
    page.locator("#switch-all").click()
    playwright.expect(lines).to_have_count(before)


def test_charts_say_what_they_are_and_give_their_numbers(page: Any) -> None:
    box = page.get_by_role("img", name="Performance by percent of tokens masked")
    playwright.expect(box).to_have_attribute("id", "chart-faithfulness")
    assert box.get_attribute("aria-roledescription") is None
    page.locator("#theme").click()
    page.locator("#chart-faithfulness[data-drawn=dark]").wait_for()
    playwright.expect(box).to_have_attribute("id", "chart-faithfulness")  # drawn again, it says the same
    numbers = page.locator("[data-numbers=faithfulness]")
    numbers.locator("summary").click()
    rows = numbers.locator("tr").evaluate_all("all => all.map(row => row.innerText.split('\\t'))")
    assert rows[0][:4] == ["Scores", "Method", "0 %", "10 %"]
    assert [row[:3] for row in rows[1:]] == [
        ["Absolute", "random", "99.0 [96.5, 100.0]"],
        ["Absolute", "grad-l2", "99.0 [96.5, 100.0]"],
        ["Signed", "random", "99.0 [96.5, 100.0]"],
        ["Signed", "loo-sign", "99.0 [96.5, 100.0]"],
    ]
    assert rows[4][3] == "61.0 [54.0, 67.5]"  # 99 - 7.9 - 30 is 61.1: 122 of 200 texts
    numbers = page.locator("[data-numbers=performance-unmasked]")
    numbers.locator("summary").click()
    playwright.expect(numbers.locator("tbody")).to_have_text("Plain98.0Masked99.0")


def test_paper_has_what_is_folded_on_the_screen(page: Any) -> None:
    digests = page.locator("details").filter(has_text="Digests of 3 runs")
    assert digests.get_attribute("open") is None
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert digests.get_attribute("open") is not None
    assert page.locator("[data-numbers][open], details[open]:has([data-chart])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0


def test_folded_charts_are_drawn_when_opened(page: Any) -> None:
    assert page.locator("#chart-epochs svg").count() == 0
    page.get_by_text("Performance on whole validation texts by epoch").first.click()
    page.locator("#chart-epochs svg").wait_for()


def test_light_and_dark(page: Any) -> None:
    def paper() -> str:
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    assert paper() == "rgb(251, 250, 247)"
    page.locator("#theme").click()
    assert paper() == "rgb(20, 23, 27)"
    assert page.locator("#theme").get_attribute("aria-pressed") == "true"
    page.locator("#chart-faithfulness[data-drawn=dark]").wait_for()
    page.emulate_media(media="print")
    assert paper() == "rgb(255, 255, 255)"
    assert (
        page.locator("#chart-faithfulness text").first.evaluate("t => getComputedStyle(t).fill")
        == "rgb(34, 34, 34)"
    )
    assert not page.locator("nav").is_visible()


def test_commands_can_be_copied(page: Any) -> None:
    page.locator("#copy").click()
    playwright.expect(page.locator("#copied")).to_have_text("Copied.")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.locator("#commands").inner_text()
    assert copied.startswith("faithmeter train --task bAbI-1")


def test_on_a_phone_the_contents_are_a_menu(page: Any) -> None:
    contents, button = page.locator("#contents"), page.locator("#menu")
    assert contents.is_visible()
    assert not button.is_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    assert not contents.is_visible()
    button.click()
    assert contents.is_visible()
    page.keyboard.press("Escape")
    assert not contents.is_visible()
    button.click()
    contents.get_by_text("Examples").click()
    assert not contents.is_visible()
    assert page.url.endswith("#examples")


def test_a_phone_needs_no_sideways_scrolling(page: Any) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.wait_for_timeout(400)  # charts are drawn again after the last change of size
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    chart = page.locator("#chart-faithfulness svg").bounding_box()
    assert chart["width"] <= 360
    first, second = page.locator("#chart-faithfulness .concat_0_cell > g > .background").all()
    above, below = first.bounding_box(), second.bounding_box()
    assert above["y"] + above["height"] < below["y"]  # views stand on each other
    assert min(above["height"], below["height"]) >= 150


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(page: Any, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page.emulate_media(color_scheme=scheme)
    page.locator(f"#chart-faithfulness[data-drawn={scheme}]").wait_for()
    erase(page, 3)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    page.locator("#chart-epochs svg").wait_for()
    found = axe.Axe().run(page).response["violations"]
    serious = [
        (one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")
    ]
    assert serious == []

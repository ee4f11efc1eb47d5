"""The live page in a real Chromium: typing, masking, switching, measuring, and no harm from any text."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from faithmeter.models.evaluator import Evaluator
from faithmeter.models.tokens import Batch
from faithmeter.report.heat import format_score
from serving import PAIR, TEXT, running, served
from toy import WORDS

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: make setup")

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "שלום עולם, הסרט טוב",
    "good 😀👩‍👩‍👧 fun",
]
NARROW = {"width": 360, "height": 740}
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with running(served()) as address:
        yield address


@pytest.fixture
def wrong() -> list[str]:
    """What went wrong on a page or went elsewhere; a test that makes it so takes it out."""
    return []


@pytest.fixture
def open_page(browser: Any, address: str, wrong: list[str]) -> Iterator[Any]:
    """A page whose example is explained; afterwards nothing may have gone wrong."""
    contexts = []

    def open_page(**options: Any) -> Any:
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.on(
            "console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: wrong.append(f"dialog {dialog.message}"))
        page.on("request", lambda asked: None if asked.url.startswith(address) else wrong.append(asked.url))
        page.goto(address)
        page.wait_for_selector(".word.for")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


@pytest.fixture
def page(open_page: Any) -> Any:
    return open_page()


def ask(address: str, what: str, **body: Any) -> dict[str, Any]:
    found: dict[str, Any] = httpx.post(f"{address}/api/{what}", json=body).json()
    return found


def expect_verdict(page: Any, probe: dict[str, Any]) -> None:
    """The page shows the prediction and p-value that the API gives."""
    share, p = probe["probabilities"][probe["prediction"]], probe["pvalues"]["crossfit"]
    expect = playwright.expect
    expect(page.locator("#prediction")).to_contain_text(f"{probe['prediction']} {100 * share:.1f} %")
    expect(page.locator("#p")).to_have_text(f"p = {p:.{3 if p < 0.1 else 2}f}" if p >= 0.001 else "p < 0.001")
    expect(page.get_by_role("heading", name="Does the model know such texts?")).to_be_visible()
    expect(page.locator("#normal")).to_have_text(probe["verdict"]["text"])
    expect(page.locator("#p")).to_be_hidden()  # a detail, which is opened on demand


def test_a_typed_text_is_classified(page: Any, address: str) -> None:
    page.locator("#text").fill("the plot was dull")
    page.locator("#pair").fill("who")
    playwright.expect(page.locator(".word")).to_have_text(["the", "plot", "was", "dull"])
    expect_verdict(page, ask(address, "probe", text="the plot was dull", pair="who"))


def test_a_click_masks_a_word_and_a_second_one_brings_it_back(page: Any, address: str) -> None:
    word = page.get_by_role("button", name="good", exact=True)
    word.click()
    playwright.expect(word).to_have_attribute("aria-pressed", "true")
    expect_verdict(page, ask(address, "probe", text=TEXT, pair=PAIR, masked=[4]))
    playwright.expect(page.locator("#count")).to_have_text("1 of 8 tokens masked")
    word.click()
    expect_verdict(page, ask(address, "probe", text=TEXT, pair=PAIR))
    playwright.expect(word).to_have_attribute("aria-pressed", "false")


def test_words_are_masked_by_keyboard(page: Any, address: str) -> None:
    page.locator(".word").nth(1).focus()
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect_verdict(page, ask(address, "probe", text=TEXT, pair=PAIR, masked=[1, 2]))
    page.locator("#unmask").press("Enter")
    expect_verdict(page, ask(address, "probe", text=TEXT, pair=PAIR))


def test_the_strongest_word_is_masked_first(page: Any, address: str) -> None:
    found = ask(address, "explain", text=TEXT, pair=PAIR, methods=["loo-sign"])
    best = max(range(8), key=lambda number: found["words"][number]["scores"]["loo-sign"])
    page.locator("#strongest").click()
    expect_verdict(page, ask(address, "probe", text=TEXT, pair=PAIR, masked=[best]))


def test_methods_are_switched_and_chosen(page: Any, address: str) -> None:
    methods = ["loo-sign", "grad-l2", "beam"]
    found = ask(address, "explain", text=TEXT, pair=PAIR, methods=methods)
    page.locator(".chooser summary").click()
    page.locator("#methods input[value=beam]").check()
    page.locator("#methods input[value=int-grad-sign]").uncheck()
    playwright.expect(page.locator("#method-tabs label")).to_have_text(["grad-l2", "loo-sign", "beam"])
    label = found["label"]
    for method in methods:
        page.locator("#method-tabs label", has_text=method).click()
        scores = [word["scores"][method] for word in found["words"]]
        strongest = max(range(8), key=lambda number: abs(scores[number]))
        sign = "" if method != "loo-sign" else "+" if scores[strongest] > 0 else "-"
        side = {"": "important", "+": f"for {label}", "-": f"against {label}"}[sign]
        number = format_score(scores[strongest], bool(sign))
        first = re.escape(f"strongest: {TEXT.split()[strongest]} {number},")
        playwright.expect(page.locator("#top-words")).to_have_text(re.compile(f"^{first}"))
        word = page.locator(".word").nth(strongest)
        playwright.expect(word).to_have_class(f"word heat {side.split()[0]}")
        assert word.get_attribute("title") == f"{number} {side}"
        samples = page.locator("#legend .sample:visible").all_text_contents()
        assert samples == ([f"for {label}", f"against {label}"] if sign else ["important"])


def test_scores_are_written_as_in_python(page: Any) -> None:
    scores = [0.0, -0.0, 1.0, -2.5, 0.123456, 12.3456, 999.4, 1234.5, -0.00012345, 0.000012345, 3e-11, 4.56e7]
    for signed in (True, False):
        texts = page.evaluate(
            "([scores, signed]) => scores.map((s) => heat.format(s, signed))", [scores, signed]
        )
        assert texts == [format_score(score, signed) for score in scores]


def test_nothing_of_the_text_before_stays(page: Any) -> None:
    page.route("**/api/explain", lambda _: None)  # never answered
    page.locator("#measure").click()
    page.wait_for_selector("table.results")
    page.locator("#text").press_sequentially("!")
    playwright.expect(page.locator("#legend, table.results")).to_have_count(1, timeout=200)
    playwright.expect(page.locator("#legend")).to_be_hidden(timeout=200)
    playwright.expect(page.locator(".word.for, .word.against, .word.important")).to_have_count(0, timeout=200)
    playwright.expect(page.locator(".word")).to_have_count(9)
    playwright.expect(page.locator("#strongest")).to_be_disabled()


def test_without_a_method_there_is_no_heat(page: Any) -> None:
    page.locator(".chooser summary").click()
    while page.locator("#methods input:checked").count():
        page.locator("#methods input:checked").first.click()
    playwright.expect(page.locator(".word.for, .word.against, .word.important")).to_have_count(0)
    playwright.expect(page.locator("#legend")).to_be_hidden()
    for button in ("#strongest", "#measure"):
        playwright.expect(page.locator(button)).to_be_disabled()


def test_a_refused_method_costs_the_others_nothing(page: Any, wrong: list[str]) -> None:
    page.locator(".chooser summary").click()
    page.locator("#methods input[value=beam]").check()
    page.locator("#text").fill(" ".join(WORDS * 8))
    playwright.expect(page.locator("#refusals li")).to_have_text(
        re.compile("^beam: this could take .* evaluations")
    )
    playwright.expect(page.locator(".word.for").first).to_be_visible()
    page.locator("#method-tabs label", has_text="beam").click()
    playwright.expect(page.locator(".word.for, .word.against, .word.important")).to_have_count(0)
    playwright.expect(page.locator("#legend")).to_be_hidden()
    playwright.expect(page.locator("#strongest")).to_be_disabled()
    page.locator(".word").first.click()  # whatever is done next, the message stays
    playwright.expect(page.locator("#count")).to_contain_text("1 of ")
    playwright.expect(page.locator("#refusals")).to_be_visible()
    page.locator("#methods input[value=beam]").uncheck()
    playwright.expect(page.locator("#refusals")).to_be_hidden()
    assert [said for said in wrong if "422" not in said] == []
    wrong.clear()  # a browser logs every refusal


def test_a_silent_server_is_told(page: Any, wrong: list[str]) -> None:
    page.route("**/api/*", lambda route: route.abort())
    page.locator(".word").first.click()
    playwright.expect(page.locator("#problem")).to_contain_text("The server does not answer. Start it again")
    page.locator("#measure").click()
    playwright.expect(page.locator("#unmeasured")).to_contain_text("The server does not answer")
    page.unroute("**/api/*")
    page.locator("#measure").click()
    page.wait_for_selector("table.results")
    playwright.expect(page.locator("#unmeasured")).to_be_hidden()
    assert all("ERR_FAILED" in said for said in wrong)
    wrong.clear()


def test_tokens_instead_of_words(page: Any) -> None:
    page.locator(".word").nth(2).click()
    page.locator("#units label", has_text="Tokens").click()
    playwright.expect(page.locator(".word")).to_have_count(8)
    playwright.expect(page.locator(".word").nth(2)).to_have_attribute("aria-pressed", "true")
    playwright.expect(page.locator(".word.for").first).to_be_visible()


def test_the_unit_is_that_of_explanation_and_measurement(page: Any) -> None:
    asked: list[tuple[str, str]] = []
    page.on("request", lambda request: asked.extend(units_of(request)))
    for name, unit in (("Tokens", "token"), ("Words", "word")):
        asked.clear()
        page.locator("#units label", has_text=name).click()
        playwright.expect(page.locator(".word.for").first).to_be_visible()
        page.locator("#measure").click()
        page.wait_for_selector("table.results")
        assert set(asked) == {("explain", unit), ("measure", unit)}


def units_of(request: Any) -> list[tuple[str, str]]:
    what = request.url.rpartition("/")[2]
    return [(what, request.post_data_json["unit"])] if what in ("explain", "measure") else []


def test_the_text_is_measured(page: Any, address: str) -> None:
    methods = ["grad-l2", "int-grad-sign", "loo-sign"]
    label = ask(address, "probe", text=TEXT, pair=PAIR)["prediction"]
    found = ask(address, "measure", text=TEXT, pair=PAIR, methods=methods, label=label, unit="word")
    page.locator("#measure").click()
    results = page.locator("table.results").first
    for name, erasure in found["erasures"].items():
        row = results.locator("tbody tr", has_text=name)
        playwright.expect(row).to_contain_text(f"{100 * erasure['acu']:.1f} %".replace("-0.0", "0.0"))
    said = page.locator("#measured .callout li").all_text_contents()
    assert {doubt["text"] for doubt in found["doubts"] if doubt["kind"] != "outside"} <= set(said)
    chart = page.get_by_role("img", name=f"Probability of {label}")
    playwright.expect(chart.locator("circle")).to_have_count(11)
    results.get_by_role("button", name="grad-l2").click()
    playwright.expect(page.get_by_role("img", name="erased by grad-l2")).to_be_visible()
    playwright.expect(page.locator("#method-tabs input[value=grad-l2]")).to_be_checked()
    page.locator("#text").fill("another text")  # a measurement belongs to its text
    playwright.expect(page.locator("table.results")).to_have_count(0)


def test_a_long_explanation_shows_progress_is_cancelled_and_taken_up_again(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()

    def endless(evaluator: Evaluator, tokens: Batch, *_: Any) -> Any:
        try:
            while True:
                evaluator.forget()
                evaluator.logits(tokens)
        finally:
            ended.set()

    with monkeypatch.context() as patched:
        patched.setattr("faithmeter.serve.app.explain_texts", endless)
        page.locator("#text").fill("the plot was dull")
        playwright.expect(page.locator("#explain-stage")).to_have_text(
            re.compile(r"explaining by loo-sign · [\d,]+ of at most 6 evaluations of the model")
        )
        playwright.expect(page.locator("#explain-bar")).to_have_js_property("max", 6)
        playwright.expect(page.locator("#explain-bar")).to_have_js_property("value", 6)
        page.get_by_role("button", name="Cancel explaining").press("Enter")
        playwright.expect(page.locator("#explain-working")).to_be_hidden()
        assert ended.wait(timeout=10)
    playwright.expect(page.locator("#explain")).to_be_focused()
    page.locator("#explain").press("Enter")
    playwright.expect(page.locator(".word.for, .word.against").first).to_be_visible()
    playwright.expect(page.locator("#explain")).to_be_hidden()
    playwright.expect(page.locator("#reading")).to_be_focused()


def test_long_work_shows_progress_and_is_cancelled(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def endless(evaluator: Evaluator, tokens: Batch, *rest: Any) -> Any:
        progress = rest[-1]
        progress("random", 1, 4)
        try:
            while True:
                evaluator.forget()
                evaluator.logits(tokens)
        finally:
            ended.set()

    monkeypatch.setattr("faithmeter.serve.app.verify_text", endless)
    page.locator("#measure").press("Enter")
    playwright.expect(page.locator("#measure-stage")).to_contain_text("random done, 1 of 4")
    playwright.expect(page.locator("#measure-cancel")).to_be_focused()
    playwright.expect(page.locator("#measure-bar")).not_to_have_js_property("value", 0)
    page.locator(".word").first.click()  # meanwhile words can be masked
    playwright.expect(page.locator("#count")).to_have_text("1 of 8 tokens masked")
    page.get_by_role("button", name="Cancel").click()
    playwright.expect(page.locator("#measure")).to_be_focused()
    playwright.expect(page.locator("#measure-working")).to_be_hidden()
    assert ended.wait(timeout=10)


def test_any_text_is_shown_as_it_is(page: Any) -> None:
    for text in HOSTILE:
        page.locator("#text").fill(text)
        marks = re.compile("[\u200e\u200f]*".join(map(re.escape, ["", *text, ""])))
        playwright.expect(page.locator("#reading")).to_have_text(marks)
        page.locator(".word").first.click()
        playwright.expect(page.locator(".word").first).to_have_attribute("aria-pressed", "true")
        assert page.locator("#reading script, #reading img").count() == 0


def test_words_of_a_mixed_text_stand_in_their_order(page: Any) -> None:
    """The middle of each word, from left to right: Hebrew words run the other way, in either surrounding."""
    for text, order in (("שלום עולם the film", [2, 3, 1, 0]), ("the film שלום עולם", [0, 1, 3, 2])):
        page.locator("#text").fill(text)
        playwright.expect(page.locator(".word")).to_have_text(text.split())
        left = [box["x"] for box in (word.bounding_box() for word in page.locator(".word").all())]
        assert sorted(range(4), key=left.__getitem__) == order


def test_too_long_and_empty_texts_are_told(page: Any) -> None:
    page.locator("#text").fill("good " * 10_000)
    playwright.expect(page.get_by_role("alert")).to_contain_text(
        "10000 words; this server takes at most 1000"
    )
    playwright.expect(page.locator(".word")).to_have_count(0)
    page.locator("#text").fill("  ")
    playwright.expect(page.locator("#problem")).to_be_hidden()
    playwright.expect(page.locator("#reading")).to_contain_text("Your text appears here")
    page.locator("#pair").fill("")
    page.locator("#text").fill(" ".join(WORDS * 50))  # many, but not too many
    playwright.expect(page.locator(".word")).to_have_count(510)
    playwright.expect(page.locator("#count")).to_contain_text("the end was left out")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_violation(open_page: Any, address: str, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = open_page(color_scheme=scheme)
    page.locator(".word").nth(2).click()
    page.locator(".chooser summary").click()
    page.locator("#measure").click()
    page.wait_for_selector("table.results")
    found = axe.run(page).response["violations"]
    page.goto(f"{address}/docs.html")
    page.get_by_role("heading", name="/api/measure").wait_for()
    found += axe.run(page).response["violations"]
    assert [
        (one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")
    ] == []


def test_a_narrow_screen_needs_no_sideways_scrolling(open_page: Any) -> None:
    page = open_page(viewport=NARROW)
    page.locator("#measure").click()
    page.wait_for_selector("table.results")
    assert page.evaluate("document.documentElement.scrollWidth") == NARROW["width"]
    page.locator(".word").last.click()
    page.locator("#measure").scroll_into_view_if_needed()
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    playwright.expect(page.locator("#strip")).to_contain_text("known to the model: ")


def test_a_long_word_does_not_widen_a_phone(open_page: Any) -> None:
    page = open_page(viewport=PHONE)
    page.locator("#text").fill(f"see {'x' * 120}, {'good' * 30}.")
    playwright.expect(page.locator(".word").nth(1)).to_have_text("x" * 120)
    playwright.expect(page.locator("#top-words")).to_contain_text("x" * 120)
    page.locator("#measure").click()
    page.wait_for_selector("table.results")
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]


def test_the_first_paint_is_fast(page: Any) -> None:
    painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    assert painted < 1000

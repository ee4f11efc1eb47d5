"""Take the pictures in docs/: the report, the live page of a checkpoint and a gallery, in Chromium.

python scripts/pictures/pages.py runs/report.html CHECKPOINT site/index.html
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import ViewportSize, sync_playwright

DOCS = Path(__file__).parents[2] / "docs"
SIZE = ViewportSize(width=1280, height=960)


def take_report(page: Any, report: Path) -> None:
    """Take a picture of the first example with a tenth of it erased."""
    page.goto(report.resolve().as_uri())
    page.locator("#chart-faithfulness svg").wait_for()
    page.get_by_role("radio", name="loo-sign").check()
    page.locator("#erased").focus()
    page.keyboard.press("ArrowRight")
    page.locator("#erased").blur()
    page.evaluate("document.querySelector('#examples').scrollIntoView({behavior: 'instant'})")
    page.wait_for_timeout(500)
    page.screenshot(path=DOCS / "report.png")


def take_live_page(page: Any, checkpoint: str) -> None:
    """Take a picture of an example with its strongest word masked, measured."""
    command = [sys.executable, "-m", "faithmeter", "serve", checkpoint, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        address = next(line for line in server.stderr if "http://" in line)
        page.goto(re.findall(r"http://\S+", address)[0])
        page.wait_for_selector(".word.for")
        page.get_by_role("button", name="Mask the strongest").click()
        page.get_by_role("button", name="Measure").click()
        page.wait_for_selector("table.results")
        page.wait_for_timeout(1000)  # until what fades in is there
        height = page.evaluate("document.documentElement.scrollHeight")
        page.set_viewport_size({"width": SIZE["width"], "height": height})
        page.screenshot(path=DOCS / "serve.png")
        server.terminate()


def take_gallery(page: Any, index: Path) -> None:
    """Take a picture of the overview."""
    page.goto(index.resolve().as_uri())
    page.set_viewport_size(SIZE)
    page.locator("#overview").screenshot(path=DOCS / "gallery.png")


def main() -> None:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        take_report(page, Path(sys.argv[1]))
        take_live_page(page, sys.argv[2])
        take_gallery(page, Path(sys.argv[3]))
        browser.close()


if __name__ == "__main__":
    main()

"""No test downloads anything or leaves files outside its temporary folder."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

HOME = tempfile.TemporaryDirectory(prefix="faithmeter-tests-")
os.environ |= {"HF_HOME": HOME.name, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "COLUMNS": "200"}

import hypothesis  # noqa: E402
import pytest  # noqa: E402
import typer.main  # noqa: E402

hypothesis.settings.register_profile("any machine", deadline=None)  # a busy one is slow, not wrong
hypothesis.settings.load_profile("any machine")


def pytest_configure(config: pytest.Config) -> None:
    """Give each process a run of neighbors, which share the fixtures of their module (`pytest -n 2`)."""
    if config.getoption("dist", "no") == "load":  # the default of pytest-xdist
        config.option.dist = "worksteal"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the dearest fixture, the built site, first: at the end, one process would work on it alone."""
    items.sort(key=lambda item: item.path.name != "test_site.py")


@pytest.fixture(scope="session", autouse=True)
def quiet_libraries() -> None:
    """One thread and no bars; imported here, as the process that only hands out tests needs none of them."""
    import datasets
    import torch
    import transformers

    torch.set_num_threads(1)  # tiny models are faster so, the more when the machine is busy
    datasets.disable_progress_bars()
    transformers.logging.disable_progress_bar()
    transformers.logging.set_verbosity_error()
    gc.freeze()  # each training collects garbage, which takes half of its time with all modules in the way


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@cache
def build_command(app: Any) -> Any:
    """Return the command of an app, which typer would build anew for every call."""
    return typer.main.get_command(app)


@pytest.fixture
def faithmeter(capsys, monkeypatch):
    """`faithmeter("list", "tasks")` as typed."""

    from faithmeter import cli

    command = build_command(cli.app)
    build = typer.main.get_command
    monkeypatch.setattr(typer.main, "get_command", lambda app: command if app is cli.app else build(app))

    def call(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["faithmeter", *map(str, arguments)])
        capsys.readouterr()
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
        return Outcome(code, *capsys.readouterr())

    return call


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real Chromium without a window; not for longer, as its driver keeps an event loop running."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs the program chromium, which is not installed: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield found
        found.close()

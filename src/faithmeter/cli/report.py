"""`faithmeter report`: an HTML page on the runs of a store, a gallery of several, or a model card."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from ..files import require_writable, writing
from .options import option
from .progress import phases
from .screen import Json, describe_given, note, print_json, quiet, show

if TYPE_CHECKING:
    from ..store.run_store import RunStore

PAGE = "report.html"
STORE = Path("runs")


@dataclass(frozen=True)
class Pages:
    """Options on the pages to write."""

    page: Path | None = option(None, "page to write", "--output", "-o", show_default=PAGE)
    page_only: bool = option(False, "write no tables and figures beside the page", "--page-only")
    examples: int = option(500, "largest number of example texts", min=0)


def report(
    pages: Pages,
    stores: Annotated[
        list[Path] | None,
        typer.Argument(
            help="folder with the runs; several are put side by side",
            show_default=str(STORE),
        ),
    ] = None,
    model_card: Annotated[
        Path | None, typer.Option(help="instead, write the results into the README.md of this checkpoint")
    ] = None,
    gallery: Annotated[
        Path | None,
        typer.Option(
            help="instead, write a static site to this folder: an index, and a report on each store"
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a report on the runs in a folder: verdict, figures, tables and example texts.

    Two stores, models or measurements are put side by side.
    Example: faithmeter report runs -o report.html
    """
    from ..store.run_store import RunStore

    roots = stores or [STORE]
    _require_one_output(pages, model_card, gallery)
    if gallery is not None:
        _write_gallery(roots, gallery, pages, as_json)
        return
    if len(roots) > 1:
        _write_beside(roots, pages.page or Path(PAGE), model_card, as_json)
        return
    store = RunStore(roots[0])
    if model_card is not None:
        _write_card(model_card, store, as_json)
    else:
        _write_page(store, pages, as_json)


def _require_one_output(pages: Pages, model_card: Path | None, gallery: Path | None) -> None:
    """Raise an InputError for options that exclude each other."""
    options = {
        "--output": pages.page and f"writes {pages.page}",
        "--model-card": model_card and f"writes {model_card / 'README.md'}",
        "--gallery": gallery and f"writes {gallery}",
    }
    # silently ignoring one of them would look like a report that was not written
    given = describe_given(options)
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)}; expected one of them: leave the others out")
    if pages.page_only and model_card is not None:
        raise InputError(
            f"--page-only is an option of the page, but {given[0]} only: leave one of the two out"
        )


def _write_page(store: RunStore, pages: Pages, as_json: bool) -> None:
    page = pages.page or Path(PAGE)
    if page.is_dir():
        raise InputError(f"--output {page} is a folder; expected a file, such as {page / 'report.html'}")
    from ..paper.tables import TABLES
    from ..report.page import write
    from ..report.view import answer_sentences

    require_writable(page.parent, "--output")
    files = None if pages.page_only else page.with_name(f"{page.stem}_files")
    with phases() as advance, writing(page.parent):  # a full disk is told in one line
        written = write(store, page, examples=pages.examples, files=files, progress=advance, tables=TABLES)
    if as_json:
        print_json(written.to_dict())
        return
    show(answer_sentences(written.answers))
    note(f"page: {page}")
    if files is not None:
        note(f"tables and figures: {files}")


def _write_beside(places: list[Path], page: Path, model_card: Path | None, as_json: bool) -> None:
    if model_card is not None:
        raise InputError(f"--model-card takes one store, and {len(places)} are given; name one")
    from ..report.beside import read_beside
    from ..report.blocks import Section
    from ..report.surfaces import write_page
    from ..report.view import view

    require_writable(page.parent, "--output")
    beside = read_beside(places)
    write_page([beside], page, title=" beside ".join(beside.results))
    if as_json:
        print_json({**beside.to_dict(), "page": str(page)})
        return
    show([block for block in view(beside) if not isinstance(block, Section)])
    note(f"page: {page}")


def _write_gallery(roots: list[Path], folder: Path, pages: Pages, as_json: bool) -> None:
    from ..paper.tables import TABLES
    from ..report.gallery import write
    from ..report.page.verdicts import together
    from ..report.view import answer_sentences

    require_writable(folder, "--gallery")
    options: dict[str, Any] = {"examples": pages.examples, "page_only": pages.page_only}
    with phases() as advance, writing(folder):
        written = write(roots, folder, **options, progress=advance, tables=TABLES)
    if as_json:
        print_json(written.to_dict())
        return
    show(answer_sentences(together(written.models)))
    note(f"gallery: {written.index}")


def _write_card(checkpoint: Path, store: RunStore, as_json: bool) -> None:
    from ..report.card import write

    quiet()
    path = write(checkpoint, store)
    if as_json:
        print_json({"model_card": str(path)})
    else:
        note(f"model card: {path}")

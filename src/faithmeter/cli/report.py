"""`faithmeter report`: an HTML page on the runs of a store, with tables and figures as files beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from ..errors import InputError
from .progress import bars
from .screen import MARKS, Json, console, output, print_json, quiet

if TYPE_CHECKING:
    from ..runs.store import RunStore

PAGE = "report.html"


def report(
    store: Annotated[Path, typer.Argument(help="folder with the runs")] = Path("runs"),
    page: Annotated[
        Path | None, typer.Option("--output", "-o", help="page to write", show_default=PAGE)
    ] = None,
    page_only: Annotated[
        bool, typer.Option("--page-only", help="write no tables and figures beside the page")
    ] = False,
    examples: Annotated[int, typer.Option(min=0, help="largest number of example texts")] = 500,
    model_card: Annotated[
        Path | None, typer.Option(help="instead, write the results into the README.md of this checkpoint")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a report on the runs in a folder: verdict, figures, tables and example texts.

    Example: faithmeter report runs -o report.html
    """
    from ..runs.store import RunStore

    if model_card is not None:
        if page is not None or page_only:
            option = f"--output {page}" if page else "--page-only"
            raise InputError(
                f"{option} is an option of the page; --model-card writes {model_card / 'README.md'} only: "
                "leave one of the two out"
            )
        _write_card(model_card, RunStore(store), as_json)
        return
    page = page or Path(PAGE)
    if page.is_dir():
        raise InputError(f"--output {page} is a folder; expected a file, such as {page / 'report.html'}")
    from ..reporting import page as writing

    files = None if page_only else page.with_name(f"{page.stem}_files")
    with bars() as progress:
        lines = {
            what: progress.add_task(what, note="", visible=False) for what in ("figures", "tables", "page")
        }

        def show_progress(what: str, done: int, total: int) -> None:
            progress.update(lines[what], completed=done, total=total, visible=True)

        written = writing.write(RunStore(store), page, examples=examples, files=files, progress=show_progress)
    if as_json:
        print_json(written.to_dict())
        return
    for sentence in written.verdict.sentences:
        output.print(Text.assemble(MARKS[sentence.mood], (sentence.question, "bold")))
        output.print(sentence.text)
    console.print(f"page: {page}", soft_wrap=True)
    if files is not None:
        console.print(f"tables and figures: {files}", soft_wrap=True)


def _write_card(checkpoint: Path, store: RunStore, as_json: bool) -> None:
    from ..reporting import modelcard

    quiet()
    path = modelcard.write(checkpoint, store)
    if as_json:
        print_json({"model_card": str(path)})
    else:
        console.print(f"model card: {path}", soft_wrap=True)

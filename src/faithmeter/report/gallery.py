"""Gallery: a static site with a report for each store, and an index of the verdicts on all models."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..errors import InputError
from ..files import atomic
from ..store.run_store import RunStore
from . import page
from .blocks import Cell
from .html import fill_page
from .page.verdicts import models_table, together
from .view import answer_sentences

if TYPE_CHECKING:
    from .page.verdicts import Judged

INDEX = "index.html"
REPORT = "report.html"


@dataclass(frozen=True)
class Gallery:
    """Path of the index, and the report on each store by its name in the gallery."""

    index: Path
    reports: dict[str, page.Report]

    @property
    def models(self) -> list[Judged]:
        """Verdicts on all models of all stores."""
        return list(chain.from_iterable(report.models for report in self.reports.values()))

    def to_dict(self) -> dict[str, Any]:
        """Return the gallery as JSON-ready values."""
        reports = map(page.Report.to_dict, self.reports.values())
        return {"index": str(self.index), "reports": dict(zip(self.reports, reports, strict=True))}


def write(
    roots: Sequence[Path],
    folder: Path,
    *,
    examples: int = 500,
    page_only: bool = False,
    progress: page.Progress | None = None,
    tables: page.Tables | None = None,
) -> Gallery:
    """Write a report on each store, and an index with all verdicts.

    Args:
        roots: Folders of the stores.
        folder: Folder to write to; a report goes to a folder of its own in it.
        examples: Maximum number of example texts in each report.
        page_only: Write no tables and figures beside the reports.
        progress: Callback that is called after each figure, each table and each report.
        tables: Further tables of the reports, such as those of the paper that the runs replicate.

    Returns:
        The path of the index, and the reports.

    Raises:
        InputError: A store is given twice or holds no finished run, or the folder is a file.
    """
    if folder.is_file():
        raise InputError(
            f"--gallery {folder} is a file; expected a folder, which is made if it does not exist"
        )
    reports = {}
    for name, root in name_stores(roots).items():
        place = folder / name / REPORT
        place.parent.mkdir(parents=True, exist_ok=True)
        # beside the report, so that a folder can be moved or deleted as a whole
        files = None if page_only else place.with_name(f"{place.stem}_files")
        reports[name] = page.write(
            RunStore(root), place, examples=examples, files=files, progress=progress, tables=tables
        )
    gallery = Gallery(folder / INDEX, reports)
    with atomic(gallery.index) as temporary:
        temporary.write_text(_render(gallery), encoding="utf-8", newline="\n")
    return gallery


def name_stores(roots: Sequence[Path]) -> dict[str, Path]:
    """Return the stores by unique names: the ends of their paths, as short as possible."""
    parts = [root.resolve().parts[1:] for root in roots]  # one store by two paths is found, too
    for length in range(1, max(map(len, parts), default=0) + 1):
        names = [re.sub(r"[^\w.-]+", "-", "-".join(part[-length:])) for part in parts]
        if len(set(names)) == len(names):
            return dict(zip(names, roots, strict=True))
    raise InputError(f"{', '.join(map(str, roots))}: a store is given twice; expected different folders")


def _render(gallery: Gallery) -> str:
    entries, links = [], []
    for name, report in gallery.reports.items():
        models = []
        for one in report.models:
            models.append((one.subject, answer_sentences(one.verdict.answers)))
            links.append(Cell(f"{name}/{REPORT}"))
        entries.append({"name": name, "link": f"{name}/{REPORT}", "models": models})
    count = len(gallery.models)
    return fill_page(
        "gallery.html",
        version=__version__,
        heading=f"{count} model{'s' * (count != 1)}",
        about=together(gallery.models)[0].text,
        table=models_table(gallery.models, links),
        entries=entries,
    )

"""Gallery: a static site with a report for each store, and an index of the verdicts on all models."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ... import __version__
from ...errors import InputError
from ...files import atomic
from ...store.run_store import RunStore
from ...verdict import QUESTIONS, format_area
from ...verdict.formats import UNDEFINED, format_pvalue
from .. import page
from ..page.html import fill_template
from ..page.verdict import Verdict, name_some, together

INDEX = "index.html"
REPORT = "report.html"


@dataclass(frozen=True)
class Gallery:
    """Path of the index, and the report on each store by its name in the gallery."""

    index: Path
    reports: dict[str, page.Report]

    @property
    def verdicts(self) -> list[Verdict]:
        """Verdicts on all models of all stores."""
        return [verdict for report in self.reports.values() for verdict in report.verdicts]

    def to_dict(self) -> dict[str, Any]:
        """Return the gallery as JSON-ready values."""
        reports = {name: report.to_dict() for name, report in self.reports.items()}
        return {"index": str(self.index), "reports": reports}


def write(
    roots: Sequence[Path],
    folder: Path,
    *,
    examples: int = 500,
    page_only: bool = False,
    progress: page.Progress | None = None,
    replication: page.Replication | None = None,
) -> Gallery:
    """Write a report on each store, and an index with all verdicts.

    Args:
        roots: Folders of the stores.
        folder: Folder to write to; a report goes to a folder of its own in it.
        examples: Maximum number of example texts in each report.
        page_only: Write no tables and figures beside the reports.
        progress: Callback that is called after each figure, each table and each report.
        replication: What the reports show beside the runs, from the paper that they replicate.

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
            RunStore(root),
            place,
            examples=examples,
            files=files,
            progress=progress,
            replication=replication,
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
    count = len(gallery.verdicts)
    entries = []
    for name, report in gallery.reports.items():
        rows = list(_rows(report.verdicts))
        link = f"{quote(name)}/{REPORT}"
        entries.append({"name": name, "link": link, "verdicts": report.verdicts, "rows": rows})
    return fill_template(
        "gallery/gallery.html",
        (),
        version=__version__,
        heading=f"{count} model{'s' * (count != 1)}",
        about=together(gallery.verdicts).sentences[0].text,
        questions=QUESTIONS,
        entries=entries,
    )


def _rows(verdicts: Sequence[Verdict]) -> Iterator[dict[str, str]]:
    for verdict in verdicts:
        yield {
            "task": verdict.task,
            "model": verdict.model,
            "mood": verdict.sentences[0].mood,
            "answer": verdict.sentences[0].text,
            "leaders": name_some(verdict.leaders) if verdict.leaders else UNDEFINED,
            "acu": UNDEFINED if verdict.area is None else format_area(verdict.area),
            "p": UNDEFINED if math.isnan(verdict.p) else format_pvalue(verdict.p),
        }

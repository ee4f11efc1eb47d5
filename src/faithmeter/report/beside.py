"""Results side by side: two models, two measurements, or whole stores on one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config import BASELINE
from ..errors import InputError
from ..measuring.plain import Rendered
from ..stats.curves import KINDS
from ..store.records import Manifest
from ..store.results import preferred
from ..store.run_store import RunStore
from .blocks import Block, Cell, Section, Table, number_columns
from .view import area_cell, lead, top_sentence
from .view_texts import NAME

if TYPE_CHECKING:
    from ..measuring.result import Result


@dataclass(frozen=True, eq=False)
class Beside(Rendered):
    """Results by title, to be compared."""

    results: Mapping[str, Result]

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON-ready values."""
        return dict(zip(self.results, [result.to_dict() for result in self.results.values()], strict=True))


def read_beside(places: Sequence[Path]) -> Beside:
    """Return the results of stores, and of folders of models or measurements in a store.

    Raises:
        InputError: A place holds no measurement, or all places hold the same one.
    """
    results: dict[str, Result] = {}
    for place in places:
        own = _read_place(place)
        if not own:
            raise InputError(f"{place} holds no measurement; begin with: faithmeter measure {place}")
        for title, result in own.items():
            results[f"{place.name}: {title}" if len(own) > 1 else place.name or str(place)] = result
    if len(results) < 2:
        raise InputError(f"{' and '.join(map(str, places))} have the same name; expected two places")
    return Beside(results)


def _read_place(place: Path) -> dict[str, Result]:
    """Return the results of a store by task and model, or the one of a run's folder."""
    store = RunStore(place)
    records = list(store.records())
    if not records:  # not a store
        store = RunStore(place.parent)
        every = [(folder.resolve(), record) for folder, record in store.records()]
        own = next((record for folder, record in every if folder == place.resolve()), None)
        if own is None:
            raise InputError(f"{place} is neither a store nor a run; expected a folder made by faithmeter")
        measured = None if isinstance(own, Manifest) else own.fingerprint
        records = [
            (folder, one)
            for folder, one in every
            if one is own or (isinstance(one, Manifest) and one.config.checkpoint == measured)
        ]
    results = {}
    for (task, model), pooled in preferred(store.results(records)).items():
        results[f"{Path(task).name} ({Path(model).name})"] = pooled.result
    return results


def view_beside(beside: Beside) -> list[Block]:
    """Return the answer on each result, one table of all, and then each by itself."""
    headlines, sides = [], []
    for title, result in beside.results.items():
        headlines.append(replace(top_sentence(result.verdict), role="answer", lead=title))
        sides.append(Section(title, tuple(lead(result, costs=False))))
    return [*headlines, methods_table(beside.results), *sides]


def methods_table(results: Mapping[str, Result]) -> Table:
    """Return the area of each method on each result, the most faithful on the first one first."""
    # kinds of areas cannot be compared; every result has the area of its metric
    kinds = {result.main_kind for result in results.values()}
    kind = kinds.pop() if len(kinds) == 1 else "acu"
    methods = dict.fromkeys(chain.from_iterable(result.ranked for result in results.values()))
    rows = []
    for method in filter(BASELINE.__ne__, methods):
        cells = [Cell(method)]
        for result in results.values():
            cells.append(area_cell(result, method, kind) if method in result.methods else Cell())
        rows.append(tuple(cells))
    return Table(f"{KINDS[kind].title} in % [95 % interval]", (NAME, *number_columns(results)), tuple(rows))

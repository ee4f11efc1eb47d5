"""A measurement as a join of traces: what a store has is read, and only what is missing is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..files import as_arrow
from ..measuring import texts as reading
from ..measuring.erase import Report, Slice, Work, trace_slice
from ..measuring.plan import Plan
from ..measuring.texts import locate_tokens, read_rows
from ..measuring.trace import Trace, join_traces
from ..phases import Progress
from ..store.identity import describe_trace, name_test, name_trace
from ..store.traces import Shelf, find_gaps, merge_slices, rows_of

if TYPE_CHECKING:
    from pandas import DataFrame
    from torch import Tensor

    from ..models.tokens import Batch

Compute = Callable[[Work, Iterable[Slice], Report], Iterable[tuple[Slice, dict[str, Trace]]]]
"""Function that yields each slice with its traces as soon as they are computed, in any order."""


@dataclass
class Gap:
    """Rows of which something is missing: traces of methods, parts of known traces, or the texts."""

    missing: list[str] = field(default_factory=list)
    known: dict[str, Trace] = field(default_factory=dict)
    texts: bool = False


class Join:
    """Traces and texts of a plan, as far as they are known.

    Args:
        plan: The measurement.
        shelf: Where traces are kept; None keeps them in memory only.
    """

    def __init__(self, plan: Plan, shelf: Shelf | None) -> None:
        self.plan, self.shelf = plan, shelf
        self.texts: list[DataFrame] = []
        self.parts: dict[str, list[Trace]] = {name: [] for name in plan.methods}
        self.names: dict[str, str] = {}
        self.tests: dict[str, str] = {}
        self.descriptions: dict[str, dict[str, Any]] = {}
        if shelf is not None:
            for name, method in plan.methods.items():
                self.descriptions[name] = describe_trace(method, plan.settings)
                self.names[name] = name_trace(self.descriptions[name])
            self.tests = {name: name_test(name, test) for name, test in plan.tests.items()}
            self._read(shelf)

    def _read(self, shelf: Shelf) -> None:
        self.texts = shelf.read_texts(self.plan.count)
        complement = self.plan.settings.complement
        for name, place in self.names.items():
            slices = shelf.read_trace(place, self.plan.count, self.tests, complement=complement)
            for trace in slices:
                # traces are found by content, so own scores of another name may be theirs
                named = replace(trace, method=name)
                if self.is_complete(named):
                    self.parts[name].append(named)
                    continue
                # what is completed is computed slice by slice, like what is missing
                ends = [*range(reading.SLICE, self.plan.count, reading.SLICE), self.plan.count]
                needed = (part for part in named.cut(ends) if rows_of(part).start < self.plan.count)
                self.parts[name] += needed

    def is_complete(self, trace: Trace) -> bool:
        """Return whether a slice has all p-values, and the complement if it is asked for."""
        has_complement = trace.kept is not None or not self.plan.settings.complement
        return has_complement and self.plan.tests.keys() <= trace.pvalues.keys()

    @property
    def subject(self) -> str:
        """Name of the subject's folder; empty without a shelf."""
        return "" if self.shelf is None else self.shelf.folder.name

    def missing(self) -> dict[str, int]:
        """Return the number of texts that each method has not erased yet, of methods that lack any."""
        counts = {}
        for name, parts in self.parts.items():
            count = sum(map(len, find_gaps(map(rows_of, parts), self.plan.count)))
            if count:
                counts[name] = count
        return counts

    def gaps(self) -> dict[range, Gap]:
        """Return what is missing, by rows in rising order: methods that lack the same rows go together."""
        gaps: dict[range, Gap] = {}
        for name, parts in self.parts.items():
            for rows in find_gaps(map(rows_of, parts), self.plan.count):
                gaps.setdefault(rows, Gap()).missing.append(name)
            for trace in parts:
                if not self.is_complete(trace):
                    # explained already: only p-values or the complement are evaluated
                    gaps.setdefault(rows_of(trace), Gap()).known[name] = trace
        for rows in find_gaps(map(rows_of, self.texts), self.plan.count):
            gaps.setdefault(rows, Gap()).texts = True
        # rising, so that progress and a kill leave a prefix of the texts
        return dict(sorted(gaps.items(), key=lambda item: (item[0].start, item[0].stop)))

    def fill(self, compute: Compute, progress: Progress | None) -> None:
        """Compute what is missing, and write each slice as soon as it is finished."""
        plan, gaps = self.plan, self.gaps()
        complete: dict[str, int] = {}
        for name, parts in self.parts.items():
            complete[name] = sum(map(len, filter(self.is_complete, parts)))

        def report(name: str, texts: int) -> None:
            complete[name] += texts
            if progress is not None:
                progress(name, min(complete[name], plan.count), plan.count)

        for name in complete:
            if complete[name]:
                report(name, 0)
        work = Work(plan.evaluator, plan.methods, plan.tests, plan.settings)
        for part, traces in compute(work, self._slices(gaps), report):
            for name, trace in traces.items():
                self._keep(name, trace, part.known.get(name))

    def _slices(self, gaps: Mapping[range, Gap]) -> Iterator[Slice]:
        """Yield the slices whose traces are missing; texts are written on the way."""
        plan = self.plan
        for rows, gap in gaps.items():
            batch, labels = read_rows(plan.evaluator, plan.rows, rows, plan.settings.unit)
            labels = plan.targets(batch, labels)
            # before the traces that refer to these rows, so that a kill leaves no trace without its texts
            if gap.texts:
                self._keep_texts(batch, labels)
            if gap.missing or gap.known:
                yield Slice(batch, labels, tuple(gap.missing), gap.known)

    def _keep_texts(self, batch: Batch, labels: Tensor) -> None:
        frame, rows = locate_tokens(batch, labels), self.plan.rows
        if self.plan.numbers is not None:  # the sides were explained, the numbers are measured
            frame["side"] = frame["label"]
            frame["label"] = self.plan.numbers[frame["row"]]
        if "supporting" in rows.column_names:
            # kept beside the spans of units: plausibility needs both, and not the data any more
            frame["rationale"] = rows.select(frame["row"])["supporting"][:]
        if self.shelf is not None:
            self.shelf.write_texts(frame)
        self.texts.append(as_arrow(frame))

    def _keep(self, name: str, trace: Trace, known: Trace | None) -> None:
        if self.plan.numbers is not None:
            trace = replace(trace, targets=self.plan.numbers[trace.rows])
        # what was completed takes the place of its incomplete part
        self.parts[name] = [part for part in self.parts[name] if part is not known] + [trace]
        if self.shelf is not None:
            self.shelf.write_trace(self.names[name], self.descriptions[name], trace, self.tests, known)

    def merge(self) -> None:
        """Merge the slices on the shelf, now that nothing is missing."""
        if self.shelf is not None:
            merge_slices(self.shelf, [*self.names.values()])

    def traces(self) -> dict[str, Trace]:
        """Return the trace of each method on all texts of the plan; nothing may be missing."""
        joined = {}
        for name, parts in self.parts.items():
            ordered = sorted(parts, key=lambda part: int(part.rows[0]))  # workers finish in any order
            # a merged slice may reach beyond the limit
            joined[name] = join_traces(ordered).first(self.plan.count)
        return joined

    def located_texts(self) -> DataFrame:
        """Return the frame of all texts with the places of their units (see `texts.locate_tokens`)."""
        import pandas as pd

        ordered = sorted(self.texts, key=lambda part: rows_of(part).start)
        frame: DataFrame = pd.concat(ordered, ignore_index=True)
        # likewise
        return frame[frame["row"] < self.plan.count]


def compute_here(
    work: Work, slices: Iterable[Slice], report: Report
) -> Iterator[tuple[Slice, dict[str, Trace]]]:
    """Compute the traces of slices in this process, one slice after the other."""
    for part in slices:
        yield part, trace_slice(work, part, report)

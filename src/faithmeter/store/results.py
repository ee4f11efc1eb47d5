"""Results of a store: measurements of a checkpoint joined, and checkpoints of a training pooled."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config import BASELINE
from ..errors import InputError
from ..measuring.plain import facts_of
from ..measuring.pool import KEPT, Context, join_contexts, make_context
from ..measuring.result import Result
from ..measuring.trace import Trace, join_traces, subset
from .records import Manifest, Record
from .traces import TRACES, Shelf

if TYPE_CHECKING:
    from pandas import DataFrame

TRAINING = ("task", "model", "seed", "strategy", "validation", "scope")
"""Columns that identify a fine-tuning."""
SETTINGS = "settings"
"""Column with a digest of all other training settings; only runs with equal settings may be averaged."""
OF_ROAR = ("method", "code", "step", "percent")
NOT_SETTINGS = {"seed", "strategy", "validation", *OF_ROAR, "data_dir", "report_to", "sweep", "rationale"}
PREFERRED = {"strategy": ("half", "all", "unknown", "none"), "validation": ("both", "masked", "unmasked")}
"""Values in order of preference, for choosing one fine-tuning if a store holds several."""
AGAIN = "measure again, which computes what is missing"
"""What to do about files that are missing or damaged."""
Row = dict[str, Any]


def name_training(record: Record) -> Row:
    """Return the columns of `TRAINING` and `SETTINGS` of a run."""
    values = {**record.trained.to_dict(), "task": record.trained.task_or_data}
    # what distinguishes runs that may be averaged is not part of what they have in common
    others = subset(values, values.keys() - NOT_SETTINGS)
    settings = hashlib.sha256(json.dumps(others, sort_keys=True).encode()).hexdigest()[:8]
    named = subset(values, TRAINING)
    if isinstance(record, Manifest):
        # label, unit and windows make other numbers, and the tests' masks another check
        named |= {"task": record.title, "strategy": record.trained_with}
    return {**named, SETTINGS: settings}


@dataclass(frozen=True, eq=False)
class Run:
    """Everything that a store measured of one checkpoint on the same texts, at the same steps.

    Attributes:
        root: Folder of the store.
        sources: By method, the measurement that it is from: the one on the most texts, and then the newest.
        folders: Folders of these measurements by digest.
    """

    root: Path
    sources: Mapping[str, Manifest]
    folders: Mapping[str, Path]

    @property
    def newest(self) -> Manifest:
        return max(self.sources.values(), key=lambda manifest: manifest.finished)

    @cached_property
    def training(self) -> Row:
        """Columns that name the fine-tuning and its seed."""
        return name_training(self.newest)

    @property
    def tuning(self) -> Row:
        """Columns that name the fine-tuning, whatever its seed."""
        tuning = dict(self.training)
        del tuning["seed"]
        return tuning

    @property
    def shelf(self) -> Shelf:
        return Shelf(self.root / TRACES / self.newest.subject)

    @cached_property
    def texts(self) -> DataFrame:
        """The texts with the places of their units."""
        import pandas as pd

        count: int = max(map(attrgetter("texts"), self.sources.values()))
        frames = self.shelf.read_texts(count)
        # curves of fewer texts than the manifest says would be silently wrong
        if sum(map(len, frames)) < count:
            raise InputError(f"{self.shelf.folder} lacks texts; {AGAIN}")
        frame: DataFrame = pd.concat(frames, ignore_index=True).sort_values("row", ignore_index=True)
        return frame[frame["row"] < count]

    def read(self) -> list[str]:
        """Read texts and traces, and return what is wrong with those that cannot be used.

        Raises:
            InputError: The texts or the traces of the baseline cannot be used, so that nothing can.
        """
        problems = []
        for method in list(self.sources):
            try:
                self.traces[method] = self._trace(method)
            except InputError as error:
                # no area is defined without random erasure
                if method == BASELINE:
                    raise
                problems.append(str(error))
        _ = self.texts
        return problems

    @cached_property
    def traces(self) -> dict[str, Trace]:
        """Traces that have been read by method (see `read`), on the texts that it was measured on."""
        return {}

    def _trace(self, method: str) -> Trace:
        manifest = self.sources[method]
        slices = self.shelf.read_trace(
            manifest.traces[method], manifest.texts, manifest.tests, complement=manifest.config.complement
        )
        # files of Ray's workers are written in any order
        slices = sorted(slices, key=lambda part: int(part.rows[0]))
        # a measurement of fewer texts may read a slice that a larger one merged
        whole = sum(map(len, slices)) >= manifest.texts
        if not whole or any(part.pvalues.keys() < manifest.tests.keys() for part in slices):
            place = self.shelf.folder / manifest.traces[method]
            raise InputError(f"{place} is not complete; {AGAIN}")
        return replace(join_traces(slices).first(manifest.texts), method=method)

    @cached_property
    def context(self) -> Context:
        """Facts that are known besides the traces."""
        newest = self.newest
        facts = facts_of(newest, KEPT)
        floors: dict[str, float] = {}
        scores: dict[str, str] = {}
        for method, manifest in self.sources.items():
            floors |= manifest.floors  # another measurement may have asked for other tests
            if method in manifest.scores:
                scores[method] = manifest.scores[method]
        facts |= {"others": tuple(newest.others), "floors": floors, "scores": scores}
        return make_context(
            self.traces.values(),
            self.texts,
            classes=len(newest.labels),
            ranks_alike=newest.config.ranks_alike,
            unit=newest.config.unit,
            recalibrations=(newest.recalibration,),
            **facts,
        )

    @cached_property
    def result(self) -> Result:
        """Result of this checkpoint alone."""
        return Result((self.traces,), self.context)


@dataclass(frozen=True, eq=False)
class Pooled:
    """Runs of one fine-tuning with several seeds, on the same texts and at the same steps.

    Attributes:
        runs: One run for each seed.
        others: Runs that are left out, as they were measured in another way: on other data, at other steps,
            by another metric or in another precision.
        name: Name of the task, if it is not that of the runs.
    """

    runs: Sequence[Run]
    others: Sequence[Run] = ()
    name: str = ""

    @property
    def training(self) -> Row:
        """Columns that name the fine-tuning, whatever its seed."""
        return self.runs[0].tuning

    @property
    def task(self) -> str:
        return self.name or str(self.training["task"])

    @property
    def model(self) -> str:
        return str(self.training["model"])

    @property
    def rank(self) -> tuple[bool, int, int, bool]:
        """Sort key that puts the preferred fine-tuning first; one without methods is the last."""
        methods = any(set(run.sources) - {BASELINE} for run in self.runs)
        return (not methods, *rank_training(self.training))

    @cached_property
    def result(self) -> Result:
        """Result over all seeds."""
        # a seed that is pooled and was measured in another way, too, is not left out
        known = {run.training["seed"] for run in self.runs}
        other_seeds = len({run.training["seed"] for run in self.others} - known)
        # the same object, so that its intervals are computed once
        if len(self.runs) == 1 and not other_seeds:
            return self.runs[0].result
        context = join_contexts([*map(attrgetter("context"), self.runs)])
        return Result(tuple(map(attrgetter("traces"), self.runs)), replace(context, other_seeds=other_seeds))


def rank_training(training: Mapping[str, Any]) -> tuple[int, int, bool]:
    """Return a sort key that puts the preferred fine-tuning first."""
    strategies, validations = PREFERRED.values()
    places = strategies.index(training["strategy"]), validations.index(training["validation"])
    return (*places, training["scope"] != "explained")


def group_tunings(pooled: Iterable[Pooled]) -> dict[tuple[str, str], list[Pooled]]:
    """Return the fine-tunings of each task and model."""
    groups: dict[tuple[str, str], list[Pooled]] = defaultdict(list)
    for one in pooled:
        groups[one.task, one.model].append(one)
    return dict(groups)


def preferred(pooled: Iterable[Pooled]) -> dict[tuple[str, str], Pooled]:
    """Return the measurement of the preferred fine-tuning of each task and model."""
    groups = group_tunings(pooled)
    return {key: min(tunings, key=attrgetter("rank")) for key, tunings in groups.items()}


def read_runs(root: Path, measurements: Iterable[tuple[Path, Manifest]]) -> list[Run]:
    """Return the measurements of a store, joined by checkpoint.

    Only those on the same texts, at the same steps and by the same metric are joined.
    """
    manifests: dict[str, Manifest] = {}
    places: dict[str, Path] = {}
    for folder, manifest in measurements:  # of copies, the last one
        manifests[manifest.digest], places[manifest.digest] = manifest, folder
    joined: dict[tuple[Any, ...], dict[str, Manifest]] = defaultdict(dict)
    # the last one wins: of a method that was measured twice, the run on most texts and then the newest
    for manifest in sorted(manifests.values(), key=attrgetter("texts", "finished")):
        config = manifest.config
        # the subject covers weights, texts, precision, unit and windows
        key = manifest.subject, config.percents, manifest.metric, config.metric_code, manifest.title
        joined[key].update(dict.fromkeys(manifest.traces, manifest))
    return [Run(root, sources, places) for sources in joined.values()]


def pool_runs(runs: Iterable[Run]) -> list[Pooled]:
    """Return the runs of each fine-tuning, pooled over seeds.

    Of the seeds of a fine-tuning, those measured in the most common way are pooled: on the same data, at the
    same steps, by the same metric and in the same precision. Of a seed that was trained or measured more than
    once, the run on the most texts counts, and then the newest.
    """
    trainings: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        trainings[json.dumps(run.tuning, sort_keys=True)].append(run)
    pooled = []
    for same in trainings.values():
        ways: dict[tuple[Any, ...], dict[int, Run]] = defaultdict(dict)
        # a seed may have been trained twice; the heavier run comes last and stays
        for run in sorted(same, key=_weight):
            ways[_way(run)][run.training["seed"]] = run
        # most seeds first: a mean over mixed ways of measuring would mean nothing
        usual = max(ways.values(), key=lambda seeds: (len(seeds), max(map(_weight, seeds.values()))))
        others = [run for way in ways.values() if way is not usual for run in way.values()]
        pooled.append(Pooled([*map(usual.__getitem__, sorted(usual))], others))
    return pooled


def describe_others(measured: Iterable[Pooled]) -> list[str]:
    """Return a line on each fine-tuning of which runs are left out."""
    return [
        f"{pooled.task}, {Path(pooled.model).name}: {len(pooled.others)} measurements on other data, at "
        "other steps, by another metric or in another precision"
        for pooled in measured
        if pooled.others
    ]


def _way(run: Run) -> tuple[Any, ...]:
    newest = run.newest
    config = newest.config
    # areas at other steps, by another metric or in another precision are other quantities
    return config.data, config.percents, newest.metric, config.metric_code, newest.precision


def _weight(run: Run) -> tuple[int, int, bool, str]:
    """Return a sort key: more methods, more texts, full precision, newer."""
    texts = max(map(attrgetter("texts"), run.sources.values()))
    return len(run.sources), texts, run.newest.precision == "fp32", run.newest.finished

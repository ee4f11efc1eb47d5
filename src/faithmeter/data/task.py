"""`Task`, the descriptions of its columns, files and sources, and `LabeledTask` for labels by a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self

from pydantic import Field

from ..config import AGREEMENT, SIDES, Kind
from ..errors import InputError, unknown
from ..files import read_parquet, write_parquet
from ..stats.metrics import require_metric

if TYPE_CHECKING:
    from datasets import Dataset

ROLES = ("train", "validation", "test")
LABELED = "labeled.parquet"
"""Texts of an adaptation with the predictions of the original, beside the checkpoint."""


class Columns(NamedTuple):
    """Names of the columns in the source of a task."""

    text: str
    label: str | tuple[str, ...] | None = "label"  # several columns hold 0 or 1; None: no labels
    context: str | None = None
    rationale: str | None = None  # passages that people call the reason

    @property
    def names(self) -> list[str]:
        """Names of all columns."""
        labels = self.label if isinstance(self.label, tuple) else (self.label,)
        return [name for name in (self.text, *labels, self.context, self.rationale) if name is not None]


@dataclass(frozen=True)
class Files:
    """Layout of a task's official files."""

    layout: str  # a name in `official.OFFICIAL`
    folders: tuple[str, ...]  # names of the task's folder inside a folder of datasets
    names: tuple[str, ...]  # of the files; of `a|b`, the first that exists is read
    columns: Columns | None = None  # None: the columns of the task
    header: tuple[str, ...] = ()  # column names of files without a header line
    codes: tuple[str, ...] = ()  # labels as written in the files, in index order; empty: their names
    unlabeled: str | None = None  # label of the rows to skip
    key: str | None = None  # column that orders the rows; None: the row number
    drop_short: bool = False  # skip rows with too few columns, but count them


@dataclass(frozen=True)
class Hub:
    """Dataset repository on the hub, whose columns and labels are named as in the task."""

    repo: str
    config: str | None = None
    key: str | None = None
    note: str = ""  # why the splits differ from the published ones; empty if they do not

    @property
    def title(self) -> str:
        return "/".join(filter(None, (self.repo, self.config)))


@dataclass(frozen=True)
class Own:
    """Data files of the user; a split without a file is taken from `train`, or left out without it."""

    train: Path | None
    validation: Path | None = None
    test: Path | None = None

    @property
    def main(self) -> Path:
        """File that the labels are read from."""
        return next(iter(self.paths[role] for role in ("train", "test") if role in self.paths))

    @property
    def paths(self) -> dict[str, Path]:
        """Paths of the splits that have a file, by split name."""
        paths = zip(ROLES, (self.train, self.validation, self.test), strict=True)
        return {role: path for role, path in paths if path is not None}


@dataclass(frozen=True)
class Source:
    """Source of a task's rows."""

    kind: Annotated[str, Field(description="files, hub, generated or own")]
    place: Annotated[str, Field(description="folder, file or name on the hub")]
    available: Annotated[bool, Field(description="whether the rows can be read without a download")]
    published: Annotated[bool, Field(description="whether rows and splits are those of the paper")]
    note: Annotated[str, Field(description="remark on the source; empty if there is none")] = ""


@dataclass(frozen=True)
class Task:
    """Dataset with its splits, columns, labels and metric; `load` reads its rows.

    Attributes:
        name: Name in commands, tables and reports.
        explained: Column that is masked and scored.
        labels: Names of the classes, in index order; of a regression task, the name of the number.
        context: Column with the second text of a pair; None for single texts.
        metrics: Names of the metrics to report: `accuracy`, `macro_f1`, `micro_f1` and `matthews` of
            classes; `pearson`, `spearman` and `r2` of numbers; or your own, see `metric`.
        metric: Metric of the faithfulness curves, which also selects the best epoch.
        epochs: Default number of training epochs.
        threshold: A run counts as converged if its test metric without masking is above this fraction.
        label: Column with the labels, or a column of 0 and 1 for each of several labels; None for unlabeled
            rows, which all get the first class.
        official: Names of the official splits. If there are two, validation rows are taken from the first.
        files: Layout of the official files, or None.
        hub: Repository on the hub with the rows, or None.
        own: Data files of the user, or None for a task of the paper.
        xor: True for the released labels of Anemia and Diabetes, in which two matching codes cancel out.
        kind: `single-label`; `multi-label`: each row has a list of 0 and 1, one for each label; or
            `regression`: each row has a number.
        data_dir: Folder with the official files; None uses the hub or the generator.
        rationale: Column of your own test rows with human rationales; None if there is none.
        codes: Labels as written in the source, if `labels` are other names for them (`with_classes`).

    Example:
        >>> {name: len(split) for name, split in task.load().items()}
        {'train': 192, 'validation': 24, 'test': 24}
    """

    name: str
    explained: str
    labels: tuple[str, ...]
    context: str | None = None
    metrics: tuple[str, ...] = ("accuracy",)
    metric: str = "accuracy"
    epochs: int = 20
    threshold: float = -1.0
    label: str | tuple[str, ...] | None = "label"
    official: tuple[str, ...] = ("train", "validation")
    files: Files | None = None
    hub: Hub | None = None
    own: Own | None = None
    xor: bool = False
    kind: Kind = "single-label"
    data_dir: Path | None = None
    rationale: str | None = None
    codes: tuple[str, ...] = ()

    def load(self) -> dict[str, Dataset]:
        """Return the splits `train`, `validation` and `test`; without training rows only those there are.

        Their columns are `text`, `label` and, for pairs, `context`. Tasks with rationales also have
        `supporting`: the start and end of each passage of `text` that holds the reason. Files are read again
        only after they have changed.
        """
        from .splits import load

        return load(self)

    def split(self, role: str) -> Dataset:
        """Return one split; raise an InputError if the task has none."""
        splits = self.load()
        if role not in splits:
            raise InputError(
                f"{self.name} has no {role} rows: all its rows are test texts; give a file with {role} rows"
            )
        return splits[role]

    def with_metric(self, metric: str) -> Self:
        """Return the task with another metric for curves and the best epoch, after checking that it fits."""
        if metric not in self.metrics:
            require_metric(metric, self.kind)
        return replace(self, metric=metric, metrics=tuple(dict.fromkeys((*self.metrics, metric))))

    def with_classes(self, names: Mapping[str, str]) -> Self:
        """Return the task with the names that a model has for its classes, by the task's own names.

        Classes of task and model are matched by name, and names that do not match are an error.

        Raises:
            InputError: The task has no such class, or two classes would have the same name.

        Example:
            >>> reviews = fm.own_task("stories.csv", text="story", label="place")
            >>> reviews.with_classes({"office": "bureau"}).labels[-1]
            'bureau'
        """
        if not names:
            return self
        for name in names:
            if name not in self.labels:
                raise unknown("class of the task", name, self.labels)
        labels = tuple(names.get(name, name) for name in self.labels)
        if len({*labels}) < len(labels):
            raise InputError(
                f"classes {', '.join(labels)}: two have the same name; expected a name of its own for each"
            )
        return replace(self, labels=labels, codes=self.codes or self.labels)

    @property
    def source(self) -> Source:
        """Source that `load` would read, and whether it is available now."""
        from .splits import describe

        return describe(self)

    @property
    def roles(self) -> dict[str, str]:
        """Names of the official splits by role: train, validation (if there are three) and test."""
        return dict(zip(ROLES if len(self.official) == 3 else ("train", "test"), self.official, strict=True))

    @property
    def columns(self) -> Columns:
        return Columns(self.explained, self.label, self.context, self.rationale)


@dataclass(frozen=True)
class LabeledTask(Task):
    """Task whose rows are in memory, labeled by a model."""

    splits: Mapping[str, Dataset] = field(default_factory=dict, repr=False, compare=False)
    place: str = ""

    def load(self) -> dict[str, Dataset]:
        return dict(self.splits)

    @property
    def source(self) -> Source:
        return Source("labeled", self.place, available=True, published=False, note="labeled by a model")


def unlabeled_task(own: Own, columns: Columns, labels: Sequence[str]) -> Task:
    """Return a task for your own unlabeled texts; every row gets the first of `labels` as a placeholder."""
    return Task(
        own.main.name.partition(".")[0],
        columns.text,
        tuple(labels),
        columns.context,
        label=None,
        official=ROLES,
        own=own,
        rationale=columns.rationale,
    )


def class_task(task: Task, classes: Sequence[str]) -> Task:
    """Return the task as a classifier with these classes sees it.

    Of several labels, the task is about the last of `classes`; of numbers, about their two sides.
    """
    if task.kind == "multi-label":
        return label_task(task, classes[-1])
    return side_task(task) if task.kind == "regression" and task.labels != SIDES else task


def side_task(task: Task) -> LabeledTask:
    """Return a regression task whose labels tell on which side of the test rows' mean a number lies.

    Signed methods need a direction: for a text with a low number, they explain what lowers it. The column
    `value` holds the numbers, by which performance is measured.
    """
    splits = task.load()
    mean = sum(splits["test"]["label"][:]) / len(splits["test"])
    labels, rows = {}, {}
    for role, split in splits.items():
        labels[role] = [int(number >= mean) for number in split["label"][:]]
    sides = labeled_task(splits, labels, name=task.name, classes=SIDES)
    for role, split in sides.splits.items():
        rows[role] = split.add_column("value", splits[role]["label"][:])
    # performance is that of the numbers, in the task's own metric and columns
    measured: dict[str, Any] = {"metrics": task.metrics, "metric": task.metric, "threshold": task.threshold}
    measured |= {"explained": task.explained, "context": task.context, "place": task.source.place}
    return replace(sides, splits=rows, kind="regression", **measured)


def label_task(task: Task, label: str) -> LabeledTask:
    """Return the task of predicting one label of a multi-label task, measured by macro F1.

    Raises:
        InputError: The task has no such label.
    """
    if label not in task.labels:
        raise unknown("label", label, task.labels)
    number, splits = task.labels.index(label), task.load()
    labels: dict[str, list[int]] = {}
    for role, rows in splits.items():
        labels[role] = [chosen[number] for chosen in rows["label"][:]]
    name, classes = f"{task.name}: {label}", (f"not {label}", label)
    chosen = labeled_task(splits, labels, name=name, classes=classes)
    return replace(chosen, metrics=("accuracy", "macro_f1"), metric="macro_f1", place=task.source.place)


def labeled_task(
    splits: Mapping[str, Dataset], labels: Mapping[str, Sequence[int]], *, name: str, classes: Sequence[str]
) -> LabeledTask:
    """Return a task with the texts of `splits` and labels by a model; its metric is the agreement with it."""
    rows = {role: _relabeled(split, labels[role], classes) for role, split in splits.items()}
    context = "context" if "context" in next(iter(rows.values())).column_names else None
    metric = AGREEMENT
    return LabeledTask(name, "text", tuple(classes), context, metrics=(metric,), metric=metric, splits=rows)


def _relabeled(split: Dataset, labels: Sequence[int], classes: Sequence[str]) -> Dataset:
    from datasets import ClassLabel, Dataset, Features, List, Value

    # types are given, as those of an empty column, or of a file, are guessed otherwise
    kinds = {"text": Value("string"), "context": Value("string"), "supporting": List(List(Value("int32")))}
    names = [name for name in kinds if name in split.column_names]
    features = {name: kinds[name] for name in names} | {"label": ClassLabel(names=[*classes])}
    columns = split.select_columns(names).to_dict() | {"label": [*labels]}
    return Dataset.from_dict(columns, features=Features(features))


def write_labeled(path: Path, task: LabeledTask) -> None:
    """Write the rows of a task to one file."""
    import pandas as pd

    write_parquet(path, pd.concat(rows.to_pandas().assign(split=role) for role, rows in task.splits.items()))


def read_labeled(path: Path, *, name: str, classes: Sequence[str]) -> LabeledTask:
    """Return the task whose rows `write_labeled` wrote."""
    from datasets import Dataset

    frame = read_parquet(path)
    if frame is None:
        raise InputError(f"{path} is missing or damaged; adapt the model again, or name a task with --task")
    parts, labels = {}, {}
    for role in ROLES:
        parts[role] = Dataset.from_pandas(frame[frame["split"] == role], preserve_index=False)
        labels[role] = parts[role]["label"][:]
    return labeled_task(parts, labels, name=name, classes=classes)

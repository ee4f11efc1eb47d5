"""`Task`, and the descriptions of its columns, files and sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, Self

from pydantic import Field

from ..config import Kind
from ..errors import InputError, unknown
from ..stats.metrics import require_metric

if TYPE_CHECKING:
    from datasets import Dataset

ROLES = ("train", "validation", "test")


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

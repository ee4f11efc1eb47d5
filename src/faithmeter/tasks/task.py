"""Task: a dataset with its splits, columns, labels and metric, and the sources of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datasets import Dataset

ROLES = ("train", "validation", "test")


class Columns(NamedTuple):
    """Names of the columns at a source."""

    text: str
    label: str = "label"
    context: str | None = None


@dataclass(frozen=True)
class Files:
    """Layout of a task's official files."""

    reader: str  # a name in `sources.READERS`
    folders: tuple[str, ...]  # names of the task's folder inside a folder of datasets
    names: tuple[str, ...] = ()  # one file for each official split
    columns: Columns | None = None  # None: the task's own
    header: tuple[str, ...] | None = None  # for a file whose first line is already a row
    codes: tuple[str, ...] = ()  # labels as written in the files, in index order; none: their names
    unlabeled: str | None = None  # label of the rows that are left out
    key: str | None = None  # column that orders the rows; None: the row number
    drop_short: bool = False  # leave out rows that lack columns, but count them


@dataclass(frozen=True)
class Hub:
    """Parquet repository on the hub with the column and label names of the task."""

    repo: str
    config: str | None = None
    key: str | None = None
    note: str = ""  # why the splits are not the published ones


@dataclass(frozen=True)
class Own:
    """Files of a user; a split without a file is cut from `train`."""

    train: Path
    validation: Path | None = None
    test: Path | None = None

    @property
    def paths(self) -> dict[str, Path]:
        """Path of each split that has one."""
        paths = zip(ROLES, (self.train, self.validation, self.test), strict=True)
        return {role: path for role, path in paths if path is not None}


@dataclass(frozen=True)
class Source:
    """Origin of a task's rows."""

    kind: str  # files, hub, generated, own
    place: str
    available: bool  # right now, without a download
    published: bool  # these are the rows and splits of the paper
    note: str = ""


@dataclass(frozen=True)
class Task:
    """Dataset with its splits, columns, labels and metric; `load` reads its rows.

    Attributes:
        name: Name in commands, tables and reports.
        explained: Column that is masked and scored.
        labels: Names of the classes, in index order.
        context: The other column of a pair; None for single texts.
        metrics: Metrics that are reported: `accuracy`, `macro_f1`, `micro_f1`, `matthews`.
        metric: The one that chooses the checkpoint and makes the curves, a fraction from 0 to 1.
        epochs: Epochs of a fine-tuning that does not set them.
        threshold: A run has converged if its unmasked test metric is above this fraction.
        label: Column of the labels.
        official: Names of the official splits. Of two, the first is cut into train and validation.
        files: Layout of the official files, if there are any.
        hub: Repository with the rows, if there is one.
        own: Files of a user, if these are the source.
        xor: Labels of Anemia and Diabetes as released: two matching codes of an admission cancel out.
        data_dir: Folder with the official files; None takes the hub or the generator.

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
    label: str = "label"
    official: tuple[str, ...] = ("train", "validation")
    files: Files | None = None
    hub: Hub | None = None
    own: Own | None = None
    xor: bool = False
    data_dir: Path | None = None

    def load(self) -> dict[str, Dataset]:
        """Return the splits `train`, `validation` and `test`.

        Their columns are `text`, `label` and, in pairs, `context`. bAbI has a fourth one, `supporting`: start
        and end of each supporting fact in `text`. Files are read again only after they have changed.
        """
        from .sources import load

        return load(self)

    @property
    def source(self) -> Source:
        """Source that `load` would read, and whether it is there now."""
        from .sources import describe

        return describe(self)

    @property
    def roles(self) -> dict[str, str]:
        """Official split that serves as train, (validation,) and test."""
        return dict(zip(ROLES if len(self.official) == 3 else ("train", "test"), self.official, strict=True))

    @property
    def columns(self) -> Columns:
        return Columns(self.explained, self.label, self.context)

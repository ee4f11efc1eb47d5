"""Task: a dataset with its splits, columns, labels and metric, and where its rows can come from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datasets import Dataset

ROLES = ("train", "validation", "test")


class Columns(NamedTuple):
    """What the columns are called at a source."""

    text: str
    label: str = "label"
    context: str | None = None


@dataclass(frozen=True)
class Files:
    """How a task lies on disk as its distributor ships it."""

    reader: str  # a name in `sources.READERS`
    folders: tuple[str, ...]  # what the folder is called inside a folder of datasets
    names: tuple[str, ...] = ()  # one file for each official split
    columns: Columns | None = None  # None: the task's own
    header: tuple[str, ...] | None = None  # for a file whose first line is already a row
    codes: tuple[str, ...] = ()  # how the labels are written, in index order; none: by their names
    unlabeled: str | None = None  # the label of rows that are left out
    key: str | None = None  # the column that orders the rows; None: the row number
    drop_short: bool = False  # rows that lack columns are left out, but counted


@dataclass(frozen=True)
class Hub:
    """A parquet repository on the hub; columns and labels are called as in the task."""

    repo: str
    config: str | None = None
    key: str | None = None
    note: str = ""  # why the splits are not the published ones


@dataclass(frozen=True)
class Own:
    """A user's files; a part that has none is cut from `train`."""

    train: Path
    validation: Path | None = None
    test: Path | None = None


@dataclass(frozen=True)
class Source:
    """Where rows come from."""

    kind: str  # files, hub, generated, own
    place: str
    available: bool  # right now, without a download
    published: bool  # these are the rows and splits of the paper
    note: str = ""


@dataclass(frozen=True)
class Task:
    """What is known of a dataset without opening it; `load` reads it."""

    name: str
    explained: str  # the column that is masked and scored
    labels: tuple[str, ...]  # in index order
    context: str | None = None  # the other column of a pair
    metrics: tuple[str, ...] = ("accuracy",)
    metric: str = "accuracy"  # the one that chooses the checkpoint and makes the curves
    epochs: int = 20
    threshold: float = -1.0  # a run whose unmasked test metric is not above it has not converged
    label: str = "label"  # the column of the labels
    official: tuple[str, ...] = ("train", "validation")  # of two the first is cut, the other is test
    files: Files | None = None
    hub: Hub | None = None
    own: Own | None = None
    xor: bool = False  # Anemia, Diabetes: as released, two matching codes of an admission cancel each other
    data_dir: Path | None = None  # where the official files are; None: generated, or from the hub

    def load(self) -> dict[str, Dataset]:
        """The splits `train`, `validation` and `test`, with columns `text`, `label` and, in pairs, `context`.

        bAbI has a fourth column, `supporting`: start and end of each supporting fact in `text`.
        """
        from .sources import load

        return load(self)

    @property
    def source(self) -> Source:
        """Where `load` would find the rows, and whether they are there now."""
        from .sources import describe

        return describe(self)

    @property
    def roles(self) -> dict[str, str]:
        """Which official split is train, (validation,) and test here."""
        return dict(zip(ROLES if len(self.official) == 3 else ("train", "test"), self.official, strict=True))

    @property
    def columns(self) -> Columns:
        return Columns(self.explained, self.label, self.context)

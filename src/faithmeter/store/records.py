"""Records of finished runs: their types, and the JSON files that store them.

An undefined number is NaN in Python and null in the file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    TypeAdapter,
    ValidationError,
)

from ..config import AdaptConfig, MeasureConfig, RoarConfig, TrainConfig
from ..data.task import Source
from ..errors import InputError
from ..files import plain, read_parquet, read_sealed_json

if TYPE_CHECKING:
    from ..measuring.measurement import Measurement
    from ..verdict import AdaptEvidence, Answer

RECORD = "record.json"
"""File name of the record in the folder of a run."""
MANIFEST = "manifest.json"
"""File name of the manifest in the folder of a measurement."""
TEXTS = "texts.parquet"
"""File name of the per-text results, beside the record of a measurement."""
INPUTS = "inputs.parquet"
"""File name of the measured texts with their token positions, beside the record of a measurement."""
TESTS = "masf-"
"""Prefix of the names of files with fitted in-distribution tests, beside a checkpoint."""
CHOICES = "auto-"
"""Prefix of the names of files with the method that `auto` chose, beside a checkpoint."""
RECORD_FORMAT: Final = 1
"""Version of the record format; it changes when a field is renamed, removed or redefined."""


def _null_to_nan(value: object) -> object:
    return math.nan if value is None else value


def _one_nan(value: float) -> float:
    """Return `math.nan` for any NaN, as containers compare elements by identity first."""
    return math.nan if math.isnan(value) else value


Number = Annotated[
    float,
    BeforeValidator(_null_to_nan, json_schema_input_type=float | None),
    AfterValidator(_one_nan),
    PlainSerializer(plain, return_type=float | None),
]
"""Float that may be undefined: NaN in Python, null in JSON."""
Numbers = dict[str, Number]


class ForeignRecord(InputError):
    """Error for an intact record in a format that this version cannot read."""


class Part(BaseModel):
    """Base class of records and their parts: immutable, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class MaskedScores(Part):
    """Performance under one masking condition; each metric is an attribute, such as `accuracy`."""

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: Numbers = Field(init=False)

    masking: int | Literal["uniform", "all"] = Field(
        description="percent of the tokens masked; uniform: a random rate; all: every token of all columns"
    )
    loss: Number = Field(description="mean cross-entropy")
    texts: int = Field(default=0, description="number of texts, spread over the split; 0: all of it")

    def score(self, metric: str) -> float:
        return self.__pydantic_extra__[metric]


class Epoch(Part):
    """One epoch of a training run."""

    epoch: int = Field(description="number of the epoch, from 1")
    train_loss: Number = Field(description="mean loss of the training rows")
    selection: Number = Field(description="score by which the best epoch is chosen")
    validation: list[MaskedScores] = Field(description="performance on validation texts, by masking")


class Environment(Part):
    """Machine and package versions of a run."""

    versions: dict[str, str] = Field(description="version of each package")
    python: str = Field(description="version of Python")
    host: str = Field(description="name of the machine")
    machine: str = Field(description="operating system and processor")
    cores: int | None = Field(description="number of processor cores")
    commit: str | None = Field(description="git commit of faithmeter, in a clone")


class CurveValues(Part):
    """Performance at increasing percentages of erased tokens."""

    percents: list[int] = Field(description="percentages of erased tokens, from 0 to 100")
    values: list[Number] = Field(description="performance at each of them, as a fraction")
    metric: str = Field(description="name of the metric")
    n: int = Field(description="number of texts")


class Areas(Part):
    """Curve with its ACU and RACU, as fractions."""

    curve: CurveValues = Field(description="performance as tokens are erased")
    acu: Number = Field(description="area between the curves of random erasure and of the method")
    racu: Number = Field(description="ACU relative to the area of a curve that falls at once")


class StepPValue(Part):
    """P-value of all texts at one percentage erased, and the share of texts below each significance level."""

    p: Number = Field(description="p-value of all texts together")
    below: dict[float, Number] = Field(description="by significance level: share of texts with a smaller p")


class Bounds(Part):
    """Bounds of a confidence interval."""

    lower: Number = Field(description="lower bound")
    upper: Number = Field(description="upper bound")


class MethodResult(Areas):
    """Results of one method in a measurement."""

    others: dict[str, Areas] = Field(description="by metric, for the other metrics of the task")
    p: Numbers = Field(description="by test: p-value of the steps below 100 % together")
    pvalues: dict[str, dict[int, StepPValue]] = Field(description="by test and percent")
    evaluations: int = Field(description="model evaluations, in texts")
    evaluations_alone: int = Field(
        default=0, description="evaluations that the method would have needed alone; 0 if not counted"
    )
    seconds: dict[str, float] = Field(description="by phase: explain, evaluate, check")
    intervals: dict[str, Bounds] = Field(default={}, description="by quantity, over texts")
    metrics: Numbers = Field(default={}, description="metrics of other papers, by name")
    plausibility: Numbers = Field(default={}, description="agreement with human rationales, by name")
    scores: str = Field(
        default="", description="origin of scores that were computed elsewhere: a file, or Python"
    )


class _Record(Part):
    """Fields that records of all kinds share."""

    format: Literal[1] = Field(default=RECORD_FORMAT, description="version of the record format")
    digest: str = Field(description="digest of the config, which ends the name of the run's folder")
    finished: str = Field(description="UTC, in ISO 8601")
    environment: Environment = Field(description="machine and package versions")
    files: dict[str, str] = Field(description="SHA-256 of each file beside the record")
    checksum: str = Field(default="", description="SHA-256 of the record without this field")
    seconds: dict[str, float] = Field(description="by phase")
    task_name: str = Field(default="", description="name of the task; for own data, what its owner calls it")

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON-ready values; NaN becomes null."""
        return self.model_dump(mode="json")


class TrainRecord(_Record):
    """Record of a fine-tuning run, stored beside its checkpoint."""

    kind: Literal["train"] = Field(default="train", description="kind of the run")
    config: TrainConfig = Field(description="task, model, seed and settings")
    epochs: list[Epoch] = Field(description="losses and scores of each epoch")
    best_epoch: int = Field(description="epoch whose weights are saved")
    metric: str = Field(description="metric that chooses the epoch")
    threshold: float = Field(description="performance above which a training counts as converged")
    test: list[MaskedScores] = Field(description="performance on test texts, by masking")
    majority: dict[str, Numbers] = Field(description="by split and metric: always the most frequent class")
    source: Source = Field(description="origin of the rows")
    splits: dict[str, str] = Field(description="digest of each split")
    encoder: str = Field(description="fingerprint of the pre-trained encoder and its tokenizer")
    previous: str = Field(description="fingerprint of the model that erased the texts, in Recursive ROAR")
    metric_code: str = Field(default="", description="digest of the metric's source; empty if built in")
    data: str = Field(description="digest of the splits that a measurement reads")
    labels: list[str] = Field(description="names of the classes, in index order")
    columns: list[str] = Field(default=[], description="columns of the rows: text, context if pairs")
    fingerprint: str = Field(description="of the trained model and its tokenizer")
    rows: dict[str, int] = Field(description="number of rows in each split")
    truncated: dict[str, float] = Field(description="share of each split's texts that were cut")
    precision: str = Field(description="data type of the training")

    @property
    def trained(self) -> TrainConfig:
        """Config of the fine-tuning run."""
        return self.config

    @property
    def unmasked(self) -> float:
        """Test performance on whole texts."""
        return next(line.score(self.metric) for line in self.test if line.masking == 0)


class RoarRecord(TrainRecord):
    """Record of one step of Recursive ROAR."""

    kind: Literal["roar"] = Field(default="roar", description="kind of the run")  # type: ignore[assignment]
    config: RoarConfig = Field(description="config of the fine-tuning, and the step of erasure")
    plain: Number = Field(description="test performance before anything was erased")


class AdaptRecord(TrainRecord):
    """Record of an adaptation; its labels are predictions of the original, its metric is the agreement."""

    kind: Literal["adapt"] = Field(default="adapt", description="kind of the run")  # type: ignore[assignment]
    config: AdaptConfig = Field(description="texts, original model, seed and settings")
    agreement: float = Field(description="share of held-out whole texts with the prediction of the original")
    constant: Number = Field(
        default=math.nan, description="agreement of always giving the original's most frequent class"
    )
    kappa: Number = Field(default=math.nan, description="Cohen's kappa of both models' predictions")
    behavior: dict[str, Any] | None = Field(
        default=None, description="behavioral check of the adapted model on masked texts; null if not made"
    )
    p_original: dict[str, dict[int, Number]] = Field(
        description="by test and percent masked: the original, its check fitted on whole texts"
    )
    p_adapted: dict[str, dict[int, Number]] = Field(
        description="by test and percent masked: the adapted model, its check fitted on masked texts"
    )
    floors: Numbers = Field(
        default={}, description="by test: the smallest p-value that the adapted model's check can give"
    )
    outside_share: Number = Field(
        default=0.0, description="largest share of partly masked texts that the test rejects one by one"
    )
    outside_share_original: Number = Field(
        default=math.nan, description="that share for the original; null in older records"
    )
    checked_texts: int = Field(description="number of texts of both checks")
    rank_agreement: Number = Field(description="mean rank correlation of both models' scores")
    rank_lower: Number = Field(default=math.nan, description="lower 95 % bound of that mean")
    rank_upper: Number = Field(default=math.nan, description="upper 95 % bound of that mean")
    same_top: Number = Field(description="share of texts whose highest-scored token is the same")
    explained_texts: int = Field(description="number of texts that both were compared on")
    truth: Numbers = Field(
        default={}, description="performance of original and adapted model by true labels, where given"
    )

    @property
    def original(self) -> str:
        """Fingerprint of the original model, including its head."""
        return self.encoder

    @property
    def evidence(self) -> AdaptEvidence:
        """Facts from which the verdict is derived."""
        from ..stats.behavior import Behavior
        from ..verdict import AdaptEvidence, choose_test

        test = choose_test(self.p_adapted)
        return AdaptEvidence(
            agreement=self.agreement,
            required=self.config.agreement,
            texts=self.rows["test"],
            original=self.p_original[test],
            adapted=self.p_adapted[test],
            floors=self.floors,
            outside_share=self.outside_share,
            outside_share_original=self.outside_share_original,
            method=self.config.compare,
            rank_agreement=(self.rank_agreement, self.rank_lower, self.rank_upper),
            constant=self.constant,
            kappa=self.kappa,
            behavior=None if self.behavior is None else Behavior.from_dict(self.behavior),
        )

    @property
    def answers(self) -> tuple[Answer, ...]:
        """Verdict, as answers to three questions."""
        from ..verdict import judge_adaptation

        return judge_adaptation(self.evidence)


class MeasureRecord(_Record):
    """Record of a measurement, stored beside the per-text results."""

    kind: Literal["measure"] = Field(default="measure", description="kind of the run")
    config: MeasureConfig = Field(description="checkpoint, texts, methods and settings")
    trained: TrainConfig | RoarConfig | AdaptConfig = Field(
        description="how the checkpoint was trained, as far as known"
    )
    train_digest: str = Field(description="digest of the config that the checkpoint was trained with")
    labels: list[str] = Field(description="names of the classes, in index order")
    threshold: float = Field(description="performance above which a training counts as converged")
    metric: str = Field(description="metric of the curves")
    texts: int = Field(description="number of measured texts")
    majority: Number = Field(description="performance of always predicting the most frequent class")
    floors: Numbers = Field(description="by test: the smallest p-value that it can give")
    methods: dict[str, MethodResult] = Field(description="results by method")
    ceiling: Areas | None = Field(
        default=None, description="the best order of each text by any method; null if none searches for it"
    )
    trained_with: Literal["half", "all", "none", "unknown"] = Field(
        default="unknown", description="masking strategy of the training"
    )
    truncated: float = Field(default=0.0, description="share of the texts whose end was not read")
    classes_by_number: bool = Field(
        default=False, description="whether classes of model and task were matched by number, not by name"
    )
    leaders: list[str] = Field(
        default=[], description="methods that cannot be told apart from the best, best first"
    )
    texts_needed: int | None = Field(
        default=None, description="about how many texts would tell the two best methods apart"
    )
    agreement: Number = Field(
        default=math.nan, description="of an adapted model with the original; null for any other"
    )
    device: str = Field(default="cpu", description="device, or devices, that the model was evaluated on")
    precision: str = Field(default="fp32", description="data type that it was evaluated in")

    @property
    def task_title(self) -> str:
        """Task or data that was measured, with the label, a unit that is not the token, and windows.

        Only measurements with equal titles compare.
        """
        unit, label = self.config.unit, self.config.label
        name = f"{self.trained.task_or_data}: {label}" if label else self.trained.task_or_data
        name += "" if unit == "token" else f" ({unit}s)"
        return name + (f" (windows, overlap {self.config.overlap})" if self.config.overlap else "")


class Manifest(Part):
    """Request of a measurement, and the traces that answer it; all numbers follow from the traces."""

    format: Literal[2] = Field(default=2, description="version of the format of measurements")
    kind: Literal["measure"] = Field(default="measure", description="kind of the run")
    digest: str = Field(description="digest of the config, which ends the name of the run's folder")
    config: MeasureConfig = Field(description="checkpoint, texts, methods and settings")
    trained: TrainConfig | RoarConfig | AdaptConfig = Field(
        description="how the checkpoint was trained, as far as known"
    )
    train_digest: str = Field(description="digest of the config that the checkpoint was trained with")
    task_name: str = Field(description="name of the task; for own data, what its owner calls it")
    labels: list[str] = Field(description="names of the model's classes, in index order")
    classes_by_number: bool = Field(
        description="whether classes of model and task were matched by number, not by name"
    )
    metric: str = Field(description="metric of the curves; its code is in the config")
    others: list[str] = Field(description="other metrics of the task")
    texts: int = Field(description="number of measured texts: the first ones of the split")
    subject: str = Field(description="folder of texts and traces")
    traces: dict[str, str] = Field(description="by method: the folder of its trace")
    tests: dict[str, str] = Field(description="by in-distribution test: its name in the files of traces")
    scores: dict[str, str] = Field(description="by method whose scores were computed elsewhere: their origin")
    threshold: float = Field(description="performance above which a training counts as converged")
    trained_with: Literal["half", "all", "none", "unknown"] = Field(
        description="masking strategy of the training"
    )
    floors: Numbers = Field(description="by test: the smallest p-value that it can give")
    agreement: Number = Field(description="of an adapted model with the original; null for any other")
    precision: str = Field(description="data type that the model was evaluated in")
    seconds: dict[str, float] = Field(description="by phase, besides those of the traces")
    finished: str = Field(default="", description="UTC, in ISO 8601")
    environment: Environment | None = Field(default=None, description="machine and package versions")
    checksum: str = Field(default="", description="SHA-256 of the manifest without this field")

    @property
    def title(self) -> str:
        """Task or data that was measured, with the label, a unit that is not the token, and windows.

        Only measurements with equal titles compare.
        """
        config, name = self.config, self.trained.task_or_data
        name += f": {config.label}" if config.label else ""
        name += "" if config.unit == "token" else f" ({config.unit}s)"
        return name + (f" (windows, overlap {config.overlap})" if config.overlap else "")


Record = TrainRecord | RoarRecord | AdaptRecord | MeasureRecord
RECORDS: dict[str, type[TrainRecord] | type[MeasureRecord]] = {
    "train": TrainRecord,
    "roar": RoarRecord,
    "adapt": AdaptRecord,
    "measure": MeasureRecord,
}


def record_schema() -> dict[str, Any]:
    """Return the JSON Schema of a record of any kind."""
    return TypeAdapter(Annotated[Record, Field(discriminator="kind")]).json_schema()


def build_record(values: Mapping[str, Any]) -> Record:
    """Return a record of the kind given in the values."""
    return RECORDS[values["kind"]].model_validate(values)


def read_record(path: Path) -> Record:
    """Read a record.

    Raises:
        ForeignRecord: The record is in a format that this version cannot read.
        InputError: The file is missing or damaged.
    """
    values = read_sealed_json(path)
    if values.get("format") != RECORD_FORMAT or values.get("kind") not in RECORDS:
        given = f"format {values.get('format', 'without a number')}, kind {values.get('kind')}"
        raise ForeignRecord(
            f"{path} is a record of {given}; this version of faithmeter reads format {RECORD_FORMAT}: run it "
            "again into another store, or read it with the version that wrote it"
        )
    try:
        return build_record(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ForeignRecord(
            f"{path} is not a record as this version of faithmeter writes it ({place}: {first['msg']}); run "
            "it again into another store, or read it with the version that wrote it"
        ) from error


def read_manifest(path: Path) -> Manifest:
    """Read a manifest.

    Raises:
        ForeignRecord: The manifest is in a format that this version cannot read.
        InputError: The file is missing or damaged.
    """
    values = read_sealed_json(path)
    try:
        return Manifest.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ForeignRecord(
            f"{path} is not a manifest as this version of faithmeter writes it ({place}: {first['msg']}); "
            "measure again into another store, or read it with the version that wrote it"
        ) from error


def checkpoint_of(record: Record) -> str:
    """Return the fingerprint of the model that a run trained or measured."""
    return record.config.checkpoint if isinstance(record, MeasureRecord) else record.fingerprint


def read_measurement(folder: Path, record: MeasureRecord) -> Measurement:
    """Return a measurement, rebuilt from its record and the per-text results beside it."""
    import pandas as pd

    from ..measuring.measurement import Measurement

    frame = read_parquet(folder / TEXTS)
    if frame is None:
        raise InputError(f"{folder / TEXTS} is missing; delete that folder and measure again")
    for column in ("masked", "scores"):
        values = [None if value is None else value.tolist() for value in frame[column]]
        frame[column] = pd.Series(values, dtype=object)
    methods = record.methods
    return Measurement(
        frame,
        len(record.labels),
        record.metric,
        tuple(next(iter(methods.values())).others),
        {name: method.evaluations for name, method in methods.items()},
        {name: method.seconds for name, method in methods.items()},
        record.floors,
        trained_with=record.trained_with,
        threshold=record.threshold,
        truncated=record.truncated,
        classes_by_number=record.classes_by_number,
        device=record.device,
        precision=record.precision,
        agreement=record.agreement,
        scores={name: method.scores for name, method in methods.items() if method.scores},
        unit=record.config.unit,
        plausibility={name: method.plausibility for name, method in methods.items() if method.plausibility},
        evaluations_alone={
            name: method.evaluations_alone for name, method in methods.items() if method.evaluations_alone
        },
    )

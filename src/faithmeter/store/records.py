"""Records of finished runs: their types, and the JSON files that store them.

An undefined number is NaN in Python and null in the file.
"""

from __future__ import annotations

import math
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
from ..files import plain, read_sealed_json
from ..stats.behavior import Recalibration

if TYPE_CHECKING:
    from ..verdict.adapted import AdaptEvidence
    from ..verdict.sentences import Answer

RECORD = "record.json"
"""File name of the record in the folder of a run."""
MANIFEST = "manifest.json"
"""File name of the manifest in the folder of a measurement."""
TESTS = "masf-"
"""Prefix of the names of files with fitted in-distribution tests, beside a checkpoint."""
CHOICES = "auto-"
"""Prefix of the names of files with the method that `auto` chose, beside a checkpoint."""
RECORD_FORMAT: Final = 1
"""Version of the record format; it changes when a field is renamed, removed or redefined."""
MANIFEST_FORMAT: Final = 2
"""Version of the format of manifests; measurements of 0.2 had records of format 1."""


def _null_to_nan(value: object) -> object:
    return math.nan if value is None else value


def _one_nan(value: float) -> float:
    """Return `math.nan` for any NaN, as containers compare elements by identity first."""
    # so that equal records compare as equal
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

    # an unknown key is a record of a newer version, whose numbers must not be half understood
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
        from ..verdict.adapted import AdaptEvidence

        return AdaptEvidence(
            agreement=self.agreement,
            required=self.config.agreement,
            texts=self.rows["test"],
            floors=self.floors,
            method=self.config.compare,
            rank_agreement=(self.rank_agreement, self.rank_lower, self.rank_upper),
            constant=self.constant,
            kappa=self.kappa,
            behavior=None if self.behavior is None else Behavior.from_dict(self.behavior),
        )

    @property
    def answers(self) -> tuple[Answer, ...]:
        """Verdict, as answers to three questions."""
        from ..verdict.adapted import judge_adaptation

        return judge_adaptation(self.evidence)


class Manifest(Part):
    """Request of a measurement, and the traces that answer it; all numbers follow from the traces."""

    format: Literal[2] = Field(default=MANIFEST_FORMAT, description="version of the format of measurements")
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
    recalibration: Recalibration | None = Field(
        default=None, description="what masked validation texts tell about predictions; null if not fitted"
    )
    seconds: dict[str, float] = Field(description="by phase, besides those of the traces")
    finished: str = Field(default="", description="UTC, in ISO 8601")
    environment: Environment = Field(description="machine and package versions")
    checksum: str = Field(default="", description="SHA-256 of the manifest without this field")

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON-ready values; NaN becomes null."""
        return self.model_dump(mode="json")

    @property
    def files(self) -> dict[str, str]:
        """Checksums of files beside the manifest: traces are elsewhere, and verify themselves."""
        return {}

    @property
    def title(self) -> str:
        """Task or data that was measured, with the label, a unit that is not the token, and windows.

        Only measurements with equal titles compare.
        """
        config, name = self.config, self.trained.task_or_data
        name += f": {config.label}" if config.label else ""
        name += "" if config.unit == "token" else f" ({config.unit}s)"
        return name + (f" (windows, overlap {config.overlap})" if config.overlap else "")


Record = TrainRecord | RoarRecord | AdaptRecord | Manifest
RECORDS: dict[str, type[TrainRecord] | type[Manifest]] = {
    "train": TrainRecord,
    "roar": RoarRecord,
    "adapt": AdaptRecord,
    "measure": Manifest,
}


def record_schema() -> dict[str, Any]:
    """Return the JSON Schema of a record of any kind."""
    return TypeAdapter(Annotated[Record, Field(discriminator="kind")]).json_schema()


def read_record(path: Path) -> Record:
    """Read a record, or the manifest of a measurement.

    Raises:
        ForeignRecord: The file is in a format that this version cannot read.
        InputError: The file is missing or damaged.
    """
    values = read_sealed_json(path)
    # named for what it is, as the remedy differs from that of a newer format
    if values.get("kind") == "measure" and values.get("format") == RECORD_FORMAT:
        raise ForeignRecord(
            f"{path} is a measurement of faithmeter 0.2, without traces: measure again, or read it with 0.2"
        )
    known = RECORDS.get(str(values.get("kind")))
    # trainings kept their format when measurements became traces
    expected = MANIFEST_FORMAT if known is Manifest else RECORD_FORMAT
    if known is None or values.get("format") != expected:
        given = f"format {values.get('format', 'without a number')}, kind {values.get('kind')}"
        raise ForeignRecord(
            f"{path} is a record of {given}; this version of faithmeter reads format {expected}: run it "
            "again into another store, or read it with the version that wrote it"
        )
    try:
        return known.model_validate(values)
    except ValidationError as error:
        # one line: the checksum was right, so it is a matter of versions and not of damage
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ForeignRecord(
            f"{path} is not a record as this version of faithmeter writes it ({place}: {first['msg']}); run "
            "it again into another store, or read it with the version that wrote it"
        ) from error

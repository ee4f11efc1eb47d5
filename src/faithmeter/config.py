"""Configs of runs: frozen values that define command line, TOML, digest, record and JSON Schema alike."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from .errors import input_error

EMBEDDED = "embedded"
"""Name of the tiny model that ships with the package."""
BASELINE = "random"
"""Method that every other method is compared with."""
SIGNIFICANCE_LEVEL = 0.05
"""Significance level used by every test."""
NOT_IDENTITY = "not identity"
"""Marks a field that says where or how something is computed, not what: the digest leaves it out."""


def _require_unicode(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("valid Unicode text (it contains a lone surrogate)") from None
    return text


Text = Annotated[str, AfterValidator(_require_unicode)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Count = Annotated[int, Field(ge=0, lt=2**31)]
Percent = Annotated[int, Field(ge=1, le=100)]
Strategy = Literal["half", "all", "none"]
TrainedWith = Literal["half", "all", "none", "unknown"]
"""Masking strategy of a model's training, as far as it is known."""
Validation = Literal["both", "masked", "unmasked"]
Scope = Literal["explained", "all"]
Rates = Literal["uniform", "ends"]
Precision = Literal["auto", "fp32", "bf16", "fp16"]
MetricName = Literal["accuracy", "macro_f1", "micro_f1", "matthews"]


class Validated(BaseModel):
    """Frozen value whose mistakes are InputErrors; `model_json_schema()` gives its JSON Schema."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
    kind: ClassVar[str]

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise input_error(error, f"{self.kind} option", type(self).model_fields) from None

    def replace(self, **changes: object) -> Self:
        """Return a validated copy with some fields changed."""
        return type(self)(**{**dict(self), **changes})


class Config(Validated):
    """Config of a run; its digest is the run's identity."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        return self.model_dump(mode="json")

    def changes(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults."""
        return self.model_dump(mode="json", exclude_defaults=True)

    @classmethod
    def identity(cls) -> list[str]:
        """Return the names of the fields that say what is computed."""
        return [name for name, field in cls.model_fields.items() if NOT_IDENTITY not in field.metadata]

    @property
    def title(self) -> str:
        """Human-readable part of the run's folder name."""
        return self.kind

    @property
    def digest(self) -> str:
        """Hash of the fields that differ from their defaults, so that a new field keeps old digests valid.

        For the same reason a default never changes.
        """
        names = self.identity()
        values = {name: value for name, value in self.changes().items() if name in names}
        text = json.dumps({"kind": self.kind, **values}, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class TrainConfig(Config):
    """Config of a fine-tuning of one model on one task with one seed.

    Args:
        **values: Any of the fields; each is described where it is defined, and in `faithmeter train --help`.

    Raises:
        InputError: A field is unknown, or its value is of the wrong type or out of range.

    Example:
        >>> fm.TrainConfig(task="RTE", seed=1).changes()
        {'task': 'RTE', 'seed': 1}
    """

    kind: ClassVar[str] = "train"

    task: Text = Field(
        default="bAbI-1",
        description="name of a task (`faithmeter list tasks` shows them), or a task file ending in .toml",
    )
    model: Text = Field(
        default=EMBEDDED,
        description=f"a folder with a saved encoder, a hub name such as roberta-base, or '{EMBEDDED}'",
    )
    seed: Seed = Field(default=0, description="seed of all randomness in the run")
    strategy: Strategy = Field(
        default="half", description="which rows of a mini-batch are masked: every other one, all, or none"
    )
    validation: Validation = Field(
        default="both",
        description="which validation texts choose the best epoch: unmasked and masked, or only one of them",
    )
    scope: Scope = Field(
        default="explained",
        description="which columns are masked: the explained one, or all (as the authors' code does)",
    )
    rates: Rates = Field(
        default="uniform",
        description="distribution of masking rates; `ends` masks a tenth of the masked rows wholly",
    )
    epochs: Count = Field(default=0, description="epochs to train; 0 takes the task's own number")
    batch_size: int = Field(default=16, ge=1, lt=2**31, description="rows in a mini-batch, over all devices")
    learning_rate: float = Field(default=2e-5, ge=0, le=1, description="the highest learning rate")
    weight_decay: float = Field(
        default=0.01, ge=0, le=1, description="not applied to biases and normalization layers"
    )
    warmup: float = Field(
        default=0.06,
        ge=0,
        lt=1,
        description="fraction of the optimizer steps in which the rate rises; it then falls to 0",
    )
    released_schedule: bool = Field(
        default=False,
        description="count the schedule in examples, as the authors' code does: the rate only rises",
    )
    precision: Precision = Field(default="auto", description="auto takes fp32 on CPU, bf16 or fp16 on GPU")
    limit: Count = Field(default=0, description="use only the first rows of each split; 0 uses all")
    data: Text = Field(
        default="",
        description="your own data instead of a task: csv, tsv, jsonl, parquet, or a saved `datasets` folder",
    )
    text: Text = Field(default="", description="column of --data with the text to classify and explain")
    label: Text = Field(default="", description="column of --data with the label")
    pair: Text = Field(default="", description="column of --data with a second text, the context")
    valid: Text = Field(
        default="", description="file with the validation rows; default: split off from --data"
    )
    test: Text = Field(default="", description="file with the test rows; default: split off from --data")
    data_dir: Annotated[Text, NOT_IDENTITY] = Field(
        default="", description="folder with the official files of the task"
    )
    report_to: Annotated[Text, NOT_IDENTITY] = Field(
        default="none", description="tensorboard, wandb, mlflow, … (any integration of transformers)"
    )

    @property
    def task_or_data(self) -> str:
        """Name of the task, or the path of your own data."""
        return self.data or self.task

    @property
    def title(self) -> str:
        return f"{self.task_or_data}-{self.strategy}-{self.seed}"


class RoarConfig(TrainConfig):
    """Config of one step of Recursive ROAR: fine-tuning on texts that the previous step's model erased."""

    kind: ClassVar[str] = "roar"

    method: Text = Field(default="grad-l2", description="the method that erases; `random` is the baseline")
    code: Text = Field(default="", description="digest of the method's source where it is not built in")
    percent: Percent = Field(default=10, description="percent of each text that is erased")
    step: Percent = Field(default=10, description="percents erased at a time")

    @property
    def title(self) -> str:
        return f"{self.task_or_data}-{self.method}-{self.percent}-{self.seed}"

    @property
    def before(self) -> TrainConfig:
        """Config of the run whose model erases the texts: the previous step, or a training on whole texts."""
        percent = (self.percent - 1) // self.step * self.step
        if percent:
            return self.replace(percent=percent)
        return TrainConfig(**{name: getattr(self, name) for name in TrainConfig.model_fields})


class MeasureConfig(Config):
    """Config of a measurement of methods on the test split of one checkpoint's task."""

    kind: ClassVar[str] = "measure"

    checkpoint: Text = Field(default="", description="fingerprint of the model's weights")
    data: Text = Field(default="", description="digest of the validation and test splits")
    task: Text = Field(
        default="", description="name of a task or a task file; default: what the checkpoint was trained on"
    )
    methods: tuple[Text, ...] = Field(
        default=(), strict=False, description="names of methods with their options; default: all ten"
    )
    seed: Seed = Field(default=0, description="seed of the random orders")
    limit: Count = Field(
        default=0, description="measure only the first texts of the test split; 0 measures all"
    )
    step: Percent = Field(default=10, description="percents erased at a time")
    strategy: Literal["", TrainedWith] = Field(
        default="",
        description="masking strategy of the training, which the check imitates; default: as recorded",
    )
    scope: Literal["", Scope] = Field(
        default="", description="which of their columns; default: as in training"
    )
    rates: Literal["", Rates] = Field(
        default="", description="how their masking rates are drawn; default: as in training"
    )
    code: tuple[Text, ...] = Field(
        default=(), strict=False, description="name:digest of each method that is not built in"
    )

    @property
    def title(self) -> str:
        return self.task

    @property
    def percents(self) -> tuple[int, ...]:
        return (*range(0, 100, self.step), 100)

    @property
    def chunks(self) -> str:
        """Digest that finished chunks share, for any number of texts."""
        return self.replace(limit=0).digest

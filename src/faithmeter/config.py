"""Configs of runs: one definition for command-line options, TOML keys, digests and JSON Schema."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from .errors import input_error

EMBEDDED = "embedded"
"""Name of the tiny model that ships with the package."""
BASELINE = "random"
"""Name of the baseline method, with which all others are compared."""
ADAPTATION = "adaptation"
"""Name of the training in the progress and the costs of an audit."""
AGREEMENT = "agreement"
"""Name that accuracy has where the labels are predictions of another model and not the truth."""
OWN_AGREEMENT = "own_agreement"
"""Name that accuracy has where the labels are the measured model's own predictions for whole texts."""
SIGNIFICANCE_LEVEL = 0.05
"""Significance level used by every test."""
NOT_IDENTITY = "not identity"
"""Marker of fields that do not affect the result of a run; the digest leaves them out."""
FILLED = "filled in"
"""Marker of fields that are no option, as they are filled in from others."""


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
"""Masking strategy that a model was trained with."""
Validation = Literal["both", "masked", "unmasked"]
Scope = Literal["explained", "all"]
Rates = Literal["uniform", "ends"]
Precision = Literal["auto", "fp32", "bf16", "fp16"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
Sweep = Literal["sample", "all", "every-epoch"]
UnitName = Literal["token", "word", "sentence"]
"""What is scored and erased as one piece."""
Explained = Literal["label", "predicted"]
"""Class whose explanation is measured: the true label, or the model's own decision."""
Kind = Literal["single-label", "multi-label", "regression"]
"""Whether a text has one of the labels, any number of them, or a number."""
CLASSES = "names that the model has for classes of the data: fresh=positive,rotten=negative"
SIDES = ("lower value", "higher value")
"""The two classes for which a predicted number is explained: what lowers it, and what raises it."""


def select_fields(source: object, names: Iterable[str]) -> dict[str, Any]:
    """Return the named fields of an object with their values."""
    return {name: getattr(source, name) for name in names}


def _resolve_precision(precision: Precision) -> Precision:
    """Replace `auto` with `fp32`, because low precision is used only on request."""
    return "fp32" if precision == "auto" else precision


def _rename_sweep(value: object) -> object:
    """Return `all` for its name in records of version 0.2."""
    return "all" if value == "best-epoch" else value


class Validated(BaseModel):
    """Base class of immutable, validated values; an invalid field raises an InputError."""

    # strict: "1" for a number or 1 for a flag in a TOML file is a mistake, not a hint
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
    kind: ClassVar[str]

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise input_error(error, f"{self.kind} option", type(self).model_fields) from None

    def replace(self, **changes: object) -> Self:
        """Return a validated copy with the given fields changed."""
        return type(self)(**{**dict(self), **changes})


class Config(Validated):
    """Base class of run configs; the digest of a config identifies its run."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        return self.model_dump(mode="json")

    def changes(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults, as JSON-ready values."""
        return self.model_dump(mode="json", exclude_defaults=True)

    @classmethod
    def identity(cls) -> list[str]:
        """Return the names of the fields that the digest covers."""
        return [name for name, field in cls.model_fields.items() if NOT_IDENTITY not in field.metadata]

    @property
    def title(self) -> str:
        """Human-readable part of the run's folder name."""
        return self.kind

    @property
    def digest(self) -> str:
        """Hash of the fields that define the run, 16 hexadecimal digits.

        Default values are left out, so that adding a field keeps old digests valid. For the same reason,
        the default of a field must never change.
        """
        names = self.identity()
        # paths, logs and sweeps change no weight, so they stay out
        values = {name: value for name, value in self.changes().items() if name in names}
        # sorted, so that the digest does not depend on the order of the fields
        text = json.dumps({"kind": self.kind, **values}, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class TrainConfig(Config):
    """Config for fine-tuning one model on one task with one seed.

    Args:
        **values: Values of fields, which `faithmeter train --help` describes; every field has a default.

    Raises:
        InputError: A field is unknown, or its value has the wrong type or is out of range.

    Example:
        >>> fm.TrainConfig(task="RTE", seed=1).changes()
        {'task': 'RTE', 'seed': 1}
    """

    kind: ClassVar[str] = "train"

    task: Text = Field(
        default="bAbI-1",
        description="name of a task (`faithmeter list tasks` shows those of the paper), or a task file "
        "ending in .toml",
    )
    model: Text = Field(
        default=EMBEDDED,
        description=f"a folder with a saved encoder, a hub name such as roberta-base, or '{EMBEDDED}'",
    )
    seed: Seed = Field(default=0, description="seed of all randomness in the run")
    strategy: Strategy = Field(
        default="half", description="rows of a mini-batch to mask: every other one (half), all or none"
    )
    validation: Validation = Field(
        default="both",
        description="validation texts that select the best epoch: masked, unmasked, or both",
    )
    scope: Scope = Field(
        default="explained",
        description="columns to mask: the explained one, or all (as in the authors' code)",
    )
    rates: Rates = Field(
        default="uniform",
        description="distribution of masking rates; `ends` masks a tenth of the masked rows completely",
    )
    epochs: Count = Field(default=0, description="number of epochs; 0 uses the task's default")
    batch_size: int = Field(default=16, ge=1, lt=2**31, description="rows in a mini-batch, over all devices")
    learning_rate: float = Field(default=2e-5, ge=0, le=1, description="peak learning rate")
    weight_decay: float = Field(
        default=0.01,
        ge=0,
        le=1,
        description="weight decay, except of biases and normalization layers; Liu et al. (2019) have 0.1",
    )
    adam_beta2: float = Field(
        default=0.999, ge=0, lt=1, description="decay of Adam's second moment; Liu et al. (2019) have 0.98"
    )
    adam_epsilon: float = Field(
        default=1e-8, gt=0, le=1, description="constant in Adam's denominator; Liu et al. (2019) have 1e-6"
    )
    warmup: float = Field(
        default=0.06,
        ge=0,
        lt=1,
        description="fraction of the optimizer steps in which the learning rate rises; then it falls to 0",
    )
    add_mask_token: bool = Field(
        default=False,
        description="add a mask token to a model that has none, such as GPT-2 or Llama, and train it",
    )
    released_schedule: bool = Field(
        default=False,
        description="count schedule steps in examples, as in the authors' code, so that the rate only rises",
    )
    precision: Precision = Field(default="auto", description="auto is fp32 on a CPU, bf16 or fp16 on a GPU")
    limit: Count = Field(default=0, description="number of rows to use from each split; 0 uses all")
    validation_limit: Count = Field(
        default=0, description="number of validation rows that choose the best epoch; 0: as --limit says"
    )
    data: Text = Field(
        default="",
        description="your own data instead of a task: csv, tsv, jsonl, parquet, or a saved `datasets` folder",
    )
    text: Text = Field(default="", description="column of --data with the text to classify and explain")
    label: Text = Field(
        default="",
        description="column of --data with the label; for multi-label also several columns of 0 and 1, with "
        "commas between them",
    )
    label_kind: Kind = Field(
        default="single-label",
        description="labels of --data: one class, several at once, or a number",
    )
    metric: Text = Field(
        default="",
        description="metric that selects the best epoch; default: that of the task; with --data accuracy, "
        "micro_f1 of several labels, pearson of numbers",
    )
    pair: Text = Field(default="", description="column of --data with a second text, the context")
    rationale: Annotated[Text, NOT_IDENTITY] = Field(
        default="", description="column of the test rows with human rationales, which only `measure` reads"
    )
    valid: Text = Field(
        default="", description="file with the validation rows; default: split off from --data"
    )
    test: Text = Field(default="", description="file with the test rows; default: split off from --data")
    data_dir: Annotated[Text, NOT_IDENTITY] = Field(
        default="", description="folder with the official files of the task"
    )
    sweep: Annotated[Sweep, BeforeValidator(_rename_sweep), NOT_IDENTITY] = Field(
        default="sample",
        description="texts to evaluate at all masking rates: at the best epoch a sample of 400 of each split "
        "or all, or all after every epoch; neither weights nor performance on whole texts depend on it",
    )
    report_to: Annotated[Text, NOT_IDENTITY] = Field(
        default="none", description="where to log: tensorboard, wandb, or another integration of transformers"
    )

    @property
    def task_or_data(self) -> str:
        """Path of the user's own data if given, otherwise the name of the task."""
        return self.data or self.task

    @property
    def title(self) -> str:
        return f"{self.task_or_data}-{self.strategy}-{self.seed}"


class RoarConfig(TrainConfig):
    """Config of one Recursive ROAR step: fine-tuning on texts that the previous model has partly erased."""

    kind: ClassVar[str] = "roar"

    method: Text = Field(default="grad-l2", description="method that ranks the tokens to erase")
    code: Text = Field(default="", description="digest of the method's source; empty if built in")
    percent: Percent = Field(default=10, description="percentage of each text's tokens to erase")
    step: Percent = Field(default=10, description="percentage points erased at each step")

    @property
    def title(self) -> str:
        return f"{self.task_or_data}-{self.method}-{self.percent}-{self.seed}"

    @property
    def before(self) -> TrainConfig:
        """Config of the run whose model ranks the tokens: the previous step or, at first, plain training."""
        # the last step may be smaller than the others: 100 follows 90, and 96 if steps are of 32
        percent = (self.percent - 1) // self.step * self.step
        if percent:
            return self.replace(percent=percent)
        return TrainConfig(**select_fields(self, TrainConfig.model_fields))


class AdaptConfig(TrainConfig):
    """Config of an adaptation: masked fine-tuning of a classifier towards its own predictions.

    Args:
        **values: Values of fields, which `faithmeter adapt --help` describes; `model` is the classifier to
            adapt.

    Raises:
        InputError: A field is unknown, or its value is of the wrong type or out of range.

    Example:
        >>> fm.AdaptConfig(model="checkpoint", data="stories.csv", text="story").agreement
        0.98
    """

    kind: ClassVar[str] = "adapt"

    task: Text = Field(
        default="",
        description="task whose texts are used, without their labels; default: that of the checkpoint",
    )
    strategy: Literal["half", "all"] = Field(
        default="half", description="which rows of a mini-batch are masked: every other one, or all"
    )
    label: Text = Field(default="", description="column of --data with true labels, for comparison only")
    epochs: Count = Field(default=5, description="epochs to train at most")
    agreement: float = Field(
        default=0.98,
        ge=0,
        le=1,
        description="share of held-out texts on which both models must agree before training stops early",
    )
    masked_targets: Literal["class", "probabilities"] = Field(
        default="class",
        description="what masked rows learn of the original's prediction: its class, or its probabilities, "
        "as whole rows do",
    )
    classes: Text = Field(default="", description=CLASSES)
    compare: Text = Field(default="loo-sign", description="method that compares how the two models explain")
    compare_code: Annotated[Text, FILLED] = Field(
        default="", description="digest of the source of that method; empty if built in"
    )

    @property
    def task_or_data(self) -> str:
        """Name of the adaptation's texts, which are labeled with the original model's predictions."""
        # the labels are another task than those of the data, and must not be averaged with it
        return f"{Path(self.data).name or self.task} as labeled by the original"

    @property
    def title(self) -> str:
        return f"{Path(self.data).name or self.task}-{self.strategy}-{self.seed}"


class MeasureConfig(Config):
    """Config for measuring the faithfulness of methods for one checkpoint, on the test split of its task."""

    kind: ClassVar[str] = "measure"

    checkpoint: Text = Field(default="", description="fingerprint of the model's weights")
    data: Text = Field(default="", description="digest of the validation and test splits")
    task: Text = Field(
        default="", description="name of a task, or a task file; default: the task of the training"
    )
    methods: tuple[Text, ...] = Field(
        default=(), strict=False, description="methods with their options; default: the paper's and your own"
    )
    seed: Seed = Field(default=0, description="seed of the random orders")
    limit: Count = Field(default=0, description="number of test texts to measure; 0 measures all")
    label: Text = Field(
        default="", description="label to measure, for a model that gives several labels at once"
    )
    classes: Text = Field(default="", description=CLASSES)
    step: Percent = Field(default=10, description="percentage points erased at each step")
    unit: UnitName = Field(default="token", description="what is scored and erased as one piece")
    overlap: Count = Field(
        default=0,
        description="number of tokens that neighboring windows share if a text is longer than the model can "
        "read; 0 truncates such texts",
    )
    explain: Explained = Field(
        default="label",
        description="class whose explanation is measured: the true label, or the one that is predicted",
    )
    complement: bool = Field(
        default=False,
        description="also evaluate texts with only the erased part left, for sufficiency",
    )
    strategy: Literal["", TrainedWith] = Field(
        default="",
        description="masking strategy that the in-distribution check assumes; default: as in training",
    )
    scope: Literal["", Scope] = Field(
        default="", description="masked columns that the check assumes; default: as in training"
    )
    rates: Literal["", Rates] = Field(
        default="", description="masking rates that the check assumes; default: as in training"
    )
    metric: Text = Field(
        default="",
        description="metric of curves and areas; default: that of the task, or macro_f1 of a label",
    )
    metric_code: Text = Field(default="", description="digest of the metric's source; empty if built in")
    code: tuple[Text, ...] = Field(
        default=(), strict=False, description="name:digest of each method that is not built in"
    )
    precision: Annotated[Precision, AfterValidator(_resolve_precision)] = Field(
        default="fp32", description="data type that the model is evaluated in"
    )
    ranks_alike: Annotated[float, NOT_IDENTITY] = Field(
        default=0.0,
        ge=-1,
        le=1,
        description="lowest rank correlation of a method's scores with those in fp32, for which `auto` chose "
        "that data type; 0: not chosen so",
    )

    @property
    def title(self) -> str:
        return self.task

    @property
    def percents(self) -> tuple[int, ...]:
        # 100 is always a step: the curve ends where nothing is left
        return (*range(0, 100, self.step), 100)

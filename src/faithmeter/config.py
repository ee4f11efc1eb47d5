"""What a run is asked to do: frozen values, one definition for command line, TOML, digest and record."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, Field, asdict, dataclass, field, fields, replace
from typing import Any, ClassVar, Self, dataclass_transform

from .errors import InputError, unknown


def opt(
    default: Any,
    text: str,
    *,
    choices: tuple[str, ...] = (),
    least: float | None = None,
    below: float | None = None,
    identity: bool = True,
) -> Any:
    """A field with its help text, its limits, and whether it says *what* is computed or only how."""
    metadata = {"help": text, "choices": choices, "least": least, "below": below, "identity": identity}
    return field(default=default, metadata=metadata)


EMBEDDED = "embedded"
"""The name of the tiny model that ships with the package."""
BASELINE = "random"
"""The method that every other is compared with."""
SIGNIFICANCE_LEVEL = 0.05
"""Significance level used by every test."""
KINDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


@dataclass_transform(frozen_default=True)
class Config:
    """Checks its fields when it is made; its digest is the identity of the run."""

    kind: ClassVar[str]

    def __post_init__(self) -> None:
        for option in self.options():
            value, limits = getattr(self, option.name), option.metadata
            kind = type(option.default)
            if type(value) is not kind and not (kind is float and type(value) is int):
                raise InputError(f"{option.name} is {value!r}; expected {KINDS[kind]}")
            if limits["choices"] and value not in limits["choices"]:
                raise unknown(option.name, str(value), limits["choices"])
            if limits["least"] is not None and not value >= limits["least"]:
                raise InputError(f"{option.name} is {value}; expected at least {limits['least']}")
            if limits["below"] is not None and not value < limits["below"]:
                raise InputError(f"{option.name} is {value}; expected less than {limits['below']}")

    @classmethod
    def options(cls) -> tuple[Field[Any], ...]:
        return fields(cls)  # type: ignore[arg-type]

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        names = [option.name for option in cls.options()]
        for name in values:
            if name not in names:
                raise unknown(f"{cls.kind} option", name, names)
        return cls(**values)

    @property
    def title(self) -> str:
        """A word for people to know the run by."""
        return self.kind

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    @property
    def digest(self) -> str:
        """Of the fields that differ from their defaults, so that a new field leaves old digests valid.

        For the same reason a default never changes.
        """
        said = {o.name: getattr(self, o.name) for o in self.options() if o.metadata["identity"]}
        said = {name: value for name, value in said.items() if value != self._default(name)}
        text = json.dumps({"kind": self.kind, **said}, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @classmethod
    def _default(cls, name: str) -> Any:
        default = next(o.default for o in cls.options() if o.name == name)
        return None if default is MISSING else default


@dataclass(frozen=True)
class TrainConfig(Config):
    """Fine-tuning of one model on one task with one seed."""

    kind: ClassVar[str] = "train"

    task: str = opt(
        "bAbI-1", "name of a task (`faithmeter list tasks` shows them), or a task file ending in .toml"
    )
    model: str = opt(
        EMBEDDED, f"a folder with a saved encoder, a hub name such as roberta-base, or '{EMBEDDED}'"
    )
    seed: int = opt(0, "all randomness of the run comes from it", least=0)
    strategy: str = opt(
        "half",
        "which rows of a mini-batch are masked in training: every other one, all, or none",
        choices=("half", "all", "none"),
    )
    validation: str = opt(
        "both",
        "what chooses the best epoch: the validation split plain and masked, masked only, or unmasked only",
        choices=("both", "masked", "unmasked"),
    )
    scope: str = opt(
        "explained",
        "which columns are masked: the explained one, or all (as the authors' code does)",
        choices=("explained", "all"),
    )
    rates: str = opt(
        "uniform",
        "distribution of masking rates: uniform, or ends, which masks a tenth of the masked rows wholly",
        choices=("uniform", "ends"),
    )
    epochs: int = opt(0, "epochs to train; 0 takes the task's own number", least=0)
    batch_size: int = opt(16, "rows in a mini-batch, over all devices", least=1)
    learning_rate: float = opt(2e-5, "the highest learning rate", least=0)
    weight_decay: float = opt(0.01, "not applied to biases and normalization layers", least=0)
    warmup: float = opt(
        0.06, "share of the optimizer steps in which the rate rises; it then falls to 0", least=0, below=1
    )
    released_schedule: bool = opt(
        False, "count the schedule in examples, as the authors' code does: the rate only rises"
    )
    precision: str = opt(
        "auto",
        "auto takes fp32 on CPU, bf16 or fp16 on GPU",
        choices=("auto", "fp32", "bf16", "fp16"),
    )
    limit: int = opt(0, "use only the first rows of each split; 0 uses all", least=0)
    data: str = opt(
        "", "your own data instead of a task: csv, tsv, jsonl, parquet, or a saved `datasets` folder"
    )
    text: str = opt("", "column of --data with the text to classify and explain")
    label: str = opt("", "column of --data with the label")
    pair: str = opt("", "column of --data with a second text, the context")
    valid: str = opt("", "file with the validation rows of --data; without it they are split off")
    test: str = opt("", "file with the test rows of --data; without it they are split off")
    data_dir: str = opt("", "folder with the official files of the task", identity=False)
    report_to: str = opt("none", "tensorboard, wandb, mlflow, … (what transformers knows)", identity=False)

    @property
    def title(self) -> str:
        return f"{self.data or self.task}-{self.strategy}-{self.seed}"


@dataclass(frozen=True)
class RoarConfig(TrainConfig):
    """One step of Recursive ROAR: fine-tuning on texts as the model of the step before explains them."""

    kind: ClassVar[str] = "roar"

    method: str = opt("grad-l2", "the method that erases; `random` is the baseline")
    code: str = opt("", "digest of the method where it is not built in: it may change under its name")
    percent: int = opt(10, "percent of each text that is erased", least=1, below=101)
    step: int = opt(10, "percents erased at a time", least=1, below=101)

    @property
    def title(self) -> str:
        return f"{self.data or self.task}-{self.method}-{self.percent}-{self.seed}"

    @property
    def before(self) -> TrainConfig:
        """The run whose model explains the texts of this one: a step before, or that which erased nothing."""
        percent = (self.percent - 1) // self.step * self.step
        if percent:
            return replace(self, percent=percent)
        own = {option.name: getattr(self, option.name) for option in TrainConfig.options()}
        return TrainConfig(**own)


@dataclass(frozen=True)
class MeasureConfig(Config):
    """A measurement of methods on the test split of one checkpoint's task."""

    kind: ClassVar[str] = "measure"

    checkpoint: str = opt("", "fingerprint of the model's weights")
    data: str = opt("", "digest of the validation and test splits")
    task: str = opt("", "name of a task or a task file; default: what the checkpoint was trained on")
    methods: str = opt("", "names of methods with their options, separated by blanks; default: all ten")
    seed: int = opt(0, "random orders are drawn from it", least=0)
    limit: int = opt(0, "measure only the first texts of the test split; 0 measures all", least=0)
    step: int = opt(10, "percents erased at a time", least=1, below=101)
    strategy: str = opt("", "how the texts that the check is fitted on are masked; default: as in training")
    scope: str = opt("", "which of their columns; default: as in training")
    rates: str = opt("", "how their masking rates are drawn; default: as in training")
    code: str = opt("", "digests of methods that are not built in, which may change under their name")

    @property
    def title(self) -> str:
        return self.task

    @property
    def percents(self) -> tuple[int, ...]:
        return (*range(0, 100, self.step), 100)

    @property
    def chunks(self) -> str:
        """Names what finished chunks have in common, for any number of texts."""
        return replace(self, limit=0).digest

"""Configs: checked when made, known by a digest that later fields leave alone."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import ClassVar

import pytest

from faithmeter.config import Config, TrainConfig, opt
from faithmeter.errors import InputError


@dataclass(frozen=True)
class Old(Config):
    kind: ClassVar[str] = "test"
    task: str = opt("RTE", "the task")
    folder: str = opt("", "where", identity=False)


@dataclass(frozen=True)
class New(Old):
    width: int = opt(10, "a field that came later", least=1)


def test_a_new_field_leaves_old_digests_valid() -> None:
    assert Old(task="CB").digest == New(task="CB").digest
    assert New(task="CB", width=20).digest != New(task="CB").digest


def test_where_something_lies_is_not_what_it_is() -> None:
    assert Old(folder="/a").digest == Old(folder="/b").digest


def test_every_other_field_changes_the_digest() -> None:
    base = TrainConfig()
    digests = {base.digest}
    for option in fields(TrainConfig):
        if option.metadata["identity"]:
            choices = [c for c in option.metadata["choices"] if c != option.default]
            other = (
                choices[0] if choices else {str: "x", int: 7, float: 0.5, bool: True}[type(option.default)]
            )
            digests.add(replace(base, **{option.name: other}).digest)
    assert len(digests) == 1 + sum(option.metadata["identity"] for option in fields(TrainConfig))


def test_the_digest_of_the_defaults_never_changes() -> None:
    """If this fails, a default was changed: every store out there would lose its runs."""
    assert TrainConfig().digest == "4a1c9493cfa7c271"
    assert TrainConfig(task="RTE", seed=3, learning_rate=1e-4).digest == "70d78ef7bb3b1e9a"


def test_a_config_survives_a_round_trip() -> None:
    config = TrainConfig(task="CB", strategy="all", learning_rate=1e-5, released_schedule=True)
    assert TrainConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"strategy": "halff"}, "unknown strategy 'halff'; did you mean 'half'"),
        ({"batch_size": 0}, "batch_size is 0; expected at least 1"),
        ({"warmup": 1.0}, "warmup is 1.0; expected less than 1"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"batchsize": 3}, "unknown train option 'batchsize'; did you mean 'batch_size'"),
    ],
)
def test_wrong_values_are_refused_with_what_is_expected(values: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TrainConfig.from_dict(values)

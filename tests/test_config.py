"""Configs: checked when made, known by a digest that later fields leave alone."""

from __future__ import annotations

import json
from typing import Annotated, ClassVar, get_args

import pytest
from pydantic import Field

from faithmeter.config import NOT_IDENTITY, Config, MeasureConfig, RoarConfig, TrainConfig
from faithmeter.errors import InputError


class Old(Config):
    kind: ClassVar[str] = "test"
    task: str = "RTE"
    folder: Annotated[str, NOT_IDENTITY] = ""


class New(Old):
    width: int = Field(default=10, ge=1, description="a field that came later")


def test_a_new_field_leaves_old_digests_valid() -> None:
    assert Old(task="CB").digest == New(task="CB").digest
    assert New(task="CB", width=20).digest != New(task="CB").digest


def test_where_something_lies_is_not_what_it_is() -> None:
    assert Old(folder="/a").digest == Old(folder="/b").digest


def test_every_other_field_changes_the_digest() -> None:
    base = TrainConfig()
    digests = {base.digest}
    for name in TrainConfig.identity():
        field = TrainConfig.model_fields[name]
        choices = [choice for choice in get_args(field.annotation) if choice != field.default]
        other = choices[0] if choices else {str: "x", int: 7, float: 0.5, bool: True}[type(field.default)]
        digests.add(base.replace(**{name: other}).digest)
    assert len(digests) == 1 + len(TrainConfig.identity())
    assert set(TrainConfig.model_fields) - set(TrainConfig.identity()) == {
        "data_dir",
        "rationale",
        "report_to",
        "sweep",
    }


def test_a_record_of_version_0_2_still_names_the_sweep_of_all_texts() -> None:
    assert TrainConfig.from_dict({"sweep": "best-epoch"}).sweep == "all"
    with pytest.raises(InputError, match="sweep"):
        TrainConfig(sweep="never")


def test_the_digest_of_the_defaults_never_changes() -> None:
    """If this fails, a default was changed: every store out there would lose its runs."""
    assert TrainConfig().digest == "4a1c9493cfa7c271"
    assert TrainConfig(task="RTE", seed=3, learning_rate=1e-4).digest == "70d78ef7bb3b1e9a"


@pytest.mark.parametrize(
    "config",
    [
        TrainConfig(task="CB", strategy="all", learning_rate=1e-5, released_schedule=True),
        RoarConfig(method="beam(width=20, depth=3)", percent=30),
        MeasureConfig(methods=("loo-sign", "beam(width=20, depth=3)"), code=("mine:ab12",)),
    ],
    ids=lambda config: config.kind,
)
def test_a_config_survives_a_round_trip_through_json(config: Config) -> None:
    again = type(config).from_dict(json.loads(json.dumps(config.to_dict())))
    assert again == config
    assert again.digest == config.digest
    assert len({again, config}) == 1, "a key of dicts and sets"


def test_whole_numbers_and_fractions_of_one_value_are_one_config() -> None:
    assert TrainConfig(learning_rate=1).digest == TrainConfig(learning_rate=1.0).digest


def test_a_changed_copy_is_validated_too() -> None:
    with pytest.raises(InputError, match="epochs is -1; expected at least 0"):
        TrainConfig().replace(epochs=-1)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"strategy": "halff"}, "unknown strategy 'halff'; did you mean 'half'"),
        ({"batch_size": 0}, "batch_size is 0; expected at least 1"),
        ({"warmup": 1.0}, "warmup is 1.0; expected less than 1"),
        ({"learning_rate": float("nan")}, "learning_rate is nan; expected a finite number"),
        ({"learning_rate": float("inf")}, "learning_rate is inf; expected a finite number"),
        ({"learning_rate": 1e30}, r"learning_rate is 1e\+30; expected at most 1"),
        ({"weight_decay": float("-inf")}, "weight_decay is -inf; expected a finite number"),
        ({"warmup": float("nan")}, "warmup is nan; expected a finite number"),
        ({"seed": 2**32}, "seed is 4294967296; expected less than 4294967296"),
        ({"epochs": -1}, "epochs is -1; expected at least 0"),
        ({"epochs": True}, "epochs is True; expected a whole number"),
        ({"task": 3}, "task is 3; expected text"),
        ({"task": "\ud800"}, "task is '.+'; expected valid Unicode text"),
        ({"released_schedule": "yes"}, "released_schedule is 'yes'; expected true or false"),
        ({"batchsize": 3}, "unknown train option 'batchsize'; did you mean 'batch_size'"),
    ],
)
def test_wrong_values_are_refused_with_what_is_expected(values: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        TrainConfig.from_dict(values)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"methods": "beam"}, "methods is 'beam'; expected a list"),
        ({"methods": ["beam", 3]}, r"methods\[1\] is 3; expected text"),
        ({"strategy": "halff"}, "unknown strategy 'halff'; did you mean 'half'"),
        ({"step": 101}, "step is 101; expected at most 100"),
    ],
)
def test_wrong_values_of_a_measurement_are_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        MeasureConfig.from_dict(values)

"""The masked copies of a split and their metrics, against a plain loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, log_loss

from faithmeter.models.masks import PERCENTS, generator
from faithmeter.training.masking import ALL_COLUMNS, CONDITIONS, UNIFORM, Masks, Sweep

ROWS = [
    {"input_ids": [0, 5, 6, 7, 8, 9, 10, 11, 5, 6, 7, 2], "kinds": [-1, *[0] * 10, -1], "labels": 1},
    {"input_ids": [0, 5, 6, 2, 2, 7, 2], "kinds": [-1, 0, 0, -1, -1, 1, -1], "labels": 0},
    {"input_ids": [0, 8, 9, 2, 2, 7, 2], "kinds": [-1, 0, 0, -1, -1, 1, -1], "labels": 1},
]


def ids(sweep: Sweep, condition: int | str, row: int) -> list[int]:
    return sweep[int(sweep.place[condition][row])]["input_ids"].tolist()


def test_a_row_is_masked_by_the_start_of_one_random_order() -> None:
    sweep = Sweep(ROWS, Masks(mask_id=4, scope="explained", seed=7, stream="validation"))
    order = np.argsort(-generator(7, "validation", 0, 0).random(10), kind="stable")
    for percent in PERCENTS:
        expected = list(ROWS[0]["input_ids"])
        for token in order[: percent // 10]:
            expected[1 + token] = 4
        assert ids(sweep, percent, 0) == expected


def test_equal_inputs_are_evaluated_once_and_longest_first() -> None:
    sweep = Sweep(ROWS, Masks(mask_id=4, scope="explained", seed=0, stream="validation"))
    seen = [tuple(item["input_ids"].tolist()) for item in sweep.inputs]
    assert len(set(seen)) == len(seen)
    assert [len(row) for row in seen] == sorted(map(len, seen), reverse=True)
    # rows of two tokens: unmasked to 40 %, one token to 90 %; fully masked the two are the same input
    assert ids(sweep, 0, 1) == ids(sweep, 40, 1) == ROWS[1]["input_ids"]
    assert sweep.place[100][1] == sweep.place[100][2]


@pytest.mark.parametrize(
    ("scope", "fully_masked"), [("explained", [0, 4, 4, 2, 2, 7, 2]), ("all", [0, 4, 4, 2, 2, 4, 2])]
)
def test_the_scope_says_which_columns_go(scope: str, fully_masked: list[int]) -> None:
    assert ids(Sweep(ROWS, Masks(mask_id=4, scope=scope, seed=0, stream="sweep")), 100, 1) == fully_masked


@pytest.mark.parametrize("scope", ["explained", "all"])
def test_all_columns_leave_only_the_lengths(scope: str) -> None:
    sweep = Sweep(ROWS, Masks(mask_id=4, scope=scope, seed=0, stream="sweep"))
    assert ids(sweep, ALL_COLUMNS, 0) == [0, *[4] * 10, 2]
    assert ids(sweep, ALL_COLUMNS, 1) == [0, 4, 4, 2, 2, 4, 2]
    # rows of equal lengths become one input, and a single text is that of 100 %
    assert sweep.place[ALL_COLUMNS][1] == sweep.place[ALL_COLUMNS][2]
    assert sweep.place[ALL_COLUMNS][0] == sweep.place[100][0]
    assert (sweep.place[ALL_COLUMNS][1] == sweep.place[100][1]) == (scope == "all")


def test_nothing_in_a_swept_row_may_be_masked_again() -> None:
    sweep = Sweep(ROWS, Masks(mask_id=4, scope="all", seed=0, stream="sweep"))
    assert {kind for item in sweep.inputs for kind in item["kinds"]} == {-1}


def test_metrics_and_loss_equal_scikit_learn_on_the_rows_of_the_conditions() -> None:
    sweep = Sweep(ROWS, Masks(mask_id=4, scope="explained", seed=0, stream="sweep"))
    logits = np.random.default_rng(0).normal(size=(len(sweep), 2))
    labels = [1, 0, 1]
    for conditions in ([30], [0, UNIFORM]):
        rows = np.concatenate([logits[sweep.place[c]] for c in conditions])
        result = sweep.scores(logits, conditions, ["accuracy"])
        truth = labels * len(conditions)
        assert result["accuracy"] == accuracy_score(truth, rows.argmax(axis=1))
        probabilities = torch.softmax(torch.from_numpy(rows), dim=1).numpy()
        assert result["loss"] == pytest.approx(log_loss(truth, probabilities, labels=[0, 1]))


def test_the_table_has_a_row_for_each_condition() -> None:
    sweep = Sweep(ROWS, Masks(mask_id=4, scope="explained", seed=0, stream="sweep"))
    table = sweep.table(np.zeros((len(sweep), 2)), ["accuracy"])
    assert [row["masking"] for row in table] == [*CONDITIONS] == [*range(0, 101, 10), "uniform", "all"]
    assert {row["accuracy"] for row in table} == {1 / 3}  # equal logits: the first class


def test_a_limit_masks_rows_spread_over_the_split_as_without_it_and_keeps_all_whole_texts() -> None:
    rows = [{**ROWS[0], "labels": int(number >= 5)} for number in range(10)]  # sorted by class
    options = {"mask_id": 4, "scope": "explained", "seed": 3, "stream": "sweep"}
    every, some = Sweep(rows, Masks(**options)), Sweep(rows, Masks(**options, limit=4))
    chosen = [0, 2, 5, 7]
    for condition in CONDITIONS:
        kept = [*range(10)] if condition == 0 else chosen
        assert [ids(some, condition, place) for place in range(len(kept))] == [
            ids(every, condition, row) for row in kept
        ]
    logits = np.where(np.arange(len(some))[:, None] % 2, [0.0, 1.0], [1.0, 0.0])
    table = some.table(logits, ["accuracy"])
    assert [row.get("texts") for row in table] == [None, *[4] * 12]
    for condition in (50, UNIFORM):
        correct = [
            some.place[condition][place] % 2 == rows[row]["labels"] for place, row in enumerate(chosen)
        ]
        assert some.scores(logits, [condition], ["accuracy"])["accuracy"] == np.mean(correct)


@pytest.mark.parametrize("limit", [0, 3, 7])
def test_a_limit_of_at_least_the_rows_changes_nothing(limit: int) -> None:
    options = {"mask_id": 4, "scope": "explained", "seed": 3, "stream": "sweep"}
    every, some = Sweep(ROWS, Masks(**options)), Sweep(ROWS, Masks(**options, limit=limit))
    assert [item["input_ids"].tolist() for item in some.inputs] == [
        item["input_ids"].tolist() for item in every.inputs
    ]
    assert "texts" not in some.table(np.zeros((len(some), 2)), ["accuracy"])[1]

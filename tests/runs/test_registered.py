"""The registered pipeline behaves like any of transformers, and answers as ours does."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers

import faithmeter as fm
from faithmeter.runs.registered import register_pipeline
from toy import tiny

TEXTS = ["the film was not good", "very fun music", "a dull plot and bad actors"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("checkpoint")
    clf = tiny(dtype=torch.float32)
    clf.model.save_pretrained(folder)
    clf.tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def pipe(folder: str) -> transformers.Pipeline:
    task = register_pipeline()
    return transformers.pipeline(task, model=folder, orders=19, device="cpu")


def test_it_answers_as_our_pipeline_does(pipe, folder: str) -> None:
    ours = fm.pipeline(folder, orders=19)
    assert pipe(TEXTS[0]) == ours(TEXTS[0])
    assert pipe({"text": TEXTS[0], "text_pair": "who wrote it"}) == ours(
        {"text": TEXTS[0], "text_pair": "who wrote it"}
    )
    assert pipe(TEXTS) == ours(TEXTS)
    assert pipe(TEXTS[0], top_k=2) == ours(TEXTS[0], top_k=2)
    assert pipe(TEXTS[0], method="grad-l2") == ours(TEXTS[0], method="grad-l2"), "gradients are computed"


def test_batches_and_iterators_change_nothing(pipe) -> None:
    alone = [pipe(text) for text in TEXTS]
    assert pipe(TEXTS, batch_size=2) == alone
    assert list(pipe(text for text in TEXTS)) == alone
    assert pipe(TEXTS, batch_size=2, top_k=None)[1] == pipe(TEXTS[1], top_k=None)


def test_registering_twice_is_no_mistake() -> None:
    assert register_pipeline() == register_pipeline()


@pytest.mark.parametrize(
    ("inputs", "options", "message"),
    [
        (3, {}, "a int; expected a text"),
        ("a film", {"methods": "beam"}, "unknown option of a pipeline 'methods'; did you mean 'method'"),
        ("a film", {"orders": 3}, "orders is 3; expected a whole number of at least 19"),
        ({"text": "a film", "pair": "b"}, {}, "unknown key of an input 'pair'"),
    ],
)
def test_bad_inputs_are_refused_in_one_line(pipe, inputs: object, options: dict, message: str) -> None:
    with pytest.raises(fm.InputError, match=message) as caught:
        pipe(inputs, **options)
    assert "\n" not in str(caught.value)

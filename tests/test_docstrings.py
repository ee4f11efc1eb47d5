"""Every public name is documented, as are those of modules: summary, arguments, result, a running example.

The examples run in a folder with `stories.csv` (columns story, question, place) and `checkpoint`, a saved
model. They know `fm`, `torch`, `transformers`, and, for those stories, `clf`, `task`, `text`, `pair`,
`batch`, `labels`.
"""

from __future__ import annotations

import csv
import doctest
import inspect
from importlib import import_module
from typing import Any

import pytest
import torch
import transformers
from transformers import AutoModelForSequenceClassification

import faithmeter as fm
from faithmeter.data import stories
from faithmeter.methods import METHODS, adapters
from faithmeter.models.loading import load_tokenizer, resolve

QUESTIONS = 240
REACHED = {
    "align": "models.alignment",
    "Curve": "stats.curves",
    "Evaluator": "models.evaluator",
    "Explanation": "measuring.explanation",
    "fit_tests": "measuring.fitting",
    "own_scores": "methods.own_scores",
    "Pipeline": "runs.pipeline",
    "register_pipeline": "runs.registered",
    "saved_tests": "runs.fitted_tests",
    "Task": "data",
}
"""Documented names that are imported from their modules."""
NAMES: dict[str, Any] = {name: getattr(fm, name) for name in fm.__all__}
for name, module in REACHED.items():
    NAMES[name] = getattr(import_module(f"faithmeter.{module}"), name)
NAMES |= {f"adapters.{name}": getattr(adapters, name) for name in adapters.__all__}
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.fixture(scope="module")
def namespace(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("examples")
    rows = [(q.paragraph, q.question, q.answer) for s in stories.generate(1, QUESTIONS, seed=0) for q in s]
    with (folder / "stories.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("story", "question", "place"), *rows])
    task = fm.own_task(folder / "stories.csv", text="story", pair="question", label="place")
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_pretrained(
        resolve("embedded"), id2label=dict(enumerate(task.labels))
    )
    tokenizer = load_tokenizer("embedded")
    model.save_pretrained(folder / "checkpoint")
    tokenizer.save_pretrained(folder / "checkpoint")
    clf = fm.Classifier(model, tokenizer)
    text, pair, _ = rows[0]
    names = {
        "fm": fm,
        "torch": torch,
        "transformers": transformers,
        "clf": clf,
        "task": task,
        "text": text,
        "pair": pair,
    }
    names |= {"adapters": adapters, **{name: NAMES[name] for name in REACHED}}
    return names | {"batch": clf.encode([text], [pair]), "labels": [0], "folder": folder}


def has_parameters(thing: Any) -> bool:
    return not (isinstance(thing, type) and issubclass(thing, Exception)) and bool(
        inspect.signature(thing).parameters
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_is_documented(name: str) -> None:
    thing = NAMES[name]
    text = inspect.getdoc(thing) or ""
    summary = text.partition("\n")[0]
    assert summary.endswith("."), "one line that says what it is or does"
    if has_parameters(thing):
        assert "Args:" in text or (isinstance(thing, type) and "Attributes:" in text)
    if not isinstance(thing, type):
        assert "Returns:" in text or "Yields:" in text
        assert "Raises:" in text or not has_parameters(thing)
    assert ">>> " in text


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_public_name_runs(
    name: str, namespace: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(namespace["folder"])
    monkeypatch.setattr("faithmeter.methods.registry.METHODS", dict(METHODS))  # an example registers one
    text = inspect.getdoc(NAMES[name]) or ""
    example = doctest.DocTestParser().get_doctest(text, dict(namespace), name, None, 0)
    lines: list[str] = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(example, out=lines.append)
    assert not lines, "".join(lines)

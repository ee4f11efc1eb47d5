"""Identity matrix: what is changed behind a finished measurement is never answered from it.

Each row is measured, changed, and measured again in the same store and in a fresh one. The second answer must
be that of the fresh store, and that must differ from the first, or the row would prove nothing.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from safetensors.torch import load_file, save_file

from faithmeter.methods import registry
from faithmeter.models import devices
from faithmeter.stats.metrics import OWN_METRICS
from toy import WORDS, tiny

OWN = """
from pathlib import Path
import functools, torch, faithmeter as fm

CONSTANT = 3

def scorer(closure):
    def mine(clf, batch, labels, *, argument):
        stored = int(Path("factor.txt").read_text())
        masked = (batch.input_ids == clf.mask_id).sum(dim=1, keepdim=True)
        return (batch.input_ids * closure * argument * (stored + masked) + CONSTANT).double() % 11
    return mine

fm.method("mine", recursive=False, signed=False, version="1")(functools.partial(scorer(2), argument=1))

@fm.metric("hits")
def hits(labels, predictions):
    return float((predictions == labels).mean()) / 2
"""
FLAGS = ("LABEL_0", "LABEL_1", "LABEL_2")
MEASURE = ("measure", "model", "--test", "test.csv", "--valid", "valid.csv", "--text", "review")
LONG_TEXTS = 24
"""Words of the texts, of which the model reads 18 at once."""


class Row(NamedTuple):
    """What is changed behind a finished measurement: files, or the options before and after."""

    change: Callable[[], object] = lambda: None
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    several: bool = False
    """Whether the model gives several labels at once."""


def edit(file: str, old: str, new: str) -> Callable[[], object]:
    def change() -> None:
        text = Path(file).read_text()
        assert old in text
        Path(file).write_text(text.replace(old, new))

    return change


def change_weights() -> None:
    weights = load_file("model/model.safetensors")
    name = next(name for name in weights if "classifier" in name and weights[name].ndim == 2)
    save_file({**weights, name: -weights[name]}, "model/model.safetensors", metadata={"format": "pt"})


def swap_words() -> None:
    file = Path("model/tokenizer.json")
    tokenizer = json.loads(file.read_text())
    words = tokenizer["model"]["vocab"]
    words["film"], words["not"] = words["not"], words["film"]
    file.write_text(json.dumps(tokenizer))


def reorder_labels() -> None:
    file = Path("model/config.json")
    config = json.loads(file.read_text())
    names = [*config["id2label"].values()]
    config["id2label"] = dict(zip(config["id2label"], [*names[1:], names[0]], strict=True))
    config["label2id"] = {name: int(number) for number, name in config["id2label"].items()}
    file.write_text(json.dumps(config))


def change_own(old: str, new: str) -> Row:
    return Row(edit("own.py", old, new))


STEPS = ("-m", "int-grad-abs(steps=2)")
ROWS = {
    "model": Row(change_weights),
    "tokenizer": Row(swap_words),
    "rows": Row(edit("test.csv", "film", "plot")),
    "labels of the rows": Row(edit("test.csv", ",LABEL_1,", ",LABEL_2,")),
    "label order": Row(reorder_labels),
    "validation rows": Row(edit("valid.csv", "film", "plot")),
    "method body": change_own("% 11", "% 7"),
    "method closure": change_own("scorer(2)", "scorer(5)"),
    "method argument": change_own("argument=1", "argument=4"),
    "method constant": change_own("CONSTANT = 3", "CONSTANT = 6"),
    "method flag": change_own("recursive=False", "recursive=True"),
    "version": Row(lambda: (edit("factor.txt", "1", "3")(), edit("own.py", 'version="1"', 'version="2"')())),
    "metric": Row(before=("--metric", "accuracy"), after=("--metric", "macro_f1")),
    "metric body": Row(edit("own.py", "/ 2", "/ 3"), ("--metric", "hits"), ("--metric", "hits")),
    "options": Row(before=STEPS, after=("-m", "int-grad-abs(steps=3)")),
    "unit": Row(after=("--unit", "sentence")),
    "explained class": Row(after=("--explain", "predicted")),
    "overlap": Row(after=("--overlap", "4")),
    "precision": Row(after=("--precision", "bf16")),
    "label": Row(before=("--class", "LABEL_0"), after=("--class", "LABEL_1"), several=True),
    "percents": Row(after=("--step", "25")),
    "seed": Row(after=("--seed", "1")),
    "limit": Row(before=("--limit", "8")),
    "classes": Row(
        before=("--label", "kind", "--classes", "a=LABEL_0,b=LABEL_1,c=LABEL_2"),
        after=("--label", "kind", "--classes", "a=LABEL_1,b=LABEL_0,c=LABEL_2"),
    ),
    "trained with": Row(before=("--trained-with", "half"), after=("--trained-with", "none")),
}


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, its rows, and a file with a method and a metric of one's own."""
    folder, rng = tmp_path_factory.mktemp("matrix") / "pristine", random.Random(3)
    clf = tiny(dtype=torch.float32, max_position_embeddings=20)
    clf.model.save_pretrained(folder / "model")
    clf.tokenizer.save_pretrained(folder / "model")
    for name, count in (("test", 12), ("valid", 24)):
        lines = [f"review,stars,kind,{','.join(FLAGS)}"]
        for number in range(count):
            text = f"{' '.join(rng.choices(WORDS, k=12))}. {' '.join(rng.choices(WORDS, k=LONG_TEXTS - 12))}"
            flags = (str((number >> place) % 2) for place in range(3))
            lines.append(",".join([text, f"LABEL_{number % 3}", "abc"[number % 3], *flags]))
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    (folder / "own.py").write_text(OWN)
    (folder / "factor.txt").write_text("1")
    return folder


@pytest.fixture
def ask(faithmeter, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Return a function that measures in a folder as a new process would, and returns the numbers."""
    monkeypatch.setattr(devices, "cpu_features", lambda: {"avx512_bf16"})
    monkeypatch.setattr(registry, "METHODS", dict(registry.METHODS))

    def call(place: Path, row: Row, options: tuple[str, ...]) -> Any:
        monkeypatch.chdir(place)
        monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
        monkeypatch.setattr("faithmeter.cli.options.imported", [])
        registry.METHODS.pop("mine", None)
        labels = ("--label", ",".join(FLAGS) if row.several else "stars")
        methods = () if "-m" in options else ("-m", "mine")
        outcome = faithmeter("--import", "own.py", *MEASURE, *labels, *methods, *options, "--json")
        assert outcome.code == 0, outcome.err
        return numbers(json.loads(outcome.out))

    yield call
    OWN_METRICS.pop("hits", None)


def numbers(result: dict[str, Any]) -> Any:
    """Return every number of a measurement but its costs, without the options in the names of methods."""
    costs = ("seconds", "evaluations", "evaluations_alone", "curve")
    methods = [
        {
            "curve": method["curve"]["values"],
            **{name: value for name, value in method.items() if name not in costs},
        }
        for method in result["methods"].values()
    ]
    return {"texts": result["texts"], "methods": methods}


def copy_place(pristine: Path, place: Path, row: Row) -> Path:
    shutil.copytree(pristine, place)
    if row.several:
        config = json.loads((place / "model/config.json").read_text())
        config["problem_type"] = "multi_label_classification"
        (place / "model/config.json").write_text(json.dumps(config))
    return place


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[object, ...], tuple[Path, Any]]:
    """Folders of finished measurements with their numbers, which many rows begin with."""
    return {}


@pytest.fixture
def finish(pristine: Path, ask, finished, tmp_path_factory) -> Callable[[Row, Path], Any]:
    """Return a function that makes a folder with a row's finished measurement, and returns its numbers."""

    def call(row: Row, place: Path) -> Any:
        key = (row.before, row.several)
        if key not in finished:
            folder = copy_place(pristine, tmp_path_factory.mktemp("finished") / "place", row)
            finished[key] = folder, ask(folder, row, row.before)
        shutil.copytree(finished[key][0], place)
        return finished[key][1]

    return call


@pytest.mark.parametrize("name", ROWS)
def test_what_is_changed_behind_a_finished_run_is_never_answered_from_it(
    name: str, pristine: Path, tmp_path: Path, ask, finish, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, used = ROWS[name], tmp_path / "used"
    fresh = copy_place(pristine, tmp_path / "fresh", row)
    first = finish(row, used)
    monkeypatch.chdir(used)
    row.change()
    second = ask(used, row, row.after)
    monkeypatch.chdir(fresh)
    row.change()
    expected = ask(fresh, row, row.after)
    assert expected != first, "the change changes the numbers, or this row proves nothing"
    assert second == expected


def test_what_is_not_changed_is_answered_from_the_finished_run(pristine: Path, tmp_path: Path, ask) -> None:
    place = copy_place(pristine, tmp_path / "used", Row())
    first = ask(place, Row(), ())
    folders = sorted((place / "runs").iterdir())
    assert ask(place, Row(), ()) == first
    assert sorted((place / "runs").iterdir()) == folders


AUDIT = ("audit", "model", "--data", "texts.csv", "--text", "review", "-m", "mine", "--limit", "12")
BEHIND_AN_AUDIT = {
    "model": change_weights,
    "tokenizer": swap_words,
    "rows": edit("texts.csv", "film", "plot"),
    "method body": edit("own.py", "% 11", "% 7"),
}


@pytest.fixture(scope="module")
def audited(pristine: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for an audit, with enough texts for its check; the first audit is made in it."""
    place, rng = tmp_path_factory.mktemp("audited") / "place", random.Random(4)
    shutil.copytree(pristine, place)
    lines = ["review", *(" ".join(rng.choices(WORDS, k=9)) for _ in range(220))]
    (place / "texts.csv").write_text("\n".join(lines) + "\n")
    return place


@pytest.mark.parametrize("name", BEHIND_AN_AUDIT)
def test_what_is_changed_behind_an_audit_is_never_answered_from_it(
    name: str, audited: Path, tmp_path: Path, faithmeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed model or text is refused where its adaptation was kept, and audited anew elsewhere."""
    monkeypatch.setattr(registry, "METHODS", dict(registry.METHODS))

    def ask(place: Path) -> Any:
        monkeypatch.chdir(place)
        monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
        monkeypatch.setattr("faithmeter.cli.options.imported", [])
        registry.METHODS.pop("mine", None)
        outcome = faithmeter("--import", "own.py", *AUDIT, "--epochs", "1", "-o", "runs", "--json")
        if outcome.code == 2:
            return outcome.err.splitlines()[-1]
        result = json.loads(outcome.out)
        return [numbers(result[part]) for part in ("as_it_is", "measured")]

    if not (audited / "first.json").exists():
        (audited / "first.json").write_text(json.dumps(ask(audited)))
    first = json.loads((audited / "first.json").read_text())
    used, fresh = tmp_path / "used", tmp_path / "fresh"
    shutil.copytree(audited, used)
    shutil.copytree(audited, fresh, ignore=shutil.ignore_patterns("runs", "cache"))
    answers = []
    for place in (used, fresh):
        monkeypatch.chdir(place)
        BEHIND_AN_AUDIT[name]()
        answers.append(ask(place))
    second, expected = answers
    assert expected != first, "the change changes the numbers, or this row proves nothing"
    assert second == expected or "changed: " in second

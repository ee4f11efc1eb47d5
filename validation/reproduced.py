"""Points 1 to 8 that version 0.2 was wrong on, asked again of it and of the code as it is.

`python -m validation.reproduced 3` prints what the installed code says of point 3. With ../before a checkout
of commit 8921762, which is 0.2, `PYTHONPATH=../before/src:. python -m validation.reproduced 3` asks 0.2, and
`python -m validation.reproduced --table ../before/src` asks both of all points and writes
`results/validation/reproduced.md`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import faithmeter as fm

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "results" / "validation" / "reproduced.md"
WORK = ROOT / "runs-validation"
TEXTS = 400
"""Texts of each split."""
MODELS = {"word": ("masked", "plain"), "shuffled": ("masked",)}
"""Models that are asked about, small ones on planted words."""
COINS = 200
SEEN = ("milk", "apple")
"""Planted words; each tells its label."""


def either(now: str, before: str) -> Any:
    """Return an object by `module:name`, from where it is now or where 0.2 has it."""
    for place in (now, before):
        module, name = place.split(":")
        try:
            return getattr(import_module(f"faithmeter.{module}"), name)
        except (ImportError, AttributeError):
            continue
    raise SystemExit(f"neither {now} nor {before} is there; give PYTHONPATH a version that has one of them")


def is_before() -> bool:
    """Return whether the installed code is 0.2, which has no areas by kind."""
    return not hasattr(fm, "Result")


def prepare() -> None:
    """Train the models, and write their texts; only the code as it is can do this."""
    from .controls.planted import plant
    from .ruler.cases import case, trained

    for task, trainings in MODELS.items():
        for training in trainings:
            trained(case(task, training))
        for seed, role in enumerate(("train", "valid", "test")):
            planted = plant(task, TEXTS, seed=seed)
            frame = pd.DataFrame({"text": planted.texts, "label": planted.labels})
            frame.to_csv(WORK / f"{task}-{role}.csv", index=False)


def planted_task(name: str) -> Any:
    files = {role: str(WORK / f"{name}-{role}.csv") for role in ("train", "valid", "test")}
    return fm.own_task(files["train"], text="text", label="label", valid=files["valid"], test=files["test"])


def measured(task: str, training: str, methods: list[str], limit: int) -> Any:
    """Return the result of a model that is declared to have seen masks."""
    clf, own = fm.load(WORK / f"embedded-{task}-{training}-0"), planted_task(task)
    fit = either("measuring.fitting:fit_tests", "faithfulness.check:fit_tests")
    _teach_truth(clf)
    return fm.measure(clf, own, methods, tests=fit(clf, own, trained_with="half"), limit=limit)


def _teach_truth(clf: Any) -> None:
    ids = torch.tensor(clf.tokenizer.convert_tokens_to_ids(list(SEEN)))

    def truth(clf: Any, batch: Any, labels: torch.Tensor) -> torch.Tensor:
        return torch.isin(batch.input_ids, ids).double()

    fm.method("truth")(truth)


def answer(result: Any, number: int) -> str:
    """Return one of the answers of a verdict."""
    return str(result.verdict.answers[number].text)


def percents(result: Any, kind: str) -> str:
    """Return the areas of all methods but random orders."""
    areas = {
        name: result.acu(name) if kind == "acu" else result.area(name, kind)
        for name in result.methods
        if not name.startswith("random")
    }
    return ", ".join(f"{name} {100 * area:.1f}" for name, area in areas.items())


def plain_weights() -> str:
    return answer(measured("word", "plain", ["grad-l2"], 100), 0)


def attacks() -> str:
    planted = measured("word", "masked", ["truth", "loo-sign"], 100)
    empty = measured("shuffled", "masked", ["loo-sign"], 100)
    kinds = ("acu",) if is_before() else ("acu", "faithfulness")
    shares = "; ".join(f"{kind}: {percents(planted, kind)}" for kind in kinds)
    return f"{shares}. {answer(planted, 1)} Shuffled labels: {percents(empty, 'acu')}. {answer(empty, 1)}"


def coins() -> str:
    """Return how many random predictions of two balanced classes pass as learned, on 64 texts."""
    passed = dict.fromkeys(("accuracy", "macro_f1"), 0)
    for seed in range(COINS):
        labels, coin = (np.random.default_rng(seed).random((2, 64)) < 0.5).astype(int)
        for metric in passed:
            passed[metric] += _learned(metric, labels, coin)
    return ", ".join(f"{metric}: {100 * count / COINS:g} %" for metric, count in passed.items()) + " pass"


def _learned(metric: str, labels: Any, coin: Any) -> bool:
    if not is_before():
        return bool(
            import_module("faithmeter.stats.guessing").lead_over_guessing(metric, labels, coin, 2).lower > 0
        )
    metrics = import_module("faithmeter.metrics")
    guess = metrics.majority([metric], labels, labels, 2)[metric]
    return bool(metrics.score([metric], labels, coin, 2)[metric] > guess)


def weak_shift() -> str:
    """Return how often a shift that rejects one text in eight is noticed, of 200 texts and 260 references."""
    rejected = 0
    for seed in range(COINS):
        rng = np.random.default_rng(seed)
        references, values = np.sort(rng.normal(size=260)), rng.normal(0.5, size=200)
        p = (1 + 260 - np.searchsorted(references, values)) / 261
        if is_before():
            p_value = import_module("faithmeter.faithfulness.pvalues").dataset_pvalue(p).p
        else:
            count = import_module("faithmeter.stats.pvalues").count_test
            p_value = count(int((p < 0.05).sum()), len(p), 260).p
        rejected += p_value < 0.05
    return f"rejected in {100 * rejected / COINS:g} % of checks"


def optimizers() -> str:
    result = measured("word", "masked", ["search(budget=5)", "grad-l2", "loo-abs"], 60)
    ranked = (result.evidence if is_before() else result).rivals
    return f"ranked: {', '.join(ranked)}. {answer(result, 1)}"


def one_training() -> str:
    result = measured("word", "masked", ["loo-abs", "grad-l2"], 60)
    return f"{answer(result, 1)} {answer(result, 2)}"


def failed_adaptation() -> str:
    """Return the answers about an adaptation that is too short, and about the adapted model."""
    with tempfile.TemporaryDirectory() as folder:
        config = fm.AdaptConfig(
            model=str(WORK / "embedded-word-plain-0"),
            data=str(WORK / "word-train.csv"),
            text="text",
            epochs=1,
            learning_rate=5e-3,
            agreement=1.0,
        )
        record = fm.adapt(config, fm.RunStore(folder))
        clf = fm.load(next(Path(folder).rglob("model.safetensors")).parent)
        tests = import_module("faithmeter.runs.fitted_tests").saved_tests(clf)
        result = fm.measure(clf, planted_task("word"), ["grad-l2"], tests=tests, limit=100)
    return f"adapt: {record.answers[0].text} measure: {answer(result, 0)}"


def few_texts() -> str:
    """Return an interval of few texts, and the answer about the only method on 20 texts."""
    few = measured("word", "masked", ["grad-l2"], 3)
    low, high = _bounds(few, "grad-l2")
    single = answer(measured("word", "masked", ["grad-l2"], 20), 1)
    return f"three texts: [{100 * low:.0f}, {100 * high:.0f}] % of RACU; {single}"


def _bounds(result: Any, method: str) -> tuple[float, float]:
    found = result.bounds(method)["racu"] if is_before() else result.interval(method, "racu")
    return float(found.lower), float(found.upper)


POINTS: dict[int, tuple[str, Callable[[], str]]] = {
    1: ("plain weights that are declared masked: measurable?", plain_weights),
    2: ("the planted word, and labels that nothing tells: what leads?", attacks),
    3: ("how many coins have learned?", coins),
    4: ("is a weak shift of the texts noticed?", weak_shift),
    5: ("does a search compete with explanations?", optimizers),
    6: ("one training: is it said?", one_training),
    7: ("an adaptation that changes decisions: what is said then?", failed_adaptation),
    8: ("three texts, and one method on 20 texts", few_texts),
}
"""Points of the issue, each with a question and what answers it."""


def ask(point: int, source: Path) -> str:
    """Return what the code of a source folder says of a point."""
    path = os.pathsep.join([str(source), str(ROOT)])
    command = [sys.executable, "-m", "validation.reproduced", str(point)]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, cwd=ROOT, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else f"fails: {done.stderr.strip().splitlines()[-1]}"


def write_table(before: Path) -> None:
    """Ask both versions of all points, and write the table."""
    rows = ["| point | asked | 0.2 said | the code says now |", "| --- | --- | --- | --- |"]
    for point, (question, _) in POINTS.items():
        said = [ask(point, source).replace("|", "/").replace("\n", " ") for source in (before, ROOT / "src")]
        rows.append(f"| {point} | {question} | {said[0]} | {said[1]} |")
        print(rows[-1], flush=True)
    text = "# What 0.2 was wrong on, asked again\n\n" + __doc__.split("\n\n", 1)[1].strip() + "\n\n"
    TABLE.write_text(text + "\n".join(rows) + "\n", encoding="utf-8")


def main() -> None:
    torch.set_num_threads(1)
    if sys.argv[1] == "--table":
        prepare()
        write_table(Path(sys.argv[2]).resolve())
    else:
        print(POINTS[int(sys.argv[1])][1]())


if __name__ == "__main__":
    main()

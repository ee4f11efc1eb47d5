"""Fuzz task files, grid files, data, score files, configs, checkpoints and command lines with broken inputs.

python scripts/fuzz_inputs.py 10000 --seed 0

Every input must be accepted or refused by an InputError. The script prints how many were, and exits with 1 if
there was another exception, a hang, or an accepted input that had to be refused. Each is printed with the
number by which `--first NUMBER 1` reproduces it.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from typer.main import get_command

import faithmeter as fm
from faithmeter import cli
from faithmeter.config import Config, MeasureConfig, RoarConfig, TrainConfig
from faithmeter.data import Task, task_file
from faithmeter.grid import read as read_grid
from faithmeter.methods.own_scores import own_scores

EMBEDDED = Path(fm.__file__).parent / "models" / "embedded"
SHARES = {"task file": 20, "grid file": 10, "data": 20, "config": 10, "checkpoint": 10, "arguments": 10}
SHARES |= {"rows": 15, "scores": 5}
"""Percent of the inputs that are of each kind."""
OUTCOMES = ("refused", "accepted")
"""What may happen to an input."""
SHOWN_EVERY = 250
DEEP = "[" * 50_000
JUNK: list[Any] = [None, True, -1, 0, 3.5, float("nan"), float("inf"), 2**32, 2**70, "", "x" * 300, "\ud800"]
JUNK += ["\0", "../..", "é全", [], [[]], {}, {"a": 1}, -0.0, "half", "1e999"]
TOML_JUNK = ["-1", "0", "3.5", "nan", "inf", "true", '""', '"x"', "[]", "[[]]", "{}", "1979-05-27", "9" * 40]
BYTES = [b"", b"\0", b"\xff", b"\xef\xbb\xbf", b"9" * 5000, *b'\t|\n|"|,|{|}|\\ud800|NaN'.split(b"|")]
WORDS = "a film|\x1b[31m|全|0|-1|1|nan|1e999|4294967296|loo-sign|grad-l2|beam(width=0)|bAbI-1|Foo|[bold]|%s{}"
WORDS += "|check:p>=0.05|loo-sign:acu>=0|task=RTE|..|task.toml|reviews.csv|half|text|label|none"
PLACES = {
    "list": "tasks|methods|runs|schema|task",
    "grid": "valid.toml|grid.toml",
    "report": "runs|checkpoint",
}
"""First arguments of some verbs; that of the others is a checkpoint."""

GRID = """tasks = ["bAbI-1"]
models = ["embedded"]
seeds = [0, 1]
strategies = ["half/both", "none/unmasked"]
[train]
epochs = 1
[measure]
strategies = ["half/both"]
methods = ["grad-l2", "loo-sign"]
limit = 8
"""
TASK = {"data": '"reviews.csv"', "text": '"text"', "label": '"label"', "metric": '"macro_f1"', "epochs": "3"}


SENTENCE = "mary went to the kitchen"
WORK = [
    "faithmeter.training.finetuning.finetune",
    "faithmeter.runs.processes.finetune_together",
    "faithmeter.paper.roar.roar",
    "faithmeter.serve.server.run_server",
    "faithmeter.serve.server.listen",
    "subprocess.Popen",
]
"""Functions at which the long work of a command line begins."""
MEASURE = "faithmeter.runs.measurements.measure_checkpoint"
FORWARD = "transformers.models.modernbert.modeling_modernbert.ModernBertForSequenceClassification.forward"


class Case(NamedTuple):
    """An input: what to do with it, and whether it has to be refused."""

    run: Callable[[], object]
    broken: bool


class Reached(BaseException):
    """The command line accepted its arguments and would now work for long."""


class Hang(BaseException):
    """An input took too long."""


def damage(data: bytes, rng: Random) -> bytes:
    """Replace bytes at one to three places by others; sometimes cut the rest off."""
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        start = rng.randrange(len(data) + 1)
        piece = rng.choice([*BYTES, rng.randbytes(rng.randint(1, 4))])
        data = data[:start] + piece + (b"" if rng.random() < 0.1 else data[start + rng.randint(0, 8) :])
    return data


def load_all(task: Task) -> None:
    splits = task.load()
    assert len(task.labels) > 1, "a task has classes"
    assert all(len(split) for split in splits.values()), "a task has rows"


def make_task_file(rng: Random, folder: Path) -> Case:
    entries, path = dict(TASK), folder / "task.toml"
    how = rng.choice(["bytes"] * 4 + ["type", "missing", "unknown", "range", "deep", "encoding"])
    match how:
        case "type":
            entries[rng.choice(["data", "text", "label", "metric"])] = rng.choice(
                ["3", "true", "[]", "{}", "nan"]
            )
        case "missing":
            del entries[rng.choice(["data", "text", "label"])]
        case "unknown":
            entries[rng.choice(["txt", "Data", "epoch", "name2", '""'])] = rng.choice(TOML_JUNK)
        case "range":
            entries["epochs"] = rng.choice(["-1", "0", "2147483648", "1.5", "true", "9" * 30])
        case "deep":
            entries["name"] = rng.choice([DEEP, "{a=" * 5000])
    data = "".join(f"{key} = {value}\n" for key, value in entries.items()).encode()
    if how == "bytes":
        data = damage(data, rng)
    path.write_bytes(data + b"# \xff\n" if how == "encoding" else data)
    return Case(lambda: load_all(task_file(path)), how != "bytes")


def make_grid_file(rng: Random, folder: Path) -> Case:
    path, lines = folder / "grid.toml", GRID.splitlines()
    number = rng.choice([n for n, line in enumerate(lines) if "=" in line])
    broken = rng.random() < 0.5
    key = lines[number].partition(" = ")[0]
    if broken:
        lines[number] = f"{key} = {rng.choice(['nan', '{}', DEEP, '[[]]', '1979-05-27', '[-1.5]'])}"
    elif rng.random() < 0.3:
        lines[number] = rng.choice([f"{key} = {rng.choice(TOML_JUNK)}", ""])
    data = "\n".join(lines).encode()
    path.write_bytes(data if broken or rng.random() < 0.3 else damage(data, rng))
    return Case(lambda: read_grid(path), broken)


def make_data(rng: Random, folder: Path) -> Case:
    rows = [{"text": f"text {n}, of rows", "label": "good" if n % 2 else "bad"} for n in range(24)]
    kind = rng.choice(["csv", "tsv", "jsonl", "parquet"])
    path = folder / f"data.{kind}"
    how = rng.choice(["bytes"] * 4 + ["column", "class", "label", "fraction", "text", "cut"])
    row: dict[str, Any] = rows[rng.randrange(20)]
    match how:
        case "class":
            for each in rows:
                each["label"] = "good"
        case "label":
            row["label"] = ""
        case "fraction":
            row["label"] = "0.5"
        case "text":
            row["text"] = ""
    if how == "column":
        rows = [{"txt": each["text"], "label": each["label"]} for each in rows]
    data = encode_rows(rows, kind)
    if how == "cut":
        data = data[: rng.randrange(len(data) // 20)]
    path.write_bytes(damage(data, rng) if how == "bytes" else data)
    return Case(lambda: load_all(fm.own_task(path, text="text", label="label")), how != "bytes")


def encode_rows(rows: list[dict[str, str]], kind: str) -> bytes:
    if kind == "jsonl":
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    if kind == "parquet":
        import pandas as pd

        file = io.BytesIO()
        pd.DataFrame(rows).to_parquet(file)
        return file.getvalue()
    sign, quote = ("\t", "") if kind == "tsv" else (",", '"')
    lines = [list(rows[0]), *(list(row.values()) for row in rows)]
    return "".join(sign.join(f"{quote}{cell}{quote}" for cell in line) + "\n" for line in lines).encode()


def make_config(rng: Random, folder: Path) -> Case:
    kinds: list[type[Config]] = [TrainConfig, RoarConfig, MeasureConfig]
    kind = rng.choice(kinds)
    name, value = rng.choice([*kind.model_fields, "epoch", "x"]), rng.choice(JUNK)
    default = kind.model_fields[name].default if name in kind.model_fields else None
    number = isinstance(default, int | float) and not isinstance(default, bool)
    fits = type(value) is type(default) or (type(default) is float and type(value) is int)
    lowest = -1 if name == "ranks_alike" else 0  # a correlation may be negative
    outside = number and fits and not lowest <= value < 2**32  # NaN is outside, too
    listed = isinstance(default, tuple) and isinstance(value, list)

    def check() -> None:
        config = kind(**{name: value})
        again = kind.from_dict(json.loads(json.dumps(config.to_dict())))
        assert again == config, "a config survives JSON"
        assert len(config.digest) == 16, "a config has an identity"

    return Case(check, not (fits or listed) or outside or value == "\ud800")


def make_checkpoint(rng: Random, folder: Path) -> Case:
    copy = folder / "broken"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder / "checkpoint", copy)
    how = rng.choice(
        ["delete", "cut", "empty", "deep", "key", "tensor", "rename", "shape", "flip", "nan", "mask", "names"]
    )
    name = rng.choice(["config.json", "model.safetensors", "tokenizer.json"])
    if how in ("tensor", "rename", "shape", "nan"):
        break_tensor(copy / "model.safetensors", how, rng)
    elif how == "mask":  # a token that has a meaning already
        tokenizer = AutoTokenizer.from_pretrained(copy)
        special = {tokenizer.unk_token, tokenizer.pad_token, tokenizer.cls_token, tokenizer.sep_token}
        token = rng.choice([*sorted(filter(None, special)), "garden", "mary"])
        change_json(copy / "tokenizer_config.json", mask_token=token)
    elif how == "names":
        change_json(copy / "config.json", id2label={"0": "good", "1": "good"}, label2id={"good": 1})
    elif how == "key":
        name = rng.choice(["config.json", "tokenizer.json", "tokenizer_config.json"])
        break_json(copy / name, rng)
    else:
        data = (copy / name).read_bytes()
        position = rng.randrange(len(data) // 2)
        flipped = bytes([data[position] ^ 1 << rng.randrange(8)])
        changes = {
            "cut": data[:position],
            "empty": b"",
            "deep": DEEP.encode(),
            "flip": data[:position] + flipped + data[position + 1 :],
        }
        (copy / name).unlink()
        if how != "delete":
            (copy / name).write_bytes(changes[how])
    return Case(lambda: explain_one(copy), how not in ("key", "flip"))


def break_tensor(path: Path, how: str, rng: Random) -> None:
    tensors = load_file(path)
    name = rng.choice(sorted(tensors))
    tensor = tensors.pop(name)
    if how == "rename":
        tensors[f"{name}x"] = tensor
    elif how == "shape":
        tensors[name] = torch.cat([tensor, tensor])
    elif how == "nan":
        tensors[name] = torch.full_like(tensor, float("nan"))
    save_file(tensors, path, metadata={"format": "pt"})


def change_json(path: Path, **changes: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def break_json(path: Path, rng: Random) -> None:
    """Replace one value, at any depth, by junk that takes no memory."""
    value = json.loads(path.read_text())
    place = value
    while True:
        key = rng.choice(sorted(place)) if isinstance(place, dict) else rng.randrange(len(place))
        inside = place[key]
        if not (isinstance(inside, dict | list) and inside) or rng.random() < 0.3:
            break
        place = inside
    place[key] = rng.choice([None, True, -1, 0, 3.5, "", "x", [], {}, [1], {"a": 1}])
    path.write_text(json.dumps(value))


def explain_one(folder: Path) -> None:
    clf = fm.load(folder)
    batch = clf.encode(["mary went to the kitchen."])
    scores = fm.explain(clf, batch, [0], "grad-l2")
    assert bool(torch.isfinite(scores).all()), "scores are finite"


def make_arguments(rng: Random, folder: Path) -> Case:
    verb = rng.choice(list(cli.VERBS))
    parameters = get_command(cli.app).commands[verb].params  # type: ignore[attr-defined]
    options = [name for parameter in parameters for name in parameter.opts if name.startswith("-")]
    words = [*WORDS.split("|"), "", "x" * 300]
    places = [*PLACES.get(verb, "checkpoint|broken|embedded").split("|"), rng.choice(words)]
    arguments = [verb, *([] if verb in ("train", "demo") else [rng.choice(places)])]
    for _ in range(rng.randint(0, 3)):
        option, word = rng.choice([*options, "--import", "--help"]), rng.choice(words)
        arguments += rng.choice([[option, word], [option, word], [option], [word]])
    broken = rng.random() < 0.2 and "--help" not in arguments
    if broken:
        arguments.insert(1, "--no-such-option")  # at the end it would be the value of another option
    return Case(lambda: call(arguments), broken)


def call(arguments: list[str], begins: str = MEASURE) -> None:
    """Run a command line up to where its work `begins`; exit codes other than 0 and 1 are refusals."""
    output = io.StringIO()
    with ExitStack() as stack:
        for name in (*WORK, begins):
            stack.enter_context(patch(name, reach))
        stack.enter_context(patch.object(sys, "argv", ["faithmeter", *arguments]))
        try:
            with redirect_stdout(output):
                cli.main()
        except Reached:
            return
        except SystemExit as end:
            if end.code not in (None, 0, 1):
                raise fm.InputError(f"exit code {end.code}") from None
    if "--json" in arguments and not {"--help", "-h", "--version"} & {*arguments}:
        json.loads(output.getvalue())


def make_rows(rng: Random, folder: Path) -> Case:
    """A command line on one's own rows, with a mistake that must be named before any work, or with none."""
    path, out = folder / "own.csv", ["-o", rng.choice(["out", "out/deeper"])]
    how, broken = rng.choice(MISTAKES)
    count = {"few rows": rng.randint(10, 39), "few validation rows": rng.randint(40, 190)}.get(how, 240)
    names = ("rotten", "fresh") if how in ("names", "classes", "renamed") else ("bad", "good")
    rows = [{"text": f"text {n}, é", "label": names[n % 2]} for n in range(count)]
    data = encode_rows(rows, "csv")
    if how == "separator":
        data = encode_rows([{key: cell.replace(",", "") for key, cell in row.items()} for row in rows], "csv")
        data = data.replace(b",", rng.choice([b";", b"\t", b"|"]))
    if how == "encoding":
        data = data.decode().encode(rng.choice(["latin-1", "cp1252", "utf-16", "utf-16-be"]))
    path.write_bytes(data)
    (folder / "scores.jsonl").write_text('{"row": 0, "scores": [1]}\n')
    own = ["--text", "text", "--label", "label"]
    train = ["train", "--data", str(path), *own, "--model", "checkpoint"]
    test = ["checkpoint", "--test", str(path), *own]
    measure, audit = ["measure", *test], ["audit", "checkpoint", "--data", str(path), "--text", "text"]
    adapt, explain = ["adapt", *audit[1:]], ["explain", "checkpoint"]
    wrong = [f"--{how}", rng.choice(WRONG_VALUES.get(how, [""]))]
    arguments = {
        "few validation rows": [*adapt, *out],
        "no validation rows": ["check", *test, *out],
        "no model": [*train, "--model", rng.choice(["./nowhere", "../x", "no/such/model"]), *out],
        "names": [*measure, *out],
        "classes": [*measure, *wrong, *out],
        "renamed": [*measure, "--classes", "fresh=good,rotten=bad", *out],
        "place": [*rng.choice([train, measure, audit]), "-o", rng.choice(["/proc/x", "own.csv/x"])],
        "page": [*explain, "a text", rng.choice(["--html", "--csv"]), "/proc/x"],
        "lines": [*explain, "--file", str(path)],
        "scores twice": [*measure, "--scores", "a=scores.jsonl", "--scores", "a=scores.jsonl", *out],
        "budget": [*audit, *wrong, *out],
        "require": [*rng.choice([measure, audit]), *wrong, *out],
        "method": [*rng.choice([measure, audit, [*explain, "a text"]]), *wrong],
        "unit": [*rng.choice([measure, [*explain, "a text"]]), *wrong],
        "overlap": [*rng.choice([measure, [*explain, "a text"], ["check", *test]]), *wrong],
        "trained-with": [*measure, *wrong, *out],
        "measured": [*measure, *rng.choice(GIVEN), *rng.choice(GIVEN), *out],
        "audited": [*audit, *rng.choice([[], ["--budget", "1.5h"], ["--limit", "0"]]), *out],
        "explained": [*explain, "a text", *rng.choice([["--unit", "word"], ["--seed", "7"], ["--verify"]])],
    }.get(how, [*train, *out])

    def run() -> None:
        with deleted_folder() if how == "deleted folder" else nullcontext():
            call(arguments, FORWARD)

    return Case(run, broken)


WRONG_VALUES = {
    "classes": ["fresh", "fresh=", "a=b", "fresh=good,x"],
    "budget": ["0s", "10", "-1m", "nanh", "infs", "1e999m", "m", "tomorrow"],
    "require": ["check", "nothing:acu>=0", "loo-sign:acu", "loo-sign:fun>=1", "loo-sign:acu>=x", ">=", ""],
    "method": ["looo", "beam(width=0)", "grad-l2(steps=1)", "int-grad-sign(steps=x)", "auto(budget=0)", "("],
    "unit": ["paragraph", "", "Token"],
    "overlap": ["-1", "x", "1000000"],
    "trained-with": ["masks", "HALF"],
}
"""Values that an option refuses."""
GIVEN = [[], ["--unit", "word"], ["--unit", "sentence"], ["--seed", "7"], ["--complement"], ["--step", "25"]]
GIVEN += [["--trained-with", "none"], ["--limit", "3"], ["--require", "check:p>=0.05"], ["--overlap", "8"]]
"""Options that a measurement accepts, and that change what it asks."""
MISTAKES = [
    *[("few rows", True), ("few validation rows", True), ("no validation rows", True), ("no model", True)],
    *[("separator", True), ("encoding", True), ("names", True), ("place", True), ("page", True)],
    *[("lines", True), ("scores twice", True), ("deleted folder", True)],
    *[(option, True) for option in WRONG_VALUES],
    *[("renamed", False), ("measured", False), ("measured", False), ("trained", False)],
    *[("audited", False), ("explained", False)],
]
"""What is wrong with a command line on one's own rows, and whether it has to be refused."""


@contextmanager
def deleted_folder() -> Iterator[None]:
    """Run the block in a working directory that no longer exists."""
    before = os.getcwd()
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    os.rmdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def make_scores(rng: Random, folder: Path) -> Case:
    path, value = folder / "scores.jsonl", rng.choice([0, -1.5, 3, 10**20])
    row: dict[str, Any] = {"row": 0, "scores": [value] * 5}
    how = rng.choice(
        ["bytes", "huge", "context", "context of a row", "both", "key", "count", "twice", "fine"]
    )
    match how:
        case "huge":
            row["scores"][rng.randrange(5)] = rng.choice(
                [10**400, -(10**400), float("nan"), 1e999, True, "1"]
            )
        case "context":
            row = {"text": SENTENCE, "context": rng.choice([5, None, [], {}, 1.5, True]), "scores": [1] * 5}
        case "context of a row":
            row["context"] = "Where is Mary?"
        case "both":
            row["text"] = SENTENCE
        case "key":
            row["row"] = rng.choice(["0", None, 1.0, True, [0]])
        case "count":
            row["scores"] = [value] * rng.choice([0, 1, 4, 6, 400])
    data = (json.dumps(row) + "\n").encode() * (2 if how == "twice" else 1)
    path.write_bytes(damage(data, rng) if how == "bytes" else data)

    def run() -> None:
        clf = fm.load(folder / "checkpoint")
        fm.explain(clf, clf.encode([SENTENCE]), [0], own_scores("mine", path))

    return Case(run, how not in ("bytes", "fine"))


def reach(*_: object, **__: object) -> object:
    raise Reached


MAKERS: dict[str, Callable[[Random, Path], Case]] = {
    "task file": make_task_file,
    "grid file": make_grid_file,
    "data": make_data,
    "config": make_config,
    "checkpoint": make_checkpoint,
    "arguments": make_arguments,
    "rows": make_rows,
    "scores": make_scores,
}


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def prepare(folder: Path) -> None:
    """Write the valid files that the inputs are made from."""
    rows = [{"text": f"text {n}", "label": "good" if n % 2 else "bad"} for n in range(24)]
    (folder / "reviews.csv").write_bytes(encode_rows(rows, "csv"))
    (folder / "valid.toml").write_text(GRID)
    names = {0: "bad", 1: "good"}
    model = AutoModelForSequenceClassification.from_pretrained(EMBEDDED, id2label=names)
    model.save_pretrained(folder / "checkpoint")
    AutoTokenizer.from_pretrained(EMBEDDED).save_pretrained(folder / "checkpoint")
    explain_one(folder / "checkpoint")


def fuzz(numbers: Iterable[int], seed: int = 0, *, seconds: int = 120) -> Iterator[tuple[int, str, str]]:
    """Try inputs; yield the number of each, its kind, and `refused`, `accepted`, or what is wrong."""
    kinds = [kind for kind, share in SHARES.items() for _ in range(share)]
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        try:
            prepare(Path(name))
            for number in numbers:
                rng = Random(f"{seed} {number}")
                kind = rng.choice(kinds)
                yield number, kind, try_case(MAKERS[kind](rng, Path(name)), seconds)
        finally:
            os.chdir(before)


def try_case(case: Case, seconds: int) -> str:
    """Return `refused` or `accepted`, or what is wrong with how an input was treated."""
    try:
        with limited(seconds), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            case.run()
    except fm.InputError as error:
        return f"more than one line: {error}" if "\n" in str(error).strip() else "refused"
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return "".join(traceback.format_exception(error))
    return "accepted, but had to be refused" if case.broken else "accepted"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("count", type=int, help="number of inputs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--first", type=int, default=0, help="number of the first input, to reproduce a failure"
    )
    parser.add_argument("--seconds", type=int, default=120, help="an input that takes longer is a hang")
    options = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    counts, wrong = Counter[tuple[str, str]](), 0
    numbers = range(options.first, options.first + options.count)
    for number, kind, outcome in fuzz(numbers, options.seed, seconds=options.seconds):
        if outcome not in OUTCOMES:
            wrong += 1
            print(f"WRONG: {kind}, number {number}: {outcome}", flush=True)
            outcome = "WRONG"
        counts[kind, outcome] += 1
        if counts.total() % SHOWN_EVERY == 0:
            print(f"{counts.total()} inputs, {wrong} wrong", flush=True)
    for (kind, outcome), count in sorted(counts.items()):
        print(f"{kind:12} {outcome:9} {count:6}")
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()

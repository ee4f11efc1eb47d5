"""`faithmeter explain`: which words made the model say so, by one method or several side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ..config import EMBEDDED
from ..errors import InputError
from .screen import Json, bars, console, output, print_json, quiet


def _named(checkpoint: str) -> str:
    """Say where the seconds go: without a network the hub is asked for most of a minute."""
    if checkpoint != EMBEDDED and not Path(checkpoint).exists():
        console.print(
            f"no folder {checkpoint} here; trying it as a name on the Hugging Face hub", highlight=False
        )
    return checkpoint


Checkpoint = Annotated[
    str,
    typer.Argument(help="a folder of `faithmeter train`, or any saved or hub classifier", callback=_named),
]
Methods = Annotated[
    list[str],
    typer.Option("--method", "-m", help="a method, such as loo-sign or beam(width=20); may be repeated"),
]


def explain(
    checkpoint: Checkpoint,
    text: Annotated[
        str | None, typer.Argument(help="the text to explain; '-' reads it from standard input")
    ] = None,
    pair: Annotated[str | None, typer.Option(help="the second text, where the model takes two")] = None,
    method: Methods = ["loo-sign"],  # noqa: B006
    label: Annotated[
        str | None, typer.Option(help="the class to explain; default: the predicted one")
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="texts, one a line, or .jsonl with `text`, `pair` and `label`")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="write a page to this file")] = None,
    as_json: Json = False,
) -> None:
    """Show how much each word speaks for the predicted class.

    Example: faithmeter explain runs/train-bAbI-1-half-0-… "Mary went to the garden." --pair "Where is Mary?"
    """
    from ..evaluator import Evaluator
    from ..explanation import explain_texts, page
    from ..methods import parse
    from ..model import load

    rows = _rows(text, pair, label, file)
    methods = [parse(name) for name in method]
    quiet()
    clf = Evaluator(load(checkpoint))  # methods and equal texts share their evaluations
    explanations = []
    with bars() as progress:
        bar = progress.add_task("explaining", total=len(rows), note="")
        for row in rows:
            pairs = None if row.get("pair") is None else [row["pair"]]
            explanations += explain_texts(
                clf, [row["text"]], pairs=pairs, methods=methods, labels=[row.get("label")]
            )
            progress.advance(bar)
    if html is not None:
        html.write_text(page(explanations), encoding="utf-8")
        console.print(f"page: {html}", soft_wrap=True)
    if as_json:
        print_json([explanation.to_dict() for explanation in explanations])
    elif html is None:
        for explanation in explanations:
            output.print(explanation)


def _rows(text: str | None, pair: str | None, label: str | None, file: Path | None) -> list[dict[str, Any]]:
    if (text is None) == (file is None):
        raise InputError(
            'expected either a text or --file with texts: faithmeter explain CHECKPOINT "a text"'
        )
    if text is not None:
        text = typer.get_text_stream("stdin").read().strip() if text == "-" else text
        return [{"text": text, "pair": pair, "label": label}]
    assert file is not None
    return _read(file, {"pair": pair, "label": label})


def _read(file: Path, defaults: dict[str, Any]) -> list[dict[str, Any]]:
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {error}") from error
    rows = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if file.suffix != ".jsonl":
            rows.append(defaults | {"text": line})
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise InputError(f"{file}, line {number}: not JSON: {error}") from error
        if not isinstance(row, dict) or not isinstance(row.get("text"), str):
            raise InputError(f"{file}, line {number}: expected an object with `text`")
        rows.append(defaults | row)
    if not rows:
        raise InputError(f"{file} holds no text; expected one a line")
    return rows

"""`faithmeter audit`: a classifier and texts in, a decision out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..config import BASELINE, CLASSES
from ..errors import InputError
from ..files import require_writable
from .progress import bars, phase_bars
from .requirements import CHECK, EvenIfUntrusted, Require, hold, parse_requirements, quantities
from .results import show
from .screen import Json, Store, output, print_json, quiet

METHODS_HELP = "may be repeated; default: gradient size, integrated gradients, leave one out, and a search"


def audit(
    model: Annotated[str, typer.Argument(help="folder or hub name of a classifier")],
    data: Annotated[Path | None, typer.Option(help="file with your texts")] = None,
    text: Annotated[str, typer.Option(help="column with the text to classify and explain")] = "",
    label: Annotated[str, typer.Option(help="column with true labels; only compared with")] = "",
    pair: Annotated[str, typer.Option(help="column with a second text, the context")] = "",
    classes: Annotated[str, typer.Option(help=CLASSES)] = "",
    method: Annotated[list[str], typer.Option("--method", "-m", help=METHODS_HELP)] = [],  # noqa: B006
    limit: Annotated[int, typer.Option(min=0, help="held-out texts to measure; 0 takes all")] = 200,
    epochs: Annotated[int, typer.Option(min=1, help="epochs of an adaptation at most")] = 5,
    learning_rate: Annotated[float, typer.Option(help="peak learning rate of an adaptation")] = 2e-5,
    budget: Annotated[
        str, typer.Option(help="time after which no further method is begun: 90s, 10m, 1.5h")
    ] = "",
    require: Require = [],  # noqa: B006
    even_if_untrusted: EvenIfUntrusted = False,
    store: Store = Path("runs"),
    as_json: Json = False,
) -> None:
    """Say whether explanations of a classifier can be trusted, which to use, and what it takes.

    Example: faithmeter audit my-classifier --data texts.csv --text review
    """
    if data is None or not text:
        missing = "--data, a file with your texts" if data is None else "--text, the column with the texts"
        raise InputError(f"the audit of {model} needs {missing}: --data texts.csv --text review")
    from ..methods.registry import parse
    from ..report.surfaces import write_page
    from ..report.view import view
    from ..runs.auditing import METHODS
    from ..runs.auditing import audit as run

    names = [str(parse(name)) for name in method or METHODS]
    requirements = parse_requirements(require, [CHECK, BASELINE, *names])
    quiet()
    require_writable(store, "--output")
    with bars() as progress:
        decision = run(
            model,
            data,
            text,
            label=label,
            pair=pair,
            methods=names,
            limit=limit,
            budget=budget,
            store=store,
            progress=phase_bars(progress),
            classes=classes,
            epochs=epochs,
            learning_rate=learning_rate,
        )
    page = store / "audit.html"
    write_page([decision], page, title=f"Audit of {Path(model).name}")
    if as_json:
        print_json({**decision.to_dict(), "report": str(page)})
    else:
        show(view(decision))
        output.print(f"the page: {page}", soft_wrap=True)
        output.print(f"the measurable model: {decision.folder}", soft_wrap=True)
    hold(requirements, quantities(decision.result), decision.verdict, even_if_untrusted=even_if_untrusted)

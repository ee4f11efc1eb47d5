"""`faithmeter audit`: a classifier and texts in, a decision out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from ..config import BASELINE, CLASSES
from ..errors import InputError
from ..files import require_writable
from .options import option
from .progress import Overall, bars
from .requirements import CHECK, Gate, hold, parse_requirements, quantities
from .screen import Store, output, print_costs, print_json, quiet, show


@dataclass(frozen=True)
class Columns:
    """Options that name the texts, and the classes of true labels."""

    data: Path | None = option(None, "file with your texts")
    text: str = option("", "column with the text to classify and explain")
    label: str = option("", "column with true labels; only compared with")
    pair: str = option("", "column with a second text, the context")
    valid: str = option("", "file with validation texts; default: split off")
    test: str = option("", "file with held-out texts; default: split off")
    classes: str = option("", CLASSES)

    def require(self, model: str) -> None:
        """Raise an InputError unless file and column of the texts are given."""
        missing = "" if self.text else "--text, the column with the texts"
        missing = missing if self.data else "--data, a file with your texts"
        if missing:
            raise InputError(f"the audit of {model} needs {missing}: --data texts.csv --text review")


@dataclass(frozen=True)
class Work:
    """Options on how much is done."""

    method: list[str] = option([], "may be repeated; default: the four of `measure`", "--method", "-m")
    limit: int = option(200, "held-out texts to measure; 0 takes all", min=0)
    budget: str = option(
        "", "time after which an adaptation is stopped and no further method is begun: 90s, 10m, 1.5h"
    )


@dataclass(frozen=True)
class Adapting:
    """Options of the adaptation."""

    epochs: int = option(5, "epochs of an adaptation at most", min=1)
    learning_rate: float = option(2e-5, "peak learning rate of an adaptation")
    add_mask_token: bool = option(False, "add a mask token to a model without one", "--add-mask-token")


def audit(
    model: Annotated[str, typer.Argument(help="folder or hub name of a classifier")],
    columns: Columns,
    work: Work,
    adapting: Adapting,
    gate: Gate,
    store: Store = Path("runs"),
) -> None:
    """Say whether explanations of a classifier can be trusted, which to use, and what it takes.

    Example: faithmeter audit my-classifier --data texts.csv --text review
    """
    columns.require(model)  # before the imports, which take seconds
    from ..report.surfaces import write_page
    from ..report.view import view
    from ..runs.auditing import audit as run
    from ..runs.auditing import parse_budget, sort_methods

    names = sort_methods(work.method)
    requirements = parse_requirements(gate.require, [CHECK, BASELINE, *names])
    quiet()
    require_writable(store, "--output")
    with bars() as progress:
        overall = Overall(progress, "audit", in_order=True)

        def announce(seconds: Mapping[str, float]) -> None:
            print_costs(seconds, parse_budget(work.budget) if work.budget else math.inf)
            overall.plan(seconds)

        decision = run(
            model,
            str(columns.data),
            methods=names,
            limit=work.limit,
            budget=work.budget,
            store=store,
            progress=overall.show,
            announce=announce,
            **{name: value for name, value in asdict(columns).items() if name != "data"},
            **asdict(adapting),
        )
    page = store / "audit.html"
    write_page([decision], page, title=f"Audit of {Path(model).name}")
    if gate.as_json:
        print_json({**decision.to_dict(), "report": str(page)})
    else:
        show(view(decision))
        output.print(f"the page: {page}", soft_wrap=True)
        output.print(f"the measurable model: {decision.folder}", soft_wrap=True)
    trusting = gate.even_if_untrusted
    hold(requirements, quantities(decision.result), decision.verdict, even_if_untrusted=trusting)

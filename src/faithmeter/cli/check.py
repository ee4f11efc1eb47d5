"""`faithmeter check`: whether masked texts are in distribution for a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config import BASELINE, MeasureConfig
from ..errors import InputError
from .explain import Checkpoint
from .measure import Checking, run
from .options import Loading
from .requirements import CHECK, Gate, hold, parse_requirements, quantities
from .screen import Store, print_json, remark_verdict, show
from .texts import Texts

if TYPE_CHECKING:
    from ..data import Task


def check(
    checkpoint: Checkpoint,
    texts: Texts,
    loading: Loading,
    gate: Gate,
    checking: Checking,
    store: Store = Path("runs"),
) -> None:
    """Test whether randomly masked texts are in distribution for the model (MaSF), at 0, 10, …, 100 % masked.

    Example: faithmeter check runs/train-bAbI-1-half-0-… --require 'check:p>=0.05'
    """
    from ..report.view import view_check

    requirements = parse_requirements(gate.require, [CHECK, BASELINE])
    numbers: dict[str, Any] = {"overlap": loading.overlap, "precision": loading.number_type}
    # the check is a measurement of random orders alone: masked texts with their p-values
    config = MeasureConfig(methods=(BASELINE,), **numbers, **texts.settings, **checking.settings)
    origin = texts.origin(checkpoint)
    _require_validation_rows(checkpoint, origin.own)
    result = run(checkpoint, config, store, origin, loading.device)
    if gate.as_json:
        print_json(result.to_dict())
        remark_verdict(result.verdict, methods=False)
    else:
        show(view_check({"": result}))
    hold(requirements, quantities(result), result.verdict, even_if_untrusted=gate.even_if_untrusted)


def _require_validation_rows(checkpoint: str, own: Task | None) -> None:
    """Raise an InputError if neither the user's files nor the training have validation rows for the check."""
    from ..runs.measured import training_record
    from ..stats.masf import MIN_ROWS

    if own is None or own.own is None or {"train", "validation"} & own.own.paths.keys():
        return
    record = training_record(checkpoint)
    if record is None or record.rows["validation"] < MIN_ROWS:
        raise InputError(
            f"there are no validation rows to check {checkpoint} with; give a file of at least {MIN_ROWS} "
            "with --valid"
        )

"""`faithmeter measure` and `check`: faithfulness of explanations, and whether masked texts are normal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast, get_args

import typer

from ..config import BASELINE, MeasureConfig, TrainedWith, select_fields
from ..errors import InputError, unknown
from ..files import require_writable
from .explain import Checkpoint
from .lean import load_lean
from .options import Loading, Unit, Workers, option
from .progress import Overall, bars, phase_bars
from .requirements import CHECK, Gate, hold, parse_requirements, quantities
from .screen import Store, note, note_reused, print_bounds, print_json, quiet, remark_verdict, show
from .texts import Texts, TextsWithRationales

if TYPE_CHECKING:
    from ..data import Task
    from ..measuring.costs import Bounds
    from ..measuring.result import Result
    from ..runs.join import Compute
    from ..runs.measured import Origin

TrainedWithOption = Annotated[
    str,
    typer.Option(
        "--trained-with",
        help="masking in the model's training, which the check imitates: half, all, none or unknown; "
        "default: as its record says, unknown without one",
    ),
]


@dataclass(frozen=True)
class Checking:
    """Options on the in-distribution check, which every measurement begins with."""

    seed: int = option(0, "seed of the random orders", min=0)
    trained_with: TrainedWithOption = ""

    @property
    def settings(self) -> dict[str, Any]:
        """Fields of a `MeasureConfig`; raise an InputError for an unknown masking."""
        return {"seed": self.seed, "strategy": as_strategy(self.trained_with)}


@dataclass(frozen=True)
class Erasing(Checking):
    """Options on what is measured, and how."""

    method: list[str] = option(
        [],
        "may be repeated; `paper` is the ten of the paper; default: gradient size, integrated gradients, "
        "leave one out, a search as their ceiling, and your own",
        "--method",
        "--methods",
        "-m",
    )
    scores: list[str] = option(
        [],
        "jsonl file with scores of your own, measured like a method; may be repeated, NAME=FILE names them; "
        "without --method only they are measured",
    )
    step: int = option(10, "percent of tokens erased per step", min=1, max=100)
    unit: Unit = "token"
    metric: str = option(
        "", "metric of curves and areas, also your own (--import); default: that of the task"
    )
    explain: str = option("label", "class that is explained: the true label, or the one that is predicted")
    complement: bool = option(
        False,
        "also evaluate texts with only the erased part left, and print the metrics of other papers",
        "--complement",
    )

    @property
    def settings(self) -> dict[str, Any]:
        """Fields of a `MeasureConfig`, without the methods."""
        names = ("step", "unit", "metric", "explain", "complement")
        return {**super().settings, **select_fields(self, names)}


@dataclass(frozen=True)
class Computers(Workers, Loading):
    """Options on who evaluates the model, on what and in which numbers."""


def measure(
    checkpoint: Checkpoint,
    texts: TextsWithRationales,
    erasing: Erasing,
    computers: Computers,
    gate: Gate,
    store: Store = Path("runs"),
) -> None:
    """Erase texts in each method's order, and compare the performance with random erasure: ACU and RACU.

    Example: faithmeter measure runs/train-bAbI-1-half-0-… -m loo-sign -m grad-l2 --limit 200
    """
    from ..methods.own_scores import register_scores
    from ..methods.registry import default_methods, expand, parse
    from ..report.view import view

    own_scores = register_scores(erasing.scores)  # from here on a method like any other
    names = [*map(str, map(parse, expand(erasing.method))), *(own.name for own in own_scores)]
    numbers: dict[str, Any] = {"overlap": computers.overlap, "precision": computers.number_type}
    config = MeasureConfig(methods=tuple(names), **numbers, **texts.settings, **erasing.settings)
    cluster = computers.on_ray
    requirements = parse_requirements(gate.require, [CHECK, BASELINE, *(names or default_methods())])
    origin = texts.origin(checkpoint)
    if computers.precision == "auto" and not cluster:
        from ..runs.choices import choose_precision

        chosen = choose_precision(checkpoint, config, origin, computers.device)
        config = config.replace(**chosen.config)
        note(chosen.reason)
    with _computing(checkpoint, config, computers) if cluster else nullcontext() as compute:
        device = "auto" if cluster else computers.device  # a cluster's device is that of its nodes
        result = run(checkpoint, config, store, origin, device, compute)
    if result.texts < texts.limit:  # a smaller number than asked for is not passed over in silence
        note(f"{result.texts} texts were measured: there are no more")
    if gate.as_json:
        print_json(result.to_dict())
        remark_verdict(result.verdict)
    else:
        show(view(result))
    hold(requirements, quantities(result), result.verdict, even_if_untrusted=gate.even_if_untrusted)


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


def as_strategy(trained_with: str) -> TrainedWith | Literal[""]:
    """Return the value of `--trained-with`.

    Raises:
        InputError: The value is unknown; the message names the option instead of the config's field.
    """
    if trained_with and trained_with not in get_args(TrainedWith):
        raise unknown("--trained-with", trained_with, get_args(TrainedWith))
    return cast("TrainedWith", trained_with)


def run(
    checkpoint: str,
    config: MeasureConfig,
    root: Path,
    origin: Origin | None = None,
    device: str = "auto",
    compute: Compute | None = None,
) -> Result:
    """Measure a checkpoint, show a progress bar for each method, and return the measurement.

    `compute` computes missing slices elsewhere.
    """
    from ..runs.join import compute_here
    from ..runs.measured import HERE
    from ..runs.measurements import Conduct, measure_checkpoint
    from ..store.run_store import RunStore

    quiet()  # our bars take the place of the libraries'
    if not root.exists():  # a finished measurement is also read from a store that cannot be written
        require_writable(root, "--output")
    with bars() as progress:
        overall, is_finished = Overall(progress, "measure"), True

        def announce(bounds: Bounds) -> None:
            nonlocal is_finished
            is_finished = False
            if config.methods != (BASELINE,):  # more than the check
                print_bounds(bounds)
                overall.plan(bounds.evaluations)

        bar = phase_bars(progress, overall)
        conduct = Conduct(device, bar, announce, compute or compute_here, load_lean)
        result = measure_checkpoint(checkpoint, config, RunStore(root), origin or HERE, conduct)
    if is_finished:
        note_reused("this measurement")
    return result


@contextmanager
def _computing(checkpoint: str, config: MeasureConfig, computers: Computers) -> Iterator[Compute]:
    """Connect to a Ray cluster, and yield the function that computes slices there."""
    from ..runs.cluster import connected, find_resources
    from ..runs.shards import Source, compute_on_ray

    with connected(computers.address):
        resources = find_resources(computers.cpus_per_run, computers.gpus_per_run)
        source = Source(
            checkpoint,
            computers.device,
            config.precision,
            config.label or None,
            resources,
            overlap=config.overlap,
        )
        yield partial(compute_on_ray, source, remark=note)

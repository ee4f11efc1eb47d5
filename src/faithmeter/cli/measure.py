"""`faithmeter measure`: faithfulness of explanations on a task or on your own texts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from ..config import BASELINE, MeasureConfig, TrainedWith
from ..errors import unknown
from ..files import require_writable
from .engines import Workers
from .explain import Checkpoint
from .options import Loading, Unit, as_precision
from .own_texts import RationaleColumn, Texts, read_origin
from .progress import Clock, Lines, Overall, bars
from .requirements import CHECK, Gate, hold, parse_requirements, quantities
from .results import print_bounds, remark_verdict, show
from .screen import Json, Store, note, print_json, quiet

if TYPE_CHECKING:
    from ..measuring.result import Result
    from ..runs.bounded import Bounds
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
Seed = Annotated[int, typer.Option(min=0, help="seed of the random orders")]


@dataclass(frozen=True)
class Erasing:
    """Options on what is measured, and how."""

    method: Annotated[
        list[str],
        typer.Option(
            "--method",
            "--methods",
            "-m",
            help="may be repeated; `paper` is the ten of the paper; default: gradient size, integrated "
            "gradients, leave one out, a search as their ceiling, and your own",
        ),
    ] = field(default_factory=list)
    scores: Annotated[
        list[str],
        typer.Option(
            help="jsonl file with scores of your own, measured like a method; may be repeated, NAME=FILE "
            "names them; without --method only they are measured"
        ),
    ] = field(default_factory=list)
    step: Annotated[int, typer.Option(min=1, max=100, help="percent of tokens erased per step")] = 10
    seed: Seed = 0
    unit: Unit = "token"
    metric: Annotated[
        str,
        typer.Option(help="metric of curves and areas, also your own (--import); default: that of the task"),
    ] = ""
    explain: Annotated[
        str, typer.Option(help="class that is explained: the true label, or the one that is predicted")
    ] = "label"
    complement: Annotated[
        bool,
        typer.Option(
            "--complement",
            help="also evaluate texts with only the erased part left, and print the metrics of other papers",
        ),
    ] = False

    @property
    def settings(self) -> dict[str, Any]:
        """Fields of a `MeasureConfig`, without the methods."""
        names = ("step", "seed", "unit", "metric", "explain", "complement")
        return {name: getattr(self, name) for name in names}


def measure(
    checkpoint: Checkpoint,
    texts: Texts,
    erasing: Erasing,
    loading: Loading,
    workers: Workers,
    gate: Gate,
    rationale: RationaleColumn = None,
    trained_with: TrainedWithOption = "",
    store: Store = Path("runs"),
    as_json: Json = False,
) -> None:
    """Erase texts in each method's order, and compare the performance with random erasure: ACU and RACU.

    Example: faithmeter measure runs/train-bAbI-1-half-0-… -m loo-sign -m grad-l2 --limit 200
    """
    from ..methods.own_scores import register_scores
    from ..methods.registry import default_methods, expand, parse
    from ..report.view import view

    own_scores = register_scores(erasing.scores)
    names = [*(str(parse(name)) for name in expand(erasing.method)), *(own.name for own in own_scores)]
    config = MeasureConfig(
        methods=tuple(names),
        overlap=loading.overlap,
        precision=as_precision(loading.precision),
        **texts.settings,
        **erasing.settings,
        **training_option(trained_with),
    )
    cluster = workers.on_ray
    requirements = parse_requirements(gate.require, [CHECK, BASELINE, *(names or default_methods())])
    origin = read_origin(checkpoint, texts, rationale)
    if loading.precision == "auto" and not cluster:
        from ..runs.chosen_precision import choose_precision

        chosen = choose_precision(checkpoint, config, origin, loading.device)
        config = config.replace(**chosen.config)
        note(chosen.reason)
    with _computing(checkpoint, config, loading.device, workers) if cluster else nullcontext() as compute:
        device = "auto" if cluster else loading.device
        result = run(checkpoint, config, store, origin, device, compute)
    if result.texts < texts.limit:
        note(f"{result.texts} texts were measured: there are no more")
    if as_json:
        print_json(result.to_dict())
        remark_verdict(result.verdict)
    else:
        show(view(result))
    hold(requirements, quantities(result), result.verdict, even_if_untrusted=gate.even_if_untrusted)


def training_option(trained_with: str) -> dict[str, Any]:
    """Return the config field for `--trained-with`.

    Raises:
        InputError: The value is unknown; the message names the option instead of the field.
    """
    if trained_with and trained_with not in get_args(TrainedWith):
        raise unknown("--trained-with", trained_with, get_args(TrainedWith))
    return {"strategy": trained_with}


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
    from ..methods.registry import default_methods, parse
    from ..runs.join import compute_here
    from ..runs.measured import HERE
    from ..runs.measurements import measure_checkpoint
    from ..store.run_store import RunStore

    methods = [parse(name) for name in config.methods] or [parse(name) for name in default_methods()]
    quiet()
    if not root.exists():  # a finished measurement is also read from a store that cannot be written
        require_writable(root, "--output")
    with bars() as progress:
        names = dict.fromkeys([CHECK, BASELINE, *map(str, methods)])
        lines = {name: progress.add_task(name, total=None, note="", visible=False) for name in names}
        clock, overall = Clock(), Overall(progress, "measure")

        def announce(bounds: Bounds) -> None:
            if len(names) > 2:  # more than the check
                print_bounds(bounds)
                overall.plan(bounds.evaluations)

        def advance(name: str, done: int, total: int) -> None:
            spent = clock.spend(name)
            overall.show(name, done, total)
            if overall.bar is None or not isinstance(progress, Lines):  # a log file gets one percentage
                progress.update(lines[name], completed=done, total=total, visible=True, spent=spent)

        return measure_checkpoint(
            checkpoint,
            config,
            RunStore(root),
            origin or HERE,
            device=device,
            progress=advance,
            announce=announce,
            compute=compute or compute_here,
        )


@contextmanager
def _computing(checkpoint: str, config: MeasureConfig, device: str, workers: Workers) -> Iterator[Compute]:
    """Connect to a Ray cluster, and yield the function that computes slices there."""
    from ..runs.cluster import connected, find_resources
    from ..runs.shards import Source, compute_on_ray

    with connected(workers.address):
        resources = find_resources(workers.cpus_per_run, workers.gpus_per_run)
        source = Source(
            checkpoint, device, config.precision, config.label or None, resources, overlap=config.overlap
        )
        yield partial(compute_on_ray, source, remark=note)

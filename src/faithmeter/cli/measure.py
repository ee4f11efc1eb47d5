"""`faithmeter measure`: faithfulness of explanations on a task or on your own texts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from ..config import BASELINE, MeasureConfig, TrainedWith, UnitName
from ..errors import unknown
from ..files import require_writable
from .engines import Address, CpusPerRun, Engine, GpusPerRun, on_ray
from .explain import Checkpoint
from .options import Device, Overlap, PrecisionOption, Unit, as_precision
from .own_texts import (
    Classes,
    ClassName,
    Data,
    DataDir,
    LabelColumn,
    Limit,
    PairColumn,
    RationaleColumn,
    TaskName,
    Test,
    TextColumn,
    Valid,
    own_test_texts,
)
from .progress import Clock, bars
from .requirements import CHECK, EvenIfUntrusted, Require, hold, parse_requirements, quantities
from .results import print_bounds, remark_verdict, show
from .screen import Json, Store, note, print_json, quiet

if TYPE_CHECKING:
    from ..data import Task
    from ..measuring.measurement import Measurement
    from ..runs.join import Compute

TrainedWithOption = Annotated[
    str,
    typer.Option(
        "--trained-with",
        help="masking in the model's training, which the check imitates: half, all, none or unknown; "
        "default: as its record says, unknown without one",
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="seed of the random orders")]


def measure(
    checkpoint: Checkpoint,
    task: TaskName = "",
    method: Annotated[
        list[str],
        typer.Option(
            "--method",
            "-m",
            help="may be repeated; default: the paper's and your own, without beam where it would cost more "
            "than the others together",
        ),
    ] = [],  # noqa: B006
    limit: Limit = 0,
    step: Annotated[int, typer.Option(min=1, max=100, help="percent of tokens erased per step")] = 10,
    seed: Seed = 0,
    data_dir: DataDir = None,
    data: Data = None,
    text: TextColumn = None,
    label: LabelColumn = None,
    pair: PairColumn = None,
    rationale: RationaleColumn = None,
    valid: Valid = None,
    test: Test = None,
    classes: Classes = "",
    name: ClassName = None,
    scores: Annotated[
        list[str],
        typer.Option(
            help="jsonl file with scores of your own, measured like a method; may be repeated, NAME=FILE "
            "names them; without --method only they are measured"
        ),
    ] = [],  # noqa: B006
    unit: Unit = "token",
    overlap: Overlap = 0,
    metric: Annotated[
        str,
        typer.Option(help="metric of curves and areas, also your own (--import); default: that of the task"),
    ] = "",
    complement: Annotated[
        bool,
        typer.Option(
            "--complement",
            help="also evaluate texts with only the erased part left, and print the metrics of other papers",
        ),
    ] = False,
    trained_with: TrainedWithOption = "",
    device: Device = "auto",
    precision: PrecisionOption = "auto",
    engine: Engine = "local",
    address: Address = "",
    cpus_per_run: CpusPerRun = None,
    gpus_per_run: GpusPerRun = None,
    require: Require = [],  # noqa: B006
    even_if_untrusted: EvenIfUntrusted = False,
    store: Store = Path("runs"),
    as_json: Json = False,
) -> None:
    """Erase texts in each method's order, and compare the performance with random erasure: ACU and RACU.

    Example: faithmeter measure runs/train-bAbI-1-half-0-… -m loo-sign -m grad-l2 --limit 200
    """
    from ..methods.own_scores import register_scores
    from ..methods.registry import default_methods, parse
    from ..report.view import view

    names = [*(str(parse(name)) for name in method), *(own.name for own in register_scores(scores))]
    config = MeasureConfig(
        task=task,
        methods=tuple(names),
        seed=seed,
        limit=limit,
        step=step,
        precision=as_precision(precision),
        unit=cast(UnitName, unit),
        overlap=overlap,
        metric=metric,
        label=name or "",
        classes=classes,
        complement=complement,
        **training_option(trained_with),
    )
    cluster = on_ray(engine, address, cpus_per_run, gpus_per_run)
    requirements = parse_requirements(require, [CHECK, BASELINE, *(names or default_methods())])
    searches = {required.method for required in requirements if not parse(required.method).recursive}
    if not names and searches - {BASELINE}:
        config = config.replace(methods=tuple(default_methods()))  # a search that is required is not left out
    own = own_test_texts(checkpoint, task, (data, valid, test), text, label, pair, rationale)
    amounts = cpus_per_run, gpus_per_run
    engines = _computing(checkpoint, config, device, address, amounts) if cluster else nullcontext()
    with engines as compute:
        where = "auto" if cluster else device
        result = run(checkpoint, config, store, data_dir, None if own else data, own, where, compute)
    if result.texts < limit:
        note(f"{result.texts} texts were measured: there are no more")
    if as_json:
        print_json(result.to_dict())
        remark_verdict(result.verdict)
    else:
        show(view(result))
    hold(requirements, quantities(result), result.verdict, even_if_untrusted=even_if_untrusted)


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
    data_dir: Path | None,
    data: Path | None = None,
    own: Task | None = None,
    device: str = "auto",
    compute: Compute | None = None,
) -> Measurement:
    """Measure a checkpoint, show a progress bar for each method, and return the measurement.

    `compute` computes missing slices elsewhere.
    """
    from ..methods.registry import default_methods, parse
    from ..runs.join import compute_here
    from ..runs.measurements import measure_checkpoint
    from ..store.run_store import RunStore

    methods = [parse(name) for name in config.methods] or [parse(name) for name in default_methods()]
    quiet()
    if not root.exists():  # a finished measurement is also read from a store that cannot be written
        require_writable(root, "--output")
    with bars() as progress:
        names = dict.fromkeys([CHECK, BASELINE, *map(str, methods)])
        lines = {name: progress.add_task(name, total=None, note="", visible=False) for name in names}
        clock = Clock()

        def advance(name: str, done: int, total: int) -> None:
            spent = clock.spend(name)
            progress.update(lines[name], completed=done, total=total, visible=True, spent=spent)

        return measure_checkpoint(
            checkpoint,
            config,
            RunStore(root),
            data_dir=data_dir,
            data=data,
            own=own,
            device=device,
            progress=advance,
            announce=print_bounds if len(names) > 2 else None,  # more than the check
            compute=compute or compute_here,
        )


@contextmanager
def _computing(
    checkpoint: str,
    config: MeasureConfig,
    device: str,
    address: str,
    amounts: tuple[float | None, float | None],
) -> Iterator[Compute]:
    """Connect to a Ray cluster, and yield the function that computes slices there."""
    from ..runs.cluster import connected, find_resources
    from ..runs.shards import Source, compute_on_ray

    with connected(address):
        resources = find_resources(*amounts)
        source = Source(
            checkpoint, device, config.precision, config.label or None, resources, overlap=config.overlap
        )
        yield partial(compute_on_ray, source, remark=note)

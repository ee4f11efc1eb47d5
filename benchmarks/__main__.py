"""`python -m benchmarks`: speed of this machine on the work of faithmeter, beside other libraries."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from faithmeter.cli.options import Device, PrecisionOption, as_precision
from faithmeter.cli.screen import Json, console, marked, output, print_json, quiet, table
from faithmeter.config import EMBEDDED
from faithmeter.errors import InputError, unknown

if TYPE_CHECKING:
    from .run import BenchResult


def bench(
    model: Annotated[
        str,
        typer.Option(help="a saved classifier; default: RoBERTa, 6 layers of width 384, random weights"),
    ] = "",
    quick: Annotated[
        bool, typer.Option("--quick", help="a smoke run in a minute: tiny sizes, the embedded model")
    ] = False,
    rounds: Annotated[int, typer.Option(min=0, help="interleaved rounds; 0: five, with --quick two")] = 0,
    only: Annotated[
        list[str], typer.Option("--only", help="part to run, such as loo or masf; may be repeated")
    ] = [],  # noqa: B006
    texts: Annotated[
        int, typer.Option(min=0, help="texts of leave-one-out and gradients; 0: as many as planned")
    ] = 0,
    clock: Annotated[
        str, typer.Option(help="wall, or cpu on a machine that others use, with OMP_NUM_THREADS=1")
    ] = "wall",
    device: Device = "auto",
    precision: PrecisionOption = "auto",
    folder: Annotated[
        Path | None, typer.Option("--output", "-o", help="folder for bench.json and the picture")
    ] = None,
    as_json: Json = False,
) -> None:
    """Time faithmeter, plain loops and other libraries on the same model, texts and threads.

    Contenders take turns in every round; the table shows medians. Example: python -m benchmarks --quick
    """
    from faithmeter.files import write_json

    from . import run as benches
    from .race import CLOCKS
    from .setting import FULL, QUICK, RANDOM, make_setting

    for part in only:
        if part not in benches.PARTS:
            raise unknown("part of the bench", part, benches.PARTS)
    if clock not in CLOCKS:
        raise unknown("--clock", clock, CLOCKS)
    quiet()
    name = model or (EMBEDDED if quick else RANDOM)
    sizes = QUICK if quick else FULL
    if texts:
        sizes = replace(sizes, occlusion=texts, gradient=texts, integrated=texts)
    setting = make_setting(name, sizes, device=device, precision=as_precision(precision))
    for result in benches.run(
        setting,
        rounds=rounds or (2 if quick else 5),
        parts=tuple(only) or benches.PARTS,
        clock=clock,
        report=lambda work: console.print(f"bench: {work}", soft_wrap=True),
    ):
        if folder is not None:
            write_json(folder / "bench.json", result.to_dict())
    if folder is not None:
        _draw(result, folder)
    if as_json:
        print_json(result.to_dict())
        return
    for each in summary(result):
        output.print(each)


def _draw(result: BenchResult, folder: Path) -> None:
    from .picture import save_picture

    for path in (folder / "bench.json", *save_picture(result, folder, "bench")):
        console.print(f"written: {path}", soft_wrap=True)


def summary(result: BenchResult) -> list[Table | str]:
    """Return the tables of a bench, and a sentence on each contender that did not take part."""
    machine = result.machine
    title = (
        f"{machine['model']} on {machine['device']} in {machine['precision']}, {machine['threads']} threads; "
        f"medians of {result.rounds} interleaved rounds, {machine['clock']} time"
    )
    lines = table(title, "contender", "seconds", "ratio", "peak MB", "difference", "% of light")
    work = ""
    for entry in result.entries:
        if entry.work != work:
            work = entry.work
            lines.add_row(work, style="bold")
        numbers = (entry.peak_mb, entry.difference, entry.light)
        forms = ("{:.0f}", "{:.0e}", "{:.0%}")
        optional = ["" if n is None else form.format(n) for n, form in zip(numbers, forms, strict=True)]
        lines.add_row(f"  {entry.contender}", f"{entry.seconds:.3g}", f"{entry.ratio:.2f}", *optional)
    parts: list[Table | str] = [lines] if result.entries else []
    if result.growth:
        columns = ("work", "sizes", "seconds", "exponent", "peak MB", "exponent")
        growth = table("growth: seconds and memory at each size, and the exponents", *columns)
        for one in result.growth:
            sizes, seconds, memory = (
                "" if values[0] is None else f"{values[0]:.3g} … {values[-1]:.3g}"
                for values in (one.sizes, one.seconds, one.peak_mb)
            )
            exponents = (one.exponent, one.memory_exponent)
            growth_time, growth_memory = ("" if value is None else f"{value:.2f}" for value in exponents)
            growth.add_row(one.work, sizes, seconds, growth_time, memory, growth_memory)
        parts.append(growth)
    if result.agreement is not None:
        agreement = result.agreement
        values = [f"{name} {value:.3f}" for name, value in agreement.correlations.items()]
        text = ", ".join(values) or f"not measured: {agreement.reason}"
        parts.append(f"rank agreement of {agreement.precision} with fp32 ({agreement.model}): {text}")
    return [*parts, *(f"left out: {name}: {why}" for name, why in result.skipped.items())]


def main(arguments: list[str] | None = None) -> None:
    """Run the bench and exit; the exit code is 2 for a mistake in the input."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(context_settings={"help_option_names": ["-h", "--help"]})(bench)
    try:
        app(arguments)
    except InputError as error:
        console.print(marked("error: ", "bold red", str(error)), soft_wrap=True)
        sys.exit(2)


if __name__ == "__main__":
    main()

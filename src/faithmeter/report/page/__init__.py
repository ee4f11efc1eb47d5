"""Report on the runs of a store: one self-contained HTML page, with tables and figures as files beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...config import BASELINE, SIGNIFICANCE_LEVEL
from ...errors import InputError
from ...files import atomic
from ...store import frames
from ...store.frames import POOLED_SEEDS
from ...store.results import Pooled, describe_others, preferred
from ...store.run_store import RunStore
from ...verdict.doubts import STEP_WARNING
from ...verdict.sentences import Answer
from .. import provenance
from ..blocks import Block, Code, Figure, Section, Table
from ..html import fill_page, heat_script, resource
from ..values import rename_tasks, task_names
from ..view import answer_sentences, metrics_table, plausibility_table
from .examples import SCORE_LEVELS, choose_sources, compress_json, example_groups, to_json
from .sections import caption, fill_sections
from .verdicts import Judged, judge, performance_sentences, together, view_top

if TYPE_CHECKING:
    from ..aggregate import Frames

    Tables = Mapping[str, Callable[[Frames], Table]]

MAX_PAGE_BYTES = 9_900_000
"""Maximum size of the page; example texts that do not fit are left out."""
PAPER_TABLES = ("models",)
"""Tables that the page shows only beside published values, because charts show the same runs."""
OF_ONE_TASK = "faithfulness_"
"""Beginning of the names of tables that the page omits, because another table includes them."""
CONSTANTS = {
    "baseline": BASELINE,
    "levels": SCORE_LEVELS,
    "significance": SIGNIFICANCE_LEVEL,
    "stepWarning": STEP_WARNING,
}
"""Constants that Python passes to the scripts."""
SCRIPTS = ("page.js", "charts.js", "numbers.js", "examples.js")

Progress = Callable[[str, int, int], object]
"""Callback that receives the kind of output (figures, tables, page), the number done, and the total."""


@dataclass(frozen=True)
class Report:
    """Paths of the written page and files, the answers that the page states, and those on each model."""

    page: Path
    files: list[Path]
    answers: tuple[Answer, ...]
    models: tuple[Judged, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-ready values."""
        paths = {"page": str(self.page), "files": list(map(str, self.files))}
        models = map(Judged.to_dict, self.models)
        return {**paths, "answers": list(map(asdict, self.answers)), "models": list(models)}


@dataclass(frozen=True)
class Comparable:
    """Runs of a store that may be averaged: records, results and frames, and a line on each other run."""

    records: provenance.Records
    measured: Sequence[Pooled]
    frames: Frames
    left_out: Sequence[str]

    @property
    def methods(self) -> list[str]:
        """Names of all measured methods."""
        names: dict[str, None] = {}
        for pooled in self.measured:
            names |= dict.fromkeys(pooled.result.methods)
        return list(names)

    @property
    def finished(self) -> str:
        """Date of the newest run; the current date would change the page every day."""
        return str(max(record.finished for _, record in self.records)[:10])


def write(
    store: RunStore,
    path: Path,
    *,
    examples: int = 500,
    files: Path | None = None,
    progress: Progress | None = None,
    tables: Tables | None = None,
) -> Report:
    """Write the report on the runs of a store.

    Args:
        store: Store with the runs.
        path: Path of the page.
        examples: Maximum number of example texts.
        files: Folder for tables and figures; if None, they are only on the page.
        progress: Callback that is called after each figure, each table and the page.
        tables: Further tables from the frames of the store, such as those of the paper.

    Returns:
        The paths of the page and the files, and the verdicts.

    Raises:
        InputError: The store holds no finished run.
    """
    advance = progress or (lambda kind, done, total: None)
    runs = _read(store)
    contents, written = _draw(runs, files, tables or {}, advance)
    judged = judge(runs.measured, runs.frames["train"])
    chosen = preferred(runs.measured)
    contents |= {
        "performance": list(performance_sentences(runs.frames["train"])),
        "methods": [provenance.methods_table(runs.methods)] if runs.methods else [],
        "settings": provenance.settings_sections(runs.records),
        "commands": [Code(provenance.commands(runs.records, store.root, path))],
        "digests": [provenance.digests_section(runs.records)],
    }
    by_model = []
    for one in judged if len(judged) > 1 else ():
        by_model.append(Section(one.subject, tuple(answer_sentences(one.verdict.answers)), folded=True))
    render = partial(
        _render,
        contents,
        version=__version__,
        heading=_heading(judged),
        facts=list(_facts(runs)),
        finished=runs.finished,
        top=view_top(list(map(attrgetter("result"), chosen.values())), judged),
        answers=[*answer_sentences(together(judged)), *by_model],
        left_out=runs.left_out,
    )
    # rendered once without texts, to know what they may take
    free_bytes = MAX_PAGE_BYTES - len(render([]).encode())
    text = render(example_groups(choose_sources(runs.measured), examples, free_bytes))
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
    advance("page", 1, 1)
    return Report(path, written, together(judged), tuple(judged))


def _read(store: RunStore) -> Comparable:
    records = list(store.records())
    if not any(record.kind in ("train", "adapt", "measure") for _, record in records):
        raise InputError(
            f"{store.root} holds no finished run; expected a store of runs: begin with `faithmeter demo`, "
            "or `faithmeter train` and then `faithmeter measure` on its checkpoint"
        )
    # a task of your own is its file in the frames, so that two files of one name are not averaged
    names = task_names(map(itemgetter(1), records))
    measured = [replace(pooled, name=names.get(pooled.task, "")) for pooled in store.results(records)]
    every = {}
    for kind in frames.COLUMNS:
        every[kind] = frames.frame(kind, records, measured)
    tidy, left_out = frames.comparable(every)
    # runs that were left out of the frames must not come back by the results or the commands
    digests = set().union(*(frame["digest"] for frame in tidy.values()))
    records = [(folder, record) for folder, record in records if record.digest in digests]
    measured = [pooled for pooled in measured if pooled.runs[0].newest.digest in digests]
    for kind, frame in tidy.items():
        tidy[kind] = rename_tasks(frame, names)
    return Comparable(records, measured, tidy, [*left_out, *describe_others(measured)])


def _draw(
    runs: Comparable, folder: Path | None, tables: Tables, advance: Progress
) -> tuple[dict[str, Sequence[Block]], list[Path]]:
    """Return the figures and tables of the page that have data, and the files written to the folder."""
    from .. import exports, figures

    contents: dict[str, Sequence[Block]] = {}
    written: list[Path] = []
    for number, (name, figure) in enumerate(figures.FIGURES.items(), start=1):
        chart = figure(runs.frames)
        if chart is not None:
            spec = figures.spec(chart)
            title = caption(name, spec, pooled=POOLED_SEEDS in runs.frames["measure"])
            contents[f"figure {name}"] = [Figure(name, title, spec)]
            written += figures.save(chart, folder / "figures", name) if folder else []
        advance("figures", number, len(figures.FIGURES))
    named = {}
    for pooled in preferred(runs.measured).values():
        named[Path(pooled.task).name, Path(pooled.model).name] = pooled.result
    of_results: dict[str, Any] = {"plausibility": plausibility_table, "other_metrics": metrics_table}
    for number, (name, table_of) in enumerate({**tables, **of_results}.items(), start=1):
        table = table_of(named if name in of_results else runs.frames)
        on_page = list(_on_page(name, table)) if table.rows else []
        if on_page:
            contents[f"table {name}"] = on_page
        written += exports.save(table, folder / "tables", name) if folder and table.rows else []
        advance("tables", number, len(tables) + len(of_results))
    return contents, written


def _on_page(name: str, table: Table) -> Iterator[Table]:
    """Yield the table as the page shows it, if it does; only the paper's models have published values."""
    if name.startswith(OF_ONE_TASK):
        return
    if table.compares_models:
        yield table.with_own_names()
    elif name not in PAPER_TABLES:
        yield table.without_comparison().with_own_names()


def _render(contents: Mapping[str, Sequence[Block]], texts: Sequence[Any], **values: Any) -> str:
    """Return the HTML of the page, which includes its style, scripts and data and loads nothing else."""
    from markupsafe import Markup

    from ..figures import config

    scripts = [_vega(), heat_script(), *map(resource, map("page/{}".format, SCRIPTS))]
    specs: dict[str, Any] = {}
    for blocks in contents.values():
        specs |= {block.name: block.spec for block in blocks if isinstance(block, Figure)}
    charts = {"specs": specs, "light": config(dark=False), "dark": config(dark=True)}
    marker = {"examples": [Section("")]} if texts else {}
    return fill_page(
        "page/page.html",
        scripts,
        sections=fill_sections({**contents, **marker}),
        chart_data=Markup(to_json(charts)),
        example_data=compress_json({**CONSTANTS, "groups": texts}) if texts else "",
        **values,
    )


@cache
def _vega() -> str:
    """Return a script with Vega, Vega-Lite and vega-embed, wrapped so that only `vegaEmbed` is global."""
    import vl_convert  # it holds the scripts that draw charts, so that the page loads nothing

    return f"(() => {{{vl_convert.javascript_bundle('window.vegaEmbed = vegaEmbed;')}\n}})();"


def _heading(judged: Sequence[Judged]) -> str:
    parts = []
    for kind in ("task", "model"):
        names = set(map(attrgetter(kind), judged))
        parts.append(names.pop() if len(names) == 1 else f"{len(names)} {kind}s")
    return ", ".join(parts)


def _facts(runs: Comparable) -> Iterator[str]:
    """Yield phrases on how much was run."""
    seeds = {record.trained.seed for _, record in runs.records}
    counts = {"seed": len(seeds), "method": len({*runs.methods} - {BASELINE}), "run": len(runs.records)}
    for noun, count in counts.items():
        if count:
            yield f"{count:,} {noun}{'s' * (count != 1)}"
    texts: dict[str, int] = {}
    for pooled in runs.measured:
        for run in pooled.runs:
            for name in run.result.methods:
                texts[name] = max(run.result.texts_of(name), texts.get(name, 0))
    # random erasure is on the texts of every method; it counts only if nothing else was measured
    baseline = texts.pop(BASELINE, 0)
    fewest, most = min(texts.values(), default=baseline), max(texts.values(), default=baseline)
    if most:
        yield f"{most:,} texts" if fewest == most else f"{fewest:,} to {most:,} texts, by method"
    yield f"finished {runs.finished}"

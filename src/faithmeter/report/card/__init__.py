"""Model card of a checkpoint: its measurements in the README.md that Hugging Face displays."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml  # type: ignore[import-untyped]

from ...config import EMBEDDED, SIGNIFICANCE_LEVEL
from ...data import TASKS
from ...errors import InputError
from ...files import atomic
from ...store.run_store import RunStore
from ..blocks import Cell, Column, Table
from ..exports import markdown_lines
from ..view import areas_table, check_table, top_sentence
from .facts import (
    HUB_METRICS,
    OWNER,
    PAPER,
    Facts,
    Measured,
    commands,
    digests,
    doubts,
    gather,
    hub_results,
    results,
)

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

README = "README.md"
EVAL_RESULTS = Path(".eval_results", "faithmeter.yaml")
"""Results on datasets of the hub, which lists them on the pages of model and dataset."""
TEMPLATE = Path(__file__).with_name("section.md.jinja")
BEGIN, END = "<!-- faithmeter: begin -->", "<!-- faithmeter: end -->"
"""Comments that enclose the section that faithmeter writes."""
TAGS = ["faithfulness", "explainability", "interpretability", "masked-language-model", "faithmeter"]


def write(checkpoint: str | Path, store: RunStore) -> Path:
    """Write the measurements of a checkpoint into the README.md in its folder, and return its path.

    Only our section and our results in the metadata are replaced; everything else is kept. Results on
    datasets of the hub are also written to `.eval_results/faithmeter.yaml`.

    Raises:
        InputError: The folder or its measurements are missing, or the README.md cannot be parsed.
    """
    folder = Path(checkpoint)
    facts, path = gather(folder, store), folder / README
    try:
        old = path.read_bytes().decode("utf-8-sig") if path.exists() else new_card(facts)
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 ({error}); save it as UTF-8 and run again") from error
    # edited on Windows: its lines end as before, or every line would differ in its history
    line_break = "\r\n" if "\r\n" in old else "\n"
    text = with_section(old.replace("\r\n", "\n"), section(facts), path)
    text = with_results(text, facts.name, list(results(facts)), path).replace("\n", line_break)
    with atomic(path) as temporary:
        temporary.write_bytes(text.encode())
    entries = hub_results(facts)
    if entries:
        with atomic(folder / EVAL_RESULTS) as temporary:
            temporary.write_text(yaml.safe_dump(entries, sort_keys=False), encoding="utf-8")
    return path


def new_card(facts: Facts) -> str:
    """Return a new card with metadata and a title, but without our section."""
    from huggingface_hub import ModelCardData

    model = facts.train.config.model if facts.train else EMBEDDED
    # `base_model` must be a name on the hub, or the hub refuses the whole card
    on_hub = re.fullmatch(r"[\w.-]+(/[\w.-]+)?", model) and model != EMBEDDED and not Path(model).exists()
    datasets, metrics = [], []
    for measured in facts.tasks:
        hub, metric = getattr(TASKS.get(measured.task), "hub", None), measured.result.metric
        datasets += [hub.repo] if hub else []
        metrics.append(HUB_METRICS.get(metric, metric))
    data = ModelCardData(
        base_model=model if on_hub else None,
        datasets=datasets or None,
        library_name="transformers",
        pipeline_tag="text-classification",
        tags=TAGS,
        metrics=metrics,
    )
    about = "A text classifier. The section on faithfulness says how far to trust its explanations."
    missing = "Its language and its license are not known to faithmeter: add them to the metadata above."
    return f"---\n{data.to_yaml()}\n---\n\n# {plain(facts.name)}\n\n{about}\n\n{missing}\n"


def section(facts: Facts) -> str:
    """Return our section of the card in Markdown; all values except code are escaped."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if isinstance(value, Markup) else plain(value),
    )
    filters: dict[str, Callable[[Any], Any]] = {
        "table": lambda table: Markup(
            "\n".join([*markdown_lines(table), "", *map(plain, table.visible_notes)])
        ),
        "performance": performance_table,
        "areas": lambda measured: areas_table(measured.result, costs=False),
        "check": lambda measured: check_table({"": measured.result}),
        "top": lambda measured: top_sentence(measured.result.verdict).text,
        "last": lambda path: Path(path).name,
        "listed": lambda names: ", ".join(names),
        "json": lambda value: Markup(json.dumps(value)),
        "fenced": lambda code: Markup(fenced(code)),
    }
    environment.filters |= filters
    values = {
        **vars(facts),
        "alpha": SIGNIFICANCE_LEVEL,
        "paper": PAPER,
        "doubts": list(doubts(facts)),
        "commands": "\n".join(commands(facts)),
        "digests": list(digests(facts)),
        "versions": facts.records[-1].environment.versions,
    }
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(values)


def performance_table(measured: Measured) -> Table:
    """Return the performance on whole and on wholly masked texts."""
    rows = ((Cell(name), Cell(100 * value)) for name, value in measured.performance.items())
    columns = (Column(("input",), "label"), Column((f"{measured.result.metric} in %",), form="number"))
    return Table("Performance", columns, tuple(rows))


def with_section(card: str, text: str, path: Path) -> str:
    """Return the card with our section replaced, or appended if it has none.

    Raises:
        InputError: One of the two enclosing comments is missing, or they are in the wrong order.
    """
    start, end = card.find(BEGIN), card.rfind(END)
    if (start < 0) != (end < 0) or end < start:
        raise InputError(f"{path} has {BEGIN} without a following {END}; repair the pair, or delete both")
    if start < 0:
        return f"{card.rstrip()}\n\n{BEGIN}\n{text}\n{END}\n"
    return f"{card[:start]}{BEGIN}\n{text}\n{END}{card[end + len(END) :]}"


def with_results(card: str, name: str, ours: list[EvalResult], path: Path) -> str:
    """Return the card with our results in the model-index of its metadata.

    Other metadata is kept, including its comments if the layout of the YAML allows it.

    Raises:
        InputError: The metadata is not valid YAML, or its model-index has an unexpected structure.
    """
    from huggingface_hub.repocard import REGEX_YAML_BLOCK

    match = REGEX_YAML_BLOCK.search(card)
    block, body = (match[2] + "\n", card[match.end() :]) if match else ("", card)
    try:
        data = yaml.safe_load(block) or {}
        wanted = {**data, "model-index": _merged(data.get("model-index"), name, ours)}
    except (yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
        raise InputError(
            f"the metadata of {path} cannot be read ({' '.join(str(error).split())}); "
            "correct the lines between its --- marks, or move the file away, and run again"
        ) from error
    # only our block is cut out as text, so that comments and the order of other lines are kept
    others = re.sub(r"^model-index:.*\n(?:[ -].*\n|\n)*", "", block, flags=re.MULTILINE)
    edited = others + _yaml({"model-index": wanted["model-index"]})
    try:
        kept = yaml.safe_load(edited) == wanted
    except yaml.YAMLError:  # e.g. a block in braces
        kept = False
    return f"---\n{edited if kept else _yaml(wanted)}---\n{body}"


def _merged(index: list[dict[str, Any]] | None, name: str, ours: list[EvalResult]) -> list[dict[str, Any]]:
    """Return the model-index with our earlier results removed and the new ones added to the first model."""
    from huggingface_hub.repocard_data import eval_results_to_model_index

    new = eval_results_to_model_index(name, ours)
    if not index:
        return new
    kept = []
    for model in index:
        theirs = [one for one in model["results"] if not _is_ours(one)]
        kept.append({**model, "results": theirs})
    kept[0]["results"] += new[0]["results"]
    return kept


def _is_ours(result: dict[str, Any]) -> bool:
    args = [metric.get("args") or {} for metric in result.get("metrics", [])]
    by_source = (result.get("source") or {}).get("name") == OWNER  # as earlier cards have it
    return by_source or any(OWNER in each for each in args)


def _yaml(data: dict[str, Any]) -> str:
    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
    return text


def plain(value: Any) -> str:
    """Return a value as one line of text, escaped so that Markdown shows it unchanged."""
    return re.sub(r"([\\`*_\[\]<>|&~$#!])", r"\\\1", " ".join(str(value).split()))


def fenced(code: str) -> str:
    """Return shell code as a Markdown block, fenced by more backticks than any run inside it."""
    # a path with backticks would end a shorter fence
    fence = "`" * max(3, *(1 + len(run) for run in re.findall("`*", code)))
    return f"{fence}bash\n{code}\n{fence}"

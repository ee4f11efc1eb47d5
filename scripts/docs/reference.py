"""Markdown of the reference pages, from the code: public names, commands, files and methods."""

from __future__ import annotations

import csv
import inspect
import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from itertools import starmap
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel

import faithmeter
from faithmeter.cli import app
from faithmeter.cli.listing import schema
from faithmeter.methods import METHODS, adapters

Schema = dict[str, Any]


def write_api() -> str:
    """Return all public names with their docstrings, in the order of the packages."""
    return (
        "\n\n".join(
            f"## {package}\n\n{about[0].upper()}{about[1:]}.\n\n" + "\n\n".join(map(_autodoc, names))
            for package, about in faithmeter.LAYERS.items()
            if (names := [name for name, home in faithmeter._HOME.items() if home.split(".")[0] == package])
        )
        + "\n\n## In their modules\n\n"
        + "\n\n".join(starmap(_autodoc_in, REACHED))
    )


REACHED = (
    ("data", "Task"),
    ("measuring.explanation", "Explanation"),
    ("measuring.fitting", "fit_tests"),
    *(("methods.adapters", name) for name in adapters.__all__),
    ("methods.own_scores", "own_scores"),
    ("models.alignment", "align"),
    ("models.evaluator", "Evaluator"),
    ("runs.fitted_tests", "saved_tests"),
    ("runs.pipeline", "Pipeline"),
    ("runs.registered", "register_pipeline"),
    ("stats.curves", "Curve"),
)
"""Documented names that are imported from their modules."""


def _autodoc(name: str) -> str:
    return _autodoc_block(name, getattr(faithmeter, name), f"fm.{name}")


def _autodoc_in(module: str, name: str) -> str:
    value = getattr(import_module(f"faithmeter.{module}"), name)
    return _autodoc_block(f"{module}.{name}", value, f"faithmeter.{module}.{name}")


def _autodoc_block(name: str, value: object, title: str) -> str:
    kind = "exception" if isinstance(value, type) and issubclass(value, Exception) else ""
    kind = kind or ("class" if isinstance(value, type) else "function")
    if isinstance(value, type) and issubclass(value, BaseModel):
        block = f"```{{eval-rst}}\n.. autoclass:: faithmeter.{name}(**values)\n```"
        return "\n\n".join([f"### `{title}`", block, *_write_section("", value.model_json_schema())])
    members = "   :members:\n" if kind == "class" else ""
    return f"### `{title}`\n\n```{{eval-rst}}\n.. auto{kind}:: faithmeter.{name}\n{members}```"


def write_cli() -> str:
    """Return usage, arguments and options of every command, as `--help` prints them."""
    group: Any = typer.main.get_command(app)
    return "\n\n".join(_write_command(name, command) for name, command in group.commands.items())


def _write_command(name: str, command: Any) -> str:
    context = typer.Context(command, info_name=f"faithmeter {name}")
    description, _, example = inspect.cleandoc(command.help).partition("Example: ")
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    options = [
        f"`{option}`\n: {_escape(text)}" for option, text in filter(None, records) if option != "--help"
    ]
    usage = command.get_usage(context).removeprefix("Usage: ")
    parts = [f"## {name}", _escape(description.strip()), f"```text\n{usage}\n```", *options]
    return "\n\n".join([*parts, f"Example:\n\n```bash\n{example.strip()}\n```"] if example else parts)


def write_schema(name: str) -> str:
    """Return the fields of a file from its JSON Schema, those of nested objects in sections of their own."""
    value = schema(name)[0]
    sections = [("", value), *value.get("$defs", {}).items()]
    return "\n\n".join(part for title, section in sections for part in _write_section(title, section))


def _write_section(title: str, section: Schema) -> Iterator[str]:
    if title:
        yield f"### {title}"
        yield _escape(section.get("description", "").partition("\n")[0])
    if "properties" not in section:
        yield f"One of: {_type(section)}."
    required = section.get("required", ())
    for name, field in section.get("properties", {}).items():
        default = json.dumps(field["default"], ensure_ascii=False) if "default" in field else ""
        note = "required" if name in required else f"default `{default}`" if default else "optional"
        text = _escape(field.get("description", "")) or "(no description)"
        yield f"`{name}` ({_type(field)}; {note})\n: {text}"


def _type(field: Schema) -> str:
    """Return the type of a field in words, with its limits."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if alternatives := field.get("anyOf") or field.get("oneOf"):
        return " or ".join(map(_type, alternatives))
    if choices := field.get("enum"):
        return ", ".join(f"`{choice}`" for choice in choices)
    if "const" in field:
        return f"`{field['const']}`"
    if field.get("type") == "array":
        items = field.get("prefixItems") or [field.get("items", {})]
        return "list of " + ", ".join(map(_type, items))
    if isinstance(values := field.get("additionalProperties"), dict):
        return f"table of {_type(values)}"
    limits = [f"{sign} {field[key]}" for key, sign in LIMITS.items() if key in field]
    return ", ".join([field.get("type", "any"), *limits])


LIMITS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}


def write_methods() -> str:
    """Return a table of all methods with their options and defaults."""
    lines = [
        "| method | description | sign | explains again at every step | options |",
        "|---|---|---|---|---|",
    ]
    for name, method in METHODS.items():
        options = ", ".join(f"`{key}={value}`" for key, value in method.defaults.items())
        signed, recursive = ("yes" if value else "no" for value in (method.signed, method.recursive))
        lines.append(f"| `{name}` | {_escape(method.about)} | {signed} | {recursive} | {options} |")
    return "\n".join(lines)


def _escape(text: str) -> str:
    """Return a text without characters that Markdown would read as markup; code stays code."""
    parts = text.split("`")
    for number in range(0, len(parts), 2):
        parts[number] = parts[number].translate({ord(character): f"\\{character}" for character in "*<>[]|$"})
    return "`".join(parts)


CHECKLIST = Path(__file__).parents[2] / "docs" / "paper_checklist.csv"


def write_checklist() -> str:
    """Return the number of statements of the paper by status, and a table of all."""
    with CHECKLIST.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    counts = Counter(row["status"] for row in rows)
    lines = [
        f"{len(rows)} statements: "
        + ", ".join(f"{count} {status}" for status, count in counts.items())
        + ".",
        "",
        "| | section | statement | where | | why |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        where = " ".join(_place(name) for name in row["where"].split())
        cells = (row["number"], row["section"], row["statement"], where, row["status"], row["why"])
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines)


def _place(name: str) -> str:
    """Return a name of the code, or a link to the claims."""
    module, _, attribute = name.partition(":")
    if module == "claim":
        return f"[({attribute})](results.md#claims)"
    return f"`{module.removeprefix('faithmeter.')}.{attribute}`"


GENERATED: dict[str, Callable[[], str]] = {
    "api": write_api,
    "cli": write_cli,
    "methods": write_methods,
    "checklist": write_checklist,
    **{f"{name}-file": partial(write_schema, name) for name in ("grid", "task", "record")},
}
"""Parts of pages that `<!-- generated: NAME -->` stands for."""

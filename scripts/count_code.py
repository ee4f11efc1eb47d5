"""Measure the size and density of the package: the table of sizes that the design sets as its compass.

    python scripts/count_code.py [ROOT] [--json]

A line of code is one that holds a token of Python: no docstring, no comment, no blank line. Words are those
of README.md and docs/*.md (not docs/notebooks), split at white space, as a reader meets them: code blocks are
left out, tables and inline code are counted.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

PARAMETERS = 6
"""More than this many parameters of one function are listed."""
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)


@dataclass
class Count:
    """What is counted in one source text."""

    code: int = 0
    comments: int = 0
    walruses: int = 0
    comprehensions: int = 0
    parameters: dict[str, int] = field(default_factory=dict)
    """Functions with more than `PARAMETERS` parameters, by qualified name."""


def count_source(text: str) -> Count:
    """The counts of one module."""
    tree = ast.parse(text)
    code: set[int] = set()
    comments: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        if token.type not in LAYOUT:
            code.update(range(token.start[0], token.end[0] + 1))
    nodes = list(ast.walk(tree))
    return Count(
        code=len(code - _docstring_lines(nodes)),
        comments=len(comments),
        walruses=sum(isinstance(node, ast.NamedExpr) for node in nodes),
        comprehensions=sum(isinstance(node, COMPREHENSIONS) for node in nodes),
        parameters=_long_functions(tree),
    )


def _docstring_lines(nodes: Iterable[ast.AST]) -> set[int]:
    """Lines of strings that stand as a statement: docstrings, and the strings below attributes."""
    lines: set[int] = set()
    for node in nodes:
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def _long_functions(node: ast.AST, prefix: str = "") -> dict[str, int]:
    """Functions and methods with too many parameters; `self` and `cls` are none."""
    found: dict[str, int] = {}
    for child in ast.iter_child_nodes(node):
        name = prefix
        if isinstance(child, ast.ClassDef):
            name = f"{prefix}{child.name}."
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{prefix}{child.name}."
            args = child.args
            names = [arg.arg for arg in [*args.posonlyargs, *args.args, *args.kwonlyargs]]
            number = sum(arg not in ("self", "cls") for arg in names)
            if number > PARAMETERS:
                found[name[:-1]] = number
        found |= _long_functions(child, name)
    return found


def count_words(text: str) -> int:
    """Words of a Markdown text without its fenced blocks of code."""
    return len(FENCE.sub("", text).split())


def count_public(text: str) -> int:
    """The number of names that `__init__` imports under their own names, by which it exports them."""
    aliases = [
        alias
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    return sum(alias.asname == alias.name for alias in aliases)


def count_project(root: Path) -> dict[str, object]:
    """All figures of a checkout."""
    package = root / "src" / "faithmeter"
    total = Count()
    modules: Counter[str] = Counter()
    files = 0
    for path in sorted(package.rglob("*.py")):
        files += 1
        where = path.relative_to(package)
        if where.parts[0] != "cli" and path.stem not in ("__init__", "__main__"):
            modules[path.stem] += 1
        one = count_source(path.read_text(encoding="utf-8"))
        total.code += one.code
        total.comments += one.comments
        total.walruses += one.walruses
        total.comprehensions += one.comprehensions
        total.parameters |= {f"{where}:{name}": number for name, number in one.parameters.items()}
    pages = [path for path in (root / "README.md", *sorted((root / "docs").glob("**/*.md"))) if path.exists()]
    built = ("notebooks", "_build")
    prose = [path for path in pages if not set(built) & set(path.relative_to(root).parts)]
    per_thousand = 1000 / max(total.code, 1)
    return {
        "code lines": total.code,
        "modules": files,
        "module names twice": sorted(name for name, number in modules.items() if number > 1),
        "comment lines per 1,000 of code": round(total.comments * per_thousand, 1),
        "walruses": total.walruses,
        "comprehensions per 1,000 of code": round(total.comprehensions * per_thousand, 1),
        "most parameters of a function": max(total.parameters.values(), default=0) or f"≤ {PARAMETERS}",
        f"functions of more than {PARAMETERS} parameters": total.parameters,
        "public names": count_public((package / "__init__.py").read_text(encoding="utf-8")),
        "words in README and docs": sum(count_words(path.read_text(encoding="utf-8")) for path in prose),
    }


def write_table(figures: dict[str, object]) -> str:
    """One table in Markdown; lists by their length, with the entries below."""
    rows = ["| | |", "|---|---:|"]
    details: list[str] = []
    for name, value in figures.items():
        if isinstance(value, list | dict):
            rows.append(f"| {name} | {len(value)} |")
            if isinstance(value, dict):
                ranked = sorted(value.items(), key=lambda item: (-item[1], item[0]))
                details += ["", f"{name}:", *(f"- {key}: {number}" for key, number in ranked)]
            else:
                details += ["", f"{name}: " + ", ".join(value)]
        else:
            rows.append(f"| {name} | {value:,} |" if isinstance(value, int) else f"| {name} | {value} |")
    return "\n".join(rows + details)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    figures = count_project(options.root)
    text = json.dumps(figures, indent=1, ensure_ascii=False) if options.json else write_table(figures)
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()

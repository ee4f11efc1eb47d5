"""Scores that were computed elsewhere, as a method: from Python values or a jsonl file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import cast

from torch import Tensor

from ..data.rows import unboxed
from ..data.table_files import jsonl
from ..errors import InputError
from ..models.alignment import TextScores, align
from ..models.evaluator import Evaluator
from ..models.tokens import Batch
from .registry import METHODS, Method, require_name

Key = int | str | tuple[str, str]
"""Row number of a text in its split, the text itself, or text and context."""
OwnScores = Mapping[Key, TextScores] | Sequence[TextScores]
"""Scores of each text, see `own_scores`."""
IN_MEMORY = "given in Python"
"""Origin of scores that no file holds."""


@dataclass(frozen=True)
class Lookup:
    """Function of a method whose scores are known before."""

    name: str
    scores: Mapping[Key, TextScores]

    def __call__(self, clf: Evaluator, batch: Batch, labels: Tensor) -> Tensor:
        return align(batch, [self.of_text(batch, place) for place in range(len(batch))])

    def of_text(self, batch: Batch, place: int) -> TextScores:
        """Return the scores of one text of a batch; raise an InputError if it has none."""
        row, text = int(batch.index[place]), batch.texts[place]
        for key in (row, (text, batch.layouts[place].pair or ""), text):
            if key in self.scores:
                return self.scores[key]
        raise InputError(
            f"{self.name} has no scores for text {row} ({text!r:.60}); expected its row number or the text "
            "itself: add it, or measure fewer texts (limit)"
        )

    def require_known(self, texts: Sequence[str], contexts: Sequence[str]) -> None:
        """Raise an InputError if there are scores for a row or text that is not among these."""
        known: set[Key] = {*range(len(texts)), *texts, *zip(texts, contexts, strict=True)}
        for key in self.scores:
            if key not in known:
                what = f"row {key}" if isinstance(key, int) else f"the text {key!r:.60}"
                raise InputError(
                    f"{self.name} has scores for {what}, which is not among the {len(texts)} test texts; "
                    "remove it, or correct the text"
                )


def own_scores(name: str, scores: OwnScores | str | Path, *, signed: bool = True) -> Method:
    """Return a method whose scores were computed elsewhere.

    Each text is explained once: the scores of a masked text are not known, so the method is not recursive.

    Args:
        name: Name of the method in tables and reports.
        scores: By row number in the split or by text, the scores of a text as `align` takes them: a number
            for each token or word, or spans (start, end, score). A list has those of row 0, 1, …; a path
            names a jsonl file with `{"row": 0, "scores": […]}` or `{"text": "…", "scores": […]}` in each
            line, in pairs with `"context"`.
        signed: False if scores only rank importance.

    Returns:
        A method for `explain`, `erase` and `measure`.

    Raises:
        InputError: The file cannot be read, or a row or text occurs twice.

    Example:
        >>> mine = own_scores("mine", {text: [0.1] * len(text.split())})
        >>> fm.explain(clf, clf.encode([text], [pair]), labels, mine).max().item()
        0.1
    """
    require_name(name)
    path = scores if isinstance(scores, str | Path) else None
    rows = _read(Path(path)) if path is not None else _as_mapping(cast(OwnScores, scores), name)
    # keys as they are: row 0 and the text "0" are different texts
    content = json.dumps([(key, unboxed(values)) for key, values in rows.items()], default=str)
    return Method(
        name,
        Lookup(name, rows),
        recursive=False,
        signed=signed,
        about="scores that were computed elsewhere; each text is explained once, not again at every step",
        source=sha256(content.encode()).hexdigest()[:12],  # other scores are another method to the store
        cost=lambda tokens: 0,
        by_default=False,
        scores=IN_MEMORY if path is None else str(path),
    )


def register_scores(entries: Sequence[str]) -> list[Method]:
    """Register the scores of `FILE` or `NAME=FILE` for this process; the default name is the file's.

    Raises:
        InputError: Two have the same name, or one has that of another method.
    """
    methods: dict[str, Method] = {}
    for entry in entries:
        name, equals, path = entry.rpartition("=")
        method = own_scores(name if equals else Path(path).name.partition(".")[0], path)
        # scores of the same name are those of an earlier call in this process, and are replaced
        taken = method.name in METHODS and not METHODS[method.name].scores
        if taken or method.name in methods:
            raise InputError(
                f"--scores {entry}: a method {method.name!r} exists already; name yours: --scores NAME={path}"
            )
        methods[method.name] = method
    METHODS.update(methods)
    return [*methods.values()]


def _as_mapping(scores: OwnScores, name: str) -> Mapping[Key, TextScores]:
    if isinstance(scores, Mapping):
        return scores
    rows = unboxed(scores)
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        raise InputError(f"scores of {name} are {rows!r:.60}; expected a list for each text")
    return dict(enumerate(rows))


def _read(path: Path) -> dict[Key, TextScores]:
    """Read scores by row number or text from a jsonl file."""
    rows: dict[Key, TextScores] = {}
    for record in jsonl(path, ["scores"]):
        values, place = record.values, record.place
        if ("row" in values) == ("text" in values):
            raise InputError(f"{place}: expected either 'row', the number of a text, or 'text'")
        kind = "row" if "row" in values else "text"
        # not isinstance: true is no row number
        if type(values[kind]) is not (int if kind == "row" else str):
            raise InputError(f"{place}: {kind!r} is {values[kind]!r:.60}; expected a whole number or a text")
        key: Key = values[kind]
        if "context" in values:
            context = values["context"]
            if kind == "row" or not isinstance(context, str):
                raise InputError(
                    f"{place}: 'context' is {context!r:.60}; expected the second text beside 'text', or none"
                )
            key = (values["text"], context)
        if key in rows:
            raise InputError(f"{place}: {kind} {values[kind]!r:.60} a second time; expected it once")
        if not isinstance(values["scores"], list):
            raise InputError(f"{place}: 'scores' is {values['scores']!r:.60}; expected a list")
        rows[key] = values["scores"]
    return rows

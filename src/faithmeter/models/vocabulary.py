"""How well a tokenizer knows the words of a text, such as one in a language that the model never saw."""

from __future__ import annotations

import re
from unicodedata import east_asian_width

from torch import Tensor

from .tokens import Layout

SHORTEST = 4
"""Letters of the shortest word that counts: shorter ones may well be read letter by letter."""


def share_unread(layout: Layout, ids: Tensor, unknown: int | None) -> float:
    """Return the share of a text's words that its tokens do not contain, as a fraction.

    Such a word has an unknown token, or is read letter by letter. Scripts whose letters are words, such as
    Chinese, are left out.

    Args:
        layout: The text with the positions of its explained tokens.
        ids: Ids of these tokens, [n].
        unknown: Id of the tokenizer's unknown token; None if it has none.
    """
    words = []
    for match in re.finditer(r"[^\W\d_]+", layout.text):
        wide = any(east_asian_width(letter) in "WF" for letter in match.group())
        if len(match.group()) >= SHORTEST and not wide:
            words.append(match.span())
    unread = read = 0
    for start, stop in words:
        inside = [at for at, (left, right) in enumerate(layout.spans) if left < stop and right > start]
        if not inside:  # beyond the model's limit
            continue
        read += 1
        letter_by_letter = len(inside) >= stop - start
        unread += letter_by_letter or any(int(ids[at]) == unknown for at in inside)
    return unread / read if read else 0.0

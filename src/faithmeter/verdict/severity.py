"""One reason to doubt a measurement, and how severe reasons are."""

from __future__ import annotations

from dataclasses import dataclass

BAD, CAUTION, NOTE = "bad", "caution", "note"
"""Severities of doubts. Bad: do not trust the areas. Caution: they have a limit. Note: good to know."""
SEVERITIES = (BAD, CAUTION, NOTE)


@dataclass(frozen=True)
class Doubt:
    """Reason to doubt a measurement.

    Attributes:
        kind: Name of the rule, such as `outside`.
        severity: `bad`, `caution` or `note`.
        methods: The methods concerned; empty means all.
        text: The reason in one line of plain words.
    """

    kind: str
    severity: str
    methods: tuple[str, ...]
    text: str

    def concerns(self, method: str) -> bool:
        return not self.methods or method in self.methods

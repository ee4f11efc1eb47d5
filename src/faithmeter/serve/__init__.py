"""Web page and JSON API that mask, explain and measure one text at a time; here, their limits."""

from __future__ import annotations

from dataclasses import dataclass

MAX_METHODS = 20
MAX_METHOD_CHARACTERS = 100
MAX_LABEL_CHARACTERS = 1000
MAX_MASKED_TOKENS = 10**5
MAX_TOKEN_NUMBER = 10**6
MAX_ORDERS = 1000
MAX_SEED = 2**31 - 1
CHARACTERS_PER_WORD = 20
"""Characters allowed per allowed word, because some scripts put no spaces between words."""
ESCAPED_BYTES = 12
"""Size of a character that JSON escapes as a surrogate pair."""


@dataclass(frozen=True)
class Limits:
    """Limits on each request and on the queue of each worker."""

    max_words: int = 1000
    max_evaluations: int = 50_000
    max_queued: int = 56  # jobs, the running one included; two workers need fewer than MAX_CONNECTIONS
    max_quick_evaluations: int = 256  # longer jobs go to the worker for long jobs

    @property
    def max_characters(self) -> int:
        return self.max_words * CHARACTERS_PER_WORD

    @property
    def max_body_bytes(self) -> int:
        """Maximum size of a request: the longest text and context, fully escaped, plus 64 KiB."""
        return 2 * ESCAPED_BYTES * self.max_characters + 2**16  # text and pair, then methods and masks

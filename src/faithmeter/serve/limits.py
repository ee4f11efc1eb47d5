"""Limits of the API, the one place where they are defined: page, documentation and options read them."""

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
"""Limits the characters of a text by its words: some scripts put no spaces between words."""
ESCAPED_BYTES = 12
"""Bytes of a character that JSON writes as two escaped surrogates."""


@dataclass(frozen=True)
class Limits:
    """Limits of one server: of each request, and of the queue of each worker."""

    max_words: int = 1000
    max_evaluations: int = 50_000
    max_queued: int = 56  # jobs, the running one included; two workers need fewer than MAX_CONNECTIONS
    max_quick_evaluations: int = 256  # longer jobs go to the worker for long jobs

    @property
    def max_characters(self) -> int:
        return self.max_words * CHARACTERS_PER_WORD

    @property
    def max_body_bytes(self) -> int:
        """Size of a request with the longest text and context, every character escaped."""
        return 2 * ESCAPED_BYTES * self.max_characters + 2**16

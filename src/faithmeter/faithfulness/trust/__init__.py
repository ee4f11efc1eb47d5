"""When to doubt a measurement, and the verdict: one set of rules and words for every surface."""

from .evidence import (
    MIN_ORDERS,
    MIN_TEXTS,
    ROUNDING,
    Area,
    Evidence,
    MethodEvidence,
    ProbeEvidence,
    TaskEvidence,
    TextEvidence,
    TextMethodEvidence,
    can_reject,
    choose_test,
)
from .rules import BAD, CAUTION, NOTE, RULES, STEP_WARNING, Doubt, doubts
from .verdict import GOOD, LIMITS, QUESTIONS, Answer, Verdict, describe_unmeasured, format_area, verdict

__all__ = [
    "BAD",
    "CAUTION",
    "GOOD",
    "LIMITS",
    "MIN_ORDERS",
    "MIN_TEXTS",
    "NOTE",
    "QUESTIONS",
    "ROUNDING",
    "RULES",
    "STEP_WARNING",
    "Answer",
    "Area",
    "Doubt",
    "Evidence",
    "MethodEvidence",
    "ProbeEvidence",
    "TaskEvidence",
    "TextEvidence",
    "TextMethodEvidence",
    "Verdict",
    "can_reject",
    "choose_test",
    "describe_unmeasured",
    "doubts",
    "format_area",
    "verdict",
]

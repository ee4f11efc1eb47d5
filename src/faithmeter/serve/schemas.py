"""Requests and responses of the API; results have the fields that `--json` prints on the command line."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from ..config import UnitName
from ..verdict.evidence import MIN_ORDERS
from . import (
    MAX_LABEL_CHARACTERS,
    MAX_MASKED_TOKENS,
    MAX_METHOD_CHARACTERS,
    MAX_METHODS,
    MAX_ORDERS,
    MAX_SEED,
    MAX_TOKEN_NUMBER,
)

TEXT = "Mary went to the garden. John moved to the office."
PAIR = "Where is Mary?"

Fraction = Annotated[float, Field(ge=0, le=1)]
MethodName = Annotated[str, Field(min_length=1, max_length=MAX_METHOD_CHARACTERS)]
TokenNumber = Annotated[int, Field(ge=0, le=MAX_TOKEN_NUMBER)]


class TextRequest(BaseModel):
    """Text that the model reads, with a context if the model reads two texts."""

    model_config = ConfigDict(extra="forbid", strict=True)  # strict: true is not a number

    text: str = Field(min_length=1, description="explained text: the one that is masked and scored")
    pair: str | None = Field(None, description="context, for a model that reads two texts")


class ProbeRequest(TextRequest):
    # shown on the page of the API
    model_config = ConfigDict(json_schema_extra={"examples": [{"text": TEXT, "pair": PAIR, "masked": [4]}]})

    masked: list[TokenNumber] = Field(
        [],
        max_length=MAX_MASKED_TOKENS,
        description="numbers of explained tokens; to mask a word, give all its tokens",
    )


class ExplainRequest(TextRequest):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": TEXT, "pair": PAIR, "methods": ["loo-sign", "grad-l2"]}]}
    )

    methods: list[MethodName] = Field(
        ["loo-sign"], min_length=1, max_length=MAX_METHODS, description="names, with options: beam(width=20)"
    )
    label: str | None = Field(
        None,
        max_length=MAX_LABEL_CHARACTERS,
        description="name or number of the explained class; by default the predicted one",
    )
    unit: UnitName = Field("token", description="what is scored and erased as one piece")


class MeasureRequest(ExplainRequest):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": TEXT, "pair": PAIR, "methods": ["loo-sign"], "orders": 50}]}
    )

    orders: int = Field(
        100, ge=MIN_ORDERS, le=MAX_ORDERS, description="number of random orders to compare with"
    )
    step: int = Field(10, ge=1, le=100, description="percent of the text erased in one step")
    seed: int = Field(0, ge=0, le=MAX_SEED, description="seed of the random orders")


class ApiResponse(BaseModel):
    model_config = ConfigDict(extra="forbid")  # the tests compare every answer with its description


class Piece(ApiResponse):
    text: str
    start: int = Field(description="position in `text`, counted in Unicode code points")
    end: int
    tokens: list[int] = Field(description="numbers of its tokens among the explained tokens")


class Doubt(ApiResponse):
    kind: str = Field(description="name of the rule: outside, unchecked, unfaithful, training, …")
    severity: str = Field(description="bad (areas must not be trusted), caution (they have a limit), or note")
    methods: list[str] = Field(description="the methods concerned; empty means all")
    text: str


class Sentence(ApiResponse):
    mood: str = Field(description="good, caution or bad")
    text: str


class Reading(ApiResponse):
    """Text as the model read it; part of every answer."""

    text: str
    pair: str | None
    truncated: bool = Field(description="whether the end was left out, as the text is too long for the model")
    device: str = Field(description="device that the model was evaluated on")
    precision: str = Field(description="data type that it was evaluated in")


class Prediction(Reading):
    """Text and what the model says of it."""

    prediction: str = Field(description="most probable class, or the predicted number")
    probabilities: dict[str, Fraction] = Field(description="empty if the model predicts a number")
    value: float | None = Field(description="predicted number; null if the model chooses a class")


class Checked(ApiResponse):
    """Assumptions of the in-distribution tests, and reasons not to trust an answer."""

    floors: dict[str, Fraction] = Field(description="by test: smallest p-value that it can give")
    trained_with: str = Field(description="masking strategy of the training that the tests assume")
    agreement: float | None = Field(
        description="of an adapted model with the original; null for any other model"
    )
    doubts: list[Doubt] = Field(description="reasons not to trust the answer, as sentences")


class ProbeResponse(Prediction, Checked):
    masked: list[int]
    pvalues: dict[str, Fraction] = Field(
        description="by test: is the masked text in distribution? Empty without fitted tests"
    )
    words: list[Piece]
    tokens: list[Piece]
    verdict: Sentence = Field(description="does the model know such texts?")


class Unit(ApiResponse):
    text: str
    start: int
    end: int
    scores: dict[str, float] = Field(
        description="by method; negative scores of signed methods speak against the label"
    )


class ExplainResponse(Prediction):
    label: str
    methods: list[str]
    words: list[Unit]
    tokens: list[Unit]


class Erasure(ApiResponse):
    probability: list[float] = Field(
        description="probability of the label, or the predicted number, at each of `percents`"
    )
    pvalues: dict[str, list[Fraction]]
    p: dict[str, Fraction] = Field(
        description="by test: are the erased texts in distribution? All steps below 100 % together"
    )
    acu: float = Field(description="area between this curve and the mean of the random orders")
    racu: float | None = Field(
        description="`acu` relative to a curve that falls at once; null where undefined"
    )
    chance: Fraction = Field(description="fraction of random orders that do as well")


class MeasureResponse(ExplainResponse, Checked):
    percents: list[int]
    orders: int
    quantity: str = Field(description="what the curves show: probability (of the label) or number")
    mean: list[float] = Field(description="mean of the random orders")
    lower: list[float] = Field(description="5th percentile of the random orders")
    upper: list[float] = Field(description="95th percentile of the random orders")
    erasures: dict[str, Erasure] = Field(description="by method")
    unread: Fraction = Field(description="share of the words that the tokenizer does not know")
    verdicts: dict[str, Sentence] = Field(description="by method: is it faithful for this text?")
    summary: Sentence = Field(description="the answer in one sentence")


class Example(ApiResponse):
    text: str
    pair: str | None
    label: str | None = Field(description="true class or number")


class MethodInfo(ApiResponse):
    name: str
    about: str
    signed: bool = Field(description="whether scores can be negative, meaning evidence against the label")


class ModelResponse(ApiResponse):
    name: str
    version: str = Field(description="version of faithmeter")
    labels: list[str]
    predicts_number: bool = Field(description="whether the model predicts a number instead of a class")
    task: str | None
    explained: str | None = Field(description="name of the explained column")
    context: str | None = Field(description="name of the context column; null if the task has none")
    tests: list[str] = Field(description="fitted in-distribution tests")
    methods: list[MethodInfo]
    examples: list[Example]
    max_words: int
    max_evaluations: int


class Problem(BaseModel):
    detail: str = Field(description="what was given, what is expected, and what to do next, in one line")

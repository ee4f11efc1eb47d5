"""What the API takes and gives. Results have the same shape as `--json` of the command line."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

TEXT = "Mary went to the garden. John moved to the office."
PAIR = "Where is Mary?"

Share = Annotated[float, Field(ge=0, le=1)]
MethodName = Annotated[str, Field(min_length=1, max_length=100)]
TokenNumber = Annotated[int, Field(ge=0, le=10**6)]


class Asked(BaseModel):
    """A text for the model to read."""

    model_config = ConfigDict(extra="forbid", strict=True)  # true is no number

    text: str = Field(min_length=1, description="the explained text: the one that is masked and scored")
    pair: str | None = Field(None, description="the context, where the model reads two texts")


class ProbeRequest(Asked):
    model_config = ConfigDict(json_schema_extra={"examples": [{"text": TEXT, "pair": PAIR, "masked": [4]}]})

    masked: list[TokenNumber] = Field(
        [], max_length=10**5, description="numbers of explained tokens; to mask a word, give all its tokens"
    )


class ExplainRequest(Asked):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": TEXT, "pair": PAIR, "methods": ["loo-sign", "grad-l2"]}]}
    )

    methods: list[MethodName] = Field(["loo-sign"], min_length=1, max_length=20)
    label: str | None = Field(
        None, max_length=1000, description="a class's name or number; without one, the predicted class"
    )


class MeasureRequest(ExplainRequest):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": TEXT, "pair": PAIR, "methods": ["loo-sign"], "orders": 50}]}
    )

    orders: int = Field(100, ge=20, le=1000, description="random orders to compare with")
    step: int = Field(10, ge=1, le=100, description="percents erased at a time")
    seed: int = Field(0, ge=0, lt=2**31, description="random orders are drawn from it")


class Given(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Piece(Given):
    text: str
    start: int = Field(description="in `text`, counted in Unicode code points")
    end: int
    tokens: list[int] = Field(description="numbers of its tokens among the explained ones")


class Doubt(Given):
    kind: str = Field(description="unfaithful, outside (of the distribution) or unchecked")
    method: str | None
    text: str


class ProbeResponse(Given):
    text: str
    pair: str | None
    truncated: bool = Field(description="the text is longer than the model can read: its end was left out")
    masked: list[int]
    prediction: str
    probabilities: dict[str, Share]
    pvalues: dict[str, Share] = Field(
        description="is the text, masked as it is, in distribution? By test; none where no task is known"
    )
    floors: dict[str, Share] = Field(description="the smallest p-value that each test could give")
    words: list[Piece]
    tokens: list[Piece]
    doubts: list[Doubt] = Field(description="why not to trust it, in plain words")


class Unit(Given):
    text: str
    start: int
    end: int
    scores: dict[str, float] = Field(description="by method; of a signed one, negative speaks against")


class ExplainResponse(Given):
    text: str
    pair: str | None
    truncated: bool
    label: str
    prediction: str
    probabilities: dict[str, Share]
    methods: list[str]
    words: list[Unit]
    tokens: list[Unit]


class Erasure(Given):
    probability: list[Share] = Field(description="of the label, at each percent erased")
    pvalues: dict[str, list[Share]]
    p: dict[str, Share] = Field(
        description="is the erased text in distribution? The steps below 100 % together, by test"
    )
    acu: float = Field(description="area between the mean of the random orders and this curve")
    racu: float | None = Field(description="the same as a share of what is possible; null where undefined")
    chance: Share = Field(description="share of random orders that do as well")


class MeasureResponse(Given):
    text: str
    pair: str | None
    label: str
    percents: list[int]
    orders: int
    mean: list[Share] = Field(description="of the label's probability over the random orders")
    lower: list[Share] = Field(description="5 % of the random orders are below")
    upper: list[Share] = Field(description="5 % are above")
    floors: dict[str, Share] = Field(description="the smallest p-value that each test could give")
    methods: dict[str, Erasure]
    doubts: list[Doubt] = Field(description="what must not be trusted, in plain words")


class Example(Given):
    text: str
    pair: str | None
    label: str | None = Field(description="the true class")


class MethodInfo(Given):
    name: str
    about: str
    signed: bool = Field(description="negative scores speak against the label; if not, there are none")


class ModelResponse(Given):
    name: str
    version: str = Field(description="of faithmeter")
    labels: list[str]
    task: str | None
    explained: str | None = Field(description="what the task calls the explained text")
    context: str | None = Field(description="what it calls the context; null where there is none")
    tests: list[str] = Field(description="of whether a text is in distribution; none without a task")
    methods: list[MethodInfo]
    examples: list[Example]
    max_words: int
    max_evaluations: int


class Problem(BaseModel):
    detail: str = Field(description="what was wrong, what was expected, and what to do next")

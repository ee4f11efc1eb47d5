"""Definitions of the tasks: the sixteen of the paper, and five more."""

from __future__ import annotations

from .stories import STORY_COLUMNS
from .task import Columns, Files, Hub, Task

_ACCURACY = (("accuracy",), "accuracy")
_MACRO = (("accuracy", "macro_f1"), "macro_f1")
_MICRO = (("accuracy", "micro_f1"), "micro_f1")
_MATTHEWS = (("accuracy", "matthews"), "matthews")
_EITHER = (("accuracy", "macro_f1"), "accuracy")

_ENTAILMENT = ("entailment", "not_entailment")
_NLI = ("entailment", "neutral", "contradiction")
_DIAGNOSIS = ("negative", "positive")
_PLACES = ("garden", "hallway", "kitchen", "office", "bedroom", "bathroom")
_TSV = ("train.tsv", "dev.tsv")
_SNLI = ("snli_1.0_train.jsonl", "snli_1.0_dev.jsonl", "snli_1.0_test.jsonl")
_MSR = ("msr_paraphrase_train.txt|train.tsv", "dev_ids.tsv|dev.tsv")
_IMDB = ("aclImdb_v1.tar.gz|aclImdb/train|train", "aclImdb_v1.tar.gz|aclImdb/test|test")
_MIMIC = ("NOTEEVENTS.csv.gz|NOTEEVENTS.csv", "DIAGNOSES_ICD.csv.gz|DIAGNOSES_ICD.csv")
_ESNLI = ("esnli_train_1.csv", "esnli_train_2.csv", "esnli_dev.csv", "esnli_test.csv")
_HATEXPLAIN = ("dataset.json", "post_id_divisions.json")
_SPANS = Columns("text", rationale="spans")
_GOLD = Columns("sentence1", "gold_label", "sentence2")
_JSONL = ("train.jsonl", "val.jsonl")
_THREE = ("train", "validation", "test")
_BINARY = ("0", "1")


def _glue(config: str) -> Hub:
    return Hub("nyu-mll/glue", config, key="idx")


def _super_glue(config: str) -> Hub:
    return Hub("aps/super_glue", config, key="idx")


def _babi(number: int, name: str) -> Task:
    names = (f"qa{number}_{name}_train.txt", f"qa{number}_{name}_test.txt")
    folders = ("bAbI/en-10k", "en-10k", "tasks_1-20_v1-2/en-10k", "bAbI")
    return Task(
        f"bAbI-{number}",
        "paragraph",
        _PLACES,
        "question",
        *_MICRO,
        20,
        0.5,
        label="answer",
        official=("train", "test"),
        files=Files("babi", folders, names, STORY_COLUMNS),
    )


def _mimic(name: str) -> Task:
    return Task(
        name,
        "text",
        _DIAGNOSIS,
        None,
        *_MACRO,
        20,
        label="diagnosis",
        official=_THREE,
        files=Files("mimic", ("MIMIC", "mimic", "mimiciii/1.4"), (*_MIMIC, f"{name.lower()}.csv")),
    )


_ALL = (
    Task("RTE", "sentence1", _ENTAILMENT, "sentence2", *_ACCURACY, 30,
         files=Files("tables", ("RTE",), _TSV), hub=_glue("rte")),
    Task("SNLI", "premise", _NLI, "hypothesis", *_EITHER, 10, official=_THREE,
         files=Files("tables", ("SNLI", "snli_1.0"), _SNLI, _GOLD, unlabeled="-"),
         hub=Hub("stanfordnlp/snli")),
    Task("MNLI", "premise", _NLI, "hypothesis", *_ACCURACY, 10, official=("train", "validation_matched"),
         files=Files("tables", ("MNLI",), ("train.tsv", "dev_matched.tsv"), _GOLD),
         hub=_glue("mnli")),
    Task("QNLI", "sentence", _ENTAILMENT, "question", *_ACCURACY, 20,
         files=Files("tables", ("QNLI",), _TSV), hub=_glue("qnli")),
    Task("CB", "premise", ("entailment", "contradiction", "neutral"), "hypothesis", *_MACRO, 50,
         files=Files("tables", ("CB",), _JSONL, key="idx"), hub=_super_glue("cb")),
    Task("MRPC", "sentence1", ("not_equivalent", "equivalent"), "sentence2", *_MACRO, 20,
         files=Files("mrpc", ("MRPC",), _MSR, Columns("#1 String", "Quality", "#2 String"), codes=_BINARY),
         hub=_glue("mrpc")),
    Task("QQP", "question1", ("not_duplicate", "duplicate"), "question2", *_MACRO, 10,
         files=Files("tables", ("QQP",), _TSV, Columns("question1", "is_duplicate", "question2"),
                     codes=_BINARY, drop_short=True),
         hub=_glue("qqp")),
    Task("SST2", "sentence", ("negative", "positive"), None, *_EITHER, 10,
         files=Files("tables", ("SST-2", "SST2"), _TSV, codes=_BINARY), hub=_glue("sst2")),
    Task("IMDB", "text", ("neg", "pos"), None, *_MACRO, 10, official=("train", "test"),
         files=Files("imdb", ("IMDB",), _IMDB),
         hub=Hub("stanfordnlp/imdb", note="the published split depends on file names, which the hub lacks; "
                                          "row numbers are used instead")),
    _mimic("Anemia"),
    _mimic("Diabetes"),
    Task("CoLA", "sentence", ("unacceptable", "acceptable"), None, *_MATTHEWS, 15,
         files=Files("tables", ("CoLA",), _TSV, None, ("source", "label", "mark", "sentence"), _BINARY),
         hub=_glue("cola")),
    Task("BoolQ", "passage", ("False", "True"), "question", *_ACCURACY, 15,
         files=Files("tables", ("BoolQ",), _JSONL, key="idx"), hub=_super_glue("boolq")),
    _babi(1, "single-supporting-fact"),
    _babi(2, "two-supporting-facts"),
    _babi(3, "three-supporting-facts"),
)  # fmt: skip

TASKS: dict[str, Task] = {task.name: task for task in _ALL}
"""The tasks of the paper by name."""
_EMOTIONS = (
    *("admiration", "amusement", "anger", "annoyance", "approval", "caring", "confusion", "curiosity"),
    *("desire", "disappointment", "disapproval", "disgust", "embarrassment", "excitement", "fear"),
    *("gratitude", "grief", "joy", "love", "nervousness", "optimism", "pride", "realization", "relief"),
    *("remorse", "sadness", "surprise", "neutral"),
)
_MORE = (
    Task("GoEmotions", "text", _EMOTIONS, None, ("micro_f1", "macro_f1"), "micro_f1", 4, official=_THREE,
         files=Files("tables", ("GoEmotions", "goemotions"), ("train.tsv", "dev.tsv", "test.tsv"),
                     Columns("text", "labels"), ("text", "labels", "id"),
                     tuple(map(str, range(len(_EMOTIONS))))),
         kind="multi-label"),
    Task("STS", "sentence1", ("similarity",), "sentence2", ("pearson", "spearman", "r2"), "pearson", 10,
         label="similarity", files=Files("tables", ("STS", "sts"), ("sts-train.csv", "sts-dev.csv")),
         kind="regression"),
    Task("e-SNLI", "premise", _NLI, "hypothesis", epochs=10, official=_THREE,
         files=Files("esnli", ("e-SNLI", "esnli", "dataset"), _ESNLI,
                     Columns("Sentence1", "gold_label", "Sentence2", "spans"))),
    Task("HateXplain", "text", ("hatespeech", "normal", "offensive"), None, *_MACRO, official=_THREE,
         files=Files("hatexplain", ("HateXplain", "Data"), _HATEXPLAIN, _SPANS)),
    Task("movies", "review", ("negative", "positive"), None, *_MACRO, official=_THREE,
         files=Files("eraser", ("movies",), ("train.jsonl", "val.jsonl", "test.jsonl"),
                     _SPANS, codes=("NEG", "POS"))),
)  # fmt: skip
MORE_TASKS: dict[str, Task] = {task.name: task for task in _MORE}
"""Tasks that are not in the paper by name; the last three have rationales. Their files must be given."""

"""Works that explain: leave-one-out, integrated gradients, gradients, beam search, all quick methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from faithmeter.config import BASELINE
from faithmeter.methods import explain
from faithmeter.methods.gradients import target_gradient
from faithmeter.methods.registry import PAPER, parse
from faithmeter.models.evaluator import Evaluator
from faithmeter.models.tokens import Batch

from . import libraries, plain
from .light import BACKWARD, Flops
from .race import OURS, Contender, Work
from .setting import Setting

BEAM = "beam"
QUICK_METHODS = tuple(name for name in PAPER if name != BEAM)
"""Methods of the paper without beam search."""
STEPS = 20
"""Steps of integrated gradients."""


def occlusion(setting: Setting) -> Work:
    """Return leave-one-out on short texts."""
    texts = setting.texts(setting.sizes.occlusion, setting.sizes.short)
    return _occlusion(setting, f"leave-one-out, {len(texts)} short texts", texts, None)


def pairs(setting: Setting) -> Work:
    """Return leave-one-out on short texts with a context each, without the libraries that take no pairs."""
    count, tokens = setting.sizes.pairs, setting.sizes.short
    texts, context = setting.texts(count, tokens), setting.texts(count, tokens, seed=1)
    return _occlusion(setting, f"leave-one-out, {count} pairs", texts, context)


def _occlusion(setting: Setting, name: str, texts: Sequence[str], context: Sequence[str] | None) -> Work:
    clf = setting.clf
    batch, labels = setting.batch(texts, context)
    contenders = [_ours(setting, batch, labels, "loo-sign")]
    contenders.append(_same("plain loop", plain.leave_one_out, setting, batch, labels))
    skipped = _add_captum(contenders, libraries.captum_occlusion, setting, batch, labels)
    if context is None:
        others: dict[str, Callable[..., Callable[[], object]]] = {
            "interpreto": libraries.interpreto_occlusion,
            "shap": libraries.shap_partition,
        }
        _add_libraries(contenders, skipped, others, setting, texts, labels)
    tokens, explained = _lengths(batch), batch.explained.sum(dim=1).tolist()
    flops = sum((1 + count) * Flops(clf)([length]) for count, length in zip(explained, tokens, strict=True))
    return Work(name, contenders, flops, skipped)


def integrated(setting: Setting) -> Work:
    """Return integrated gradients of 20 steps on short texts."""
    texts = setting.texts(setting.sizes.integrated, setting.sizes.short)
    clf, (batch, labels) = setting.clf, setting.batch(texts)
    contenders = [_ours(setting, batch, labels, f"int-grad-sign(steps={STEPS})")]
    contenders.append(_same("plain loop", plain.integrated_gradient, setting, batch, labels))
    skipped = _add_captum(contenders, libraries.captum_integrated, setting, batch, labels)
    _add_libraries(
        contenders, skipped, {"interpreto": libraries.interpreto_integrated}, setting, texts, labels
    )
    flops = STEPS * BACKWARD * Flops(clf)(_lengths(batch))
    return Work(f"integrated gradients, {STEPS} steps, {len(texts)} short texts", contenders, flops, skipped)


def _add_captum(
    contenders: list[Contender],
    function: Callable[..., Tensor],
    setting: Setting,
    batch: Batch,
    labels: Tensor,
) -> dict[str, str]:
    """Add captum in its fastest setting and in its default; return the reason if it is not installed."""
    if why := libraries.missing("captum"):
        return {"captum": why}
    best = libraries.best_per_pass(function, setting.clf, batch, labels)
    fastest = partial(function, per_pass=best)
    contenders.append(_same(f"captum, best ({best} per pass)", fastest, setting, batch, labels))
    contenders.append(_same("captum, default", function, setting, batch, labels))
    return {}


def gradients(setting: Setting) -> Work:
    """Return input × gradient on short texts."""
    batch, labels = setting.batch(setting.texts(setting.sizes.gradient, setting.sizes.short))
    contenders = [_ours(setting, batch, labels, "inp-grad-sign")]
    contenders.append(_same("plain loop", plain.input_x_gradient, setting, batch, labels))
    contenders.append(
        Contender(
            f"{OURS}, one text in a pass",
            lambda: explain(Evaluator(setting.clf, budget=1), batch, labels, "inp-grad-sign"),
            same_scores=True,
        )
    )
    skipped = {}
    if why := libraries.missing("captum"):
        skipped["captum"] = why
    else:
        contenders.append(_same("captum", libraries.captum_gradient, setting, batch, labels))
    flops = BACKWARD * Flops(setting.clf)(_lengths(batch))
    return Work(f"input × gradient, {len(batch)} short texts", contenders, flops, skipped)


def gradient_norm(setting: Setting) -> Work:
    """Return grad-l2, compared with one forward and backward pass in the same micro-batches."""
    batch, labels = setting.batch(setting.texts(setting.sizes.gradient, setting.sizes.short))
    evaluator = Evaluator(setting.clf)
    _ = evaluator.gram  # computed once for a model

    def one_pass() -> object:
        def work(micro: Batch, items: Tensor) -> tuple[Tensor]:
            words = setting.clf.embed(micro.input_ids).detach()
            return (target_gradient(evaluator, words, micro, labels[items], "logit").sum(dim=(1, 2)),)

        return evaluator.gather(work, batch, torch.arange(len(batch)))

    contenders = [
        Contender(OURS, lambda: explain(evaluator, batch, labels, "grad-l2")),
        Contender("one forward and backward pass", one_pass),
    ]
    flops = BACKWARD * Flops(setting.clf)(_lengths(batch))
    return Work(f"grad-l2, {len(batch)} short texts", contenders, flops)


def beam(setting: Setting) -> Work:
    """Return beam search on very short texts."""
    texts = setting.texts(setting.sizes.beam, setting.sizes.beam_tokens)
    batch, labels = setting.batch(texts)
    evaluator = Evaluator(setting.clf)
    explain(evaluator, batch, labels, BEAM)
    flops = evaluator.evaluations * Flops(setting.clf)(_lengths(batch)) / len(batch)
    contenders = [
        _ours(setting, batch, labels, BEAM),
        Contender("plain loop", lambda: plain.beam_search(setting.clf, batch, labels)),
    ]
    return Work(f"beam search, {len(texts)} texts of {setting.sizes.beam_tokens} tokens", contenders, flops)


def quick_methods(setting: Setting, *, long: bool) -> Work:
    """Return the explanations of all quick methods, which share evaluations, compared with one at a time."""
    sizes = setting.sizes
    count, tokens = (sizes.all_long, sizes.long) if long else (sizes.all_short, sizes.short)
    batch, labels = setting.batch(setting.texts(count, tokens))
    lengths, explained = _lengths(batch), batch.explained.sum(dim=1).tolist()

    def together() -> object:
        evaluator = Evaluator(setting.clf)
        return [explain(evaluator, batch, labels, name) for name in QUICK_METHODS]

    def apart() -> object:
        return [explain(setting.clf, batch, labels, name) for name in QUICK_METHODS]

    operations = 0.0
    for name in QUICK_METHODS:
        if name in (BASELINE, "loo-abs"):  # evaluates nothing, or what loo-sign has evaluated
            continue
        forward = 1.0 if name.startswith("loo") else BACKWARD
        counts = [forward * parse(name).evaluations(each) for each in explained]
        operations += sum(n * Flops(setting.clf)([t]) for n, t in zip(counts, lengths, strict=True))
    size = f"{count} {'long' if long else 'short'} texts" if count > 1 else f"a text of {tokens} tokens"
    contenders = [Contender(OURS, together)]
    if not long:
        contenders.append(Contender(f"{OURS}, nothing shared", apart))
    return Work(f"{len(QUICK_METHODS)} quick methods, {size}", contenders, operations)


def _ours(setting: Setting, batch: Batch, labels: Tensor, method: str) -> Contender:
    # a new evaluator each time, so that nothing is remembered
    return Contender(OURS, lambda: explain(Evaluator(setting.clf), batch, labels, method))


def _same(name: str, run: Callable[..., Tensor], setting: Setting, batch: Batch, labels: Tensor) -> Contender:
    return Contender(name, lambda: run(setting.clf, batch, labels), same_scores=True)


def _add_libraries(
    contenders: list[Contender],
    skipped: dict[str, str],
    makers: dict[str, Callable[..., Callable[[], object]]],
    setting: Setting,
    texts: Sequence[str],
    labels: Tensor,
) -> None:
    """Add the libraries that are installed and take the model; name the others with the reason."""
    for package, make in makers.items():
        if why := libraries.missing(package):
            skipped[package] = why
            continue
        try:
            run = make(setting.clf, texts, labels)
            run()
        except Exception as error:  # a library may not take every model
            skipped[package] = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
        else:
            contenders.append(Contender(package, run))


def _lengths(batch: Batch) -> list[int]:
    lengths: list[int] = batch.attention_mask.sum(dim=1).tolist()
    return lengths

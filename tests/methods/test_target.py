"""The option `of`: the logit, the log-probability or the margin of the label; and the mask gradient."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from faithmeter.methods import METHODS, explain
from faithmeter.models.tokens import Batch
from toy import MASK, LookupClassifier, rows_batch, tiny

WITHOUT_TARGET = ("random", "search", "exhaustive")
WITH_TARGET = [name for name in METHODS if name not in (*WITHOUT_TARGET, "shapley")]  # which needs shapiq


def margins(logits: Tensor) -> Tensor:
    """[B, C]: each class's logit minus the highest of the others, by a plain loop."""
    rows = logits.shape[1]
    others = [logits[:, [j for j in range(rows) if j != c]].max(dim=1).values for c in range(rows)]
    return logits - torch.stack(others, dim=1)


OPTIONS = {
    "int-grad-sign": "steps=3,",
    "int-grad-abs": "steps=3,",
    "beam": "width=2,",
    "ridge": "samples=20,",
}
TRANSFORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "logit": lambda logits: logits,
    "logprob": lambda logits: logits.softmax(dim=1).log(),
    "margin": margins,
}


@pytest.mark.parametrize("of", TRANSFORMS)
@pytest.mark.parametrize("name", WITH_TARGET)
def test_explaining_a_target_is_explaining_the_logit_of_a_model_that_returns_it(name: str, of: str) -> None:
    options = OPTIONS.get(name, "")
    batch, labels = rows_batch([5, 9, 12, 7], [6, 11]), [2, 0]
    scores = explain(tiny(), batch, labels, f"{name}({options}of={of})")
    model = tiny()
    logits = model.logits  # which `logits_at` calls, too
    model.logits = lambda batch: TRANSFORMS[of](logits(batch))  # type: ignore[method-assign]
    torch.testing.assert_close(scores, explain(model, batch, labels, f"{name}({options})"), rtol=0, atol=1e-9)
    if of == "logit":
        assert torch.equal(scores, explain(tiny(), batch, labels, f"{name}({options})")), "the default"


def test_targets_by_hand() -> None:
    """The second word raises the label and its rival alike: the logit falls without it, the margin not.

    Logits of the text: 3, 1, 0; without the first word: 1, 1, 0; without the second: 2, 0, 0.
    """
    clf = LookupClassifier(lambda ids: (2.0 * (5 in ids) + (6 in ids), 1.0 * (6 in ids), 0.0))
    batch = rows_batch([5, 6])
    assert explain(clf, batch, [0], "loo-sign").tolist() == [[0, 2, 1, 0]]
    assert explain(clf, batch, [0], "loo-sign(of=margin)").tolist() == [[0, 2, 0, 0]]
    whole = 3 - math.log(math.e**3 + math.e + 1)
    expected = [whole - (1 - math.log(2 * math.e + 1)), whole - (2 - math.log(math.e**2 + 2))]
    assert explain(clf, batch, [0], "loo-sign(of=logprob)")[0, 1:3].tolist() == pytest.approx(expected)
    assert explain(clf, batch, [1], "loo-abs(of=margin)").tolist() == [[0, 2, 0, 0]]


def test_a_beam_follows_its_target() -> None:
    """Masking the first word lowers the label's logit most, the second lets the rival win."""
    clf = LookupClassifier(
        lambda ids: (2.0 * (5 in ids) + 1.5 * (6 in ids), 3.0 * (5 in ids) - 4.0 * (6 in ids))
    )
    batch = rows_batch([5, 6])
    assert explain(clf, batch, [0], "beam").tolist() == [[0, 2, 1, 0]]
    assert explain(clf, batch, [0], "beam(of=margin)").tolist() == [[0, 1, 2, 0]]


class LinearClassifier:
    """Logits are the sum of the words' worths, and their negative; a mask is worth 0.5."""

    mask_id = MASK
    device = torch.device("cpu")
    worth = torch.tensor([0, 0, 0, 0, 0.5, 1, -2, 0.25], dtype=torch.float64)[:, None]

    def embedding_matrix(self) -> Tensor:
        return self.worth

    def embed(self, ids: Tensor) -> Tensor:
        return self.worth[ids]

    def logits_at(self, embeddings: Tensor, batch: Batch) -> Tensor:
        total = (embeddings[..., 0] * batch.attention_mask).sum(dim=1)
        return torch.stack([total, -total], dim=1)

    def logits(self, batch: Batch) -> Tensor:
        return self.logits_at(self.embed(batch.input_ids), batch)


@pytest.mark.parametrize(("of", "factor"), [("logit", 1), ("margin", 2)])
def test_integrated_gradients_of_a_linear_model_from_masks_are_leave_one_out(of: str, factor: float) -> None:
    """Masking a word replaces its worth by 0.5; one that is masked already keeps it."""
    clf, batch = LinearClassifier(), rows_batch([5, 6, MASK, 7])
    expected = [[0, 0.5 * factor, -2.5 * factor, 0, -0.25 * factor, 0]]
    for name in ("int-grad-sign(baseline=mask,", "loo-sign("):
        assert explain(clf, batch, [0], f"{name}of={of})").tolist() == expected

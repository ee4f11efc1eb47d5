"""Models without a mask token: decoders get one, and padding changes none of their numbers."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch
from fastapi.testclient import TestClient

import faithmeter as fm
from decoders import SIZES, decoder, decoder_tokenizer, save_decoder
from faithmeter.methods import METHODS, adapters, default_methods
from faithmeter.models.classifier import add_embeddings
from faithmeter.models.encoding import add_tokens
from faithmeter.serve.admission import ServedModel
from faithmeter.serve.app import create_app
from toy import WORDS, tiny, word_tokenizer

TEXTS = ["the film was not good", "a story", "very fun music but dull plot and bad actors"]
LABELS = [0, 1, 0]


@pytest.fixture(scope="module", params=["gpt2", pytest.param("llama", marks=pytest.mark.slow)])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a decoder of one kind, and reviews."""
    folder, rng = tmp_path_factory.mktemp(request.param), random.Random(0)
    save_decoder(request.param, folder / "decoder")
    rows = [(" ".join(rng.choices(WORDS, k=rng.randint(3, 8))), "ab"[i % 2]) for i in range(220)]
    (folder / "reviews.csv").write_text("\n".join(["review,stars", *(f"{t},{s}" for t, s in rows)]))
    return folder


@pytest.fixture(scope="module")
def clf(folder: Path) -> fm.Classifier:
    clf = fm.load(folder / "decoder", add_mask_token=True)
    clf.model.double()
    return clf


@pytest.mark.parametrize(
    ("token", "meaning"),
    [
        ("<unk>", "also the unk token"),
        ("<pad>", "also the pad token"),
        ("<s>", "also the bos token"),
        ("</s>", "also the eos token"),
        ("film", "a word of its vocabulary"),
    ],
)
def test_a_mask_token_with_another_meaning_is_refused(token: str, meaning: str) -> None:
    """A masked word would still be read, or be taken for the end of the text."""
    clf = tiny()
    tokenizer = word_tokenizer(mask=token)
    with pytest.raises(fm.InputError, match=f"{token!r}, is {meaning}; expected a token that means nothing"):
        fm.Classifier(clf.model, tokenizer)
    with pytest.raises(fm.InputError, match=meaning):
        fm.MaskingCollator(tokenizer)


@pytest.mark.parametrize("kind", SIZES)
def test_the_new_embeddings_are_the_mean_of_the_others(kind: str) -> None:
    model, tokenizer = decoder(kind), decoder_tokenizer()
    before = model.get_input_embeddings().weight.detach().clone()
    add_tokens(tokenizer, "")
    add_embeddings(model, tokenizer)
    after = model.get_input_embeddings().weight
    assert {tokenizer.mask_token_id, tokenizer.pad_token_id} == {len(before), len(before) + 1}
    assert torch.equal(after[: len(before)], before)
    assert torch.allclose(after[len(before) :], before.mean(dim=0))


def test_a_vocabulary_with_spare_embeddings_is_not_resized() -> None:
    model, tokenizer = decoder("llama"), decoder_tokenizer()
    model.resize_token_embeddings(40)
    words = len(tokenizer)
    add_tokens(tokenizer, "")
    mean = model.get_input_embeddings().weight[:words].mean(dim=0)
    add_embeddings(model, tokenizer)
    assert len(model.get_input_embeddings().weight) == 40
    assert torch.allclose(model.get_input_embeddings().weight[tokenizer.mask_token_id], mean)


def test_a_padding_token_of_its_own_stays(tmp_path: Path) -> None:
    tokenizer = word_tokenizer(mask=None)
    add_tokens(tokenizer, "")
    assert (tokenizer.pad_token, tokenizer.mask_token) == ("<pad>", "[MASK]")


@pytest.mark.parametrize("kind", SIZES)
def test_padding_changes_no_logit(kind: str, tmp_path: Path) -> None:
    clf = fm.load(save_decoder(kind, tmp_path), add_mask_token=True)
    alone = torch.cat([clf.logits(clf.encode([text])) for text in TEXTS])
    assert torch.allclose(clf.logits(clf.encode(TEXTS)), alone, atol=1e-6)


def test_padding_changes_no_number(clf: fm.Classifier) -> None:
    batch, alone = clf.encode(TEXTS), [clf.encode([text]) for text in TEXTS]
    logits = clf.logits(batch)
    assert torch.allclose(logits, torch.cat([clf.logits(one) for one in alone]), atol=1e-6)
    assert logits.std() > 1e-3, "the texts have different logits"
    features = torch.cat([clf.features(one) for one in alone])
    assert torch.allclose(clf.features(batch), features, atol=1e-6)
    for method in METHODS:
        if method not in ("random", "ridge", "shapley"):  # drawn by the row number
            scores = fm.explain(clf, batch, LABELS, method)
            for row, (one, label) in enumerate(zip(alone, LABELS, strict=True)):
                own = fm.explain(clf, one, [label], method)[0]
                assert torch.allclose(scores[row, : len(own)], own, atol=1e-6), method


def test_the_last_token_decides_and_a_mask_there_is_no_padding(clf: fm.Classifier) -> None:
    batch = clf.encode(TEXTS[:2])
    last = torch.zeros_like(batch.explained)
    last[torch.arange(2), batch.attention_mask.sum(dim=1) - 1] = True
    masked = clf.logits(batch.masked(last, clf.mask_id))
    shorter = clf.encode([" ".join(text.split()[:-1]) for text in TEXTS[:2]])
    assert not torch.allclose(masked, clf.logits(shorter)), "the mask is read, not skipped as padding"


@pytest.fixture(scope="module")
def checkpoint(folder: Path) -> Path:
    store = fm.RunStore(folder / "runs")
    own = {"data": str(folder / "reviews.csv"), "text": "review"}
    config = fm.TrainConfig(
        model=str(folder / "decoder"), add_mask_token=True, epochs=1, batch_size=32, label="stars", **own
    )
    fm.train(config, store)
    return store.folder(config)


def test_a_decoder_goes_the_whole_way(faithmeter, checkpoint: Path) -> None:
    """Check, measure, explain, serve after its training."""
    runs = ("-o", checkpoint.parent)
    check = faithmeter("check", checkpoint, "--limit", 10, *runs)
    assert check.code == 0, check.err
    assert "crossfit" in check.out
    measured = faithmeter("measure", checkpoint, "--limit", 10, "-m", "loo-sign", *runs)
    assert measured.code == 0, measured.err
    explained = faithmeter("explain", checkpoint, "the film was fun")
    assert explained.code == 0, explained.err
    clf = fm.load(checkpoint)
    with TestClient(create_app(ServedModel(clf, "decoder")), base_url="http://localhost") as page:
        answer = page.post("/api/probe", json={"text": "the film was fun", "masked": [1]})
    assert answer.status_code == 200
    assert answer.json()["prediction"] in clf.labels


@pytest.mark.slow
def test_a_decoder_has_a_report_and_a_model_card(faithmeter, checkpoint: Path) -> None:
    runs = checkpoint.parent
    for more in (("--complement",), ("--unit", "word")):
        measured = faithmeter("measure", checkpoint, "--limit", 10, *more, "-o", runs)
        assert measured.code == 0, measured.err
    report = faithmeter("report", runs, "-o", runs / "report.html")
    assert report.code == 0, report.err
    page = (runs / "report.html").read_text()
    for words in ("Faithfulness in numbers", "Metrics of other papers", "Are masked texts in distribution?"):
        assert words in page
    for method in default_methods():
        assert f"<code>{method}</code>" in page
    card = faithmeter("report", runs, "--model-card", checkpoint)
    assert card.code == 0, card.err
    assert "model-index:" in (checkpoint / "README.md").read_text()
    for kind in ("rollout", "last"):
        clf = fm.load(checkpoint)
        result = fm.explain_text(clf, TEXTS[2], method=[adapters.attention(kind)], orders=19)
        assert result.erasures[f"attention-{kind}"].acu <= 1


@pytest.mark.slow
def test_a_decoder_is_adapted(tmp_path: Path) -> None:
    rng = random.Random(0)
    save_decoder("gpt2", tmp_path / "decoder")
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(3, 8))) for _ in range(220)]
    (tmp_path / "texts.csv").write_text("\n".join(["text", *texts]))
    config = fm.AdaptConfig(
        model=str(tmp_path / "decoder"),
        add_mask_token=True,
        data=str(tmp_path / "texts.csv"),
        text="text",
        epochs=1,
        batch_size=32,
    )
    store = fm.RunStore(tmp_path / "runs")
    assert 0 <= fm.adapt(config, store).agreement <= 1
    assert fm.load(store.folder(config)).tokenizer.mask_token == "[MASK]"


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("decoder", (), "has no mask token; expected a masked language model such as roberta-base, a train"),
        ("embedded", ("--add-mask-token",), "has the mask token '[MASK]'; leave out --add-mask-token"),
    ],
)
def test_a_mask_token_is_added_where_there_is_none(
    faithmeter, tmp_path: Path, model: str, options: tuple[str, ...], message: str
) -> None:
    save_decoder("gpt2", tmp_path / "decoder")
    place = tmp_path / model if model == "decoder" else model
    result = faithmeter("train", "--model", place, *options, "-o", tmp_path / "runs")
    assert result.code == 2
    assert message in result.err

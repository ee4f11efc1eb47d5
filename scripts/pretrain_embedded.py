"""Pre-train the embedded model: a tiny ModernBERT as a masked language model on generated bAbI stories.

python scripts/pretrain_embedded.py    # takes minutes on one core; writes models/embedded
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import ModernBertConfig, ModernBertForMaskedLM, PreTrainedTokenizerFast

from faithmeter.data import stories
from faithmeter.data.stories import Question

FOLDER = Path(__file__).parents[1] / "src/faithmeter/models/embedded"
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
GRAMMAR = "to the there where is was before . ?"

BATCH = 32
LEARNING_RATE = 2e-3
WARMUP_STEPS = 100
PASS = 0.85  # share of right answers that ends a stage without a fixed number of steps
STAGES = (  # tasks, longest story in statements, steps; the learning rate decays in the last one
    ((1,), 2, None),
    ((1,), 4, None),
    ((1,), 6, None),
    ((1,), 8, None),
    ((1,), 10, None),
    ((1, 1, 2, 3), 12, 4000),
)
LENGTHS = (2, 4, 6, 8, 10, 20, 40, 80, 1000)  # of stories in the final log


def build_tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer: one token per word or punctuation mark, lower case, with BERT's special tokens."""
    verbs = [verb for kind in stories.VERBS.values() for verb in kind]
    words = " ".join([GRAMMAR, *verbs, *stories.ACTORS, *stories.PLACES, *stories.OBJECTS]).lower().split()
    vocabulary = {word: index for index, word in enumerate([*SPECIALS, *dict.fromkeys(words)])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")],
    )
    tokenizer.decoder = decoders.WordPiece(cleanup=True)
    names = {f"{name[1:-1].lower()}_token": name for name in SPECIALS}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=512,
        model_input_names=["input_ids", "attention_mask"],
        **names,
    )


def build_model(tokenizer: PreTrainedTokenizerFast) -> ModernBertForMaskedLM:
    config = ModernBertConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=3,
        num_attention_heads=4,
        global_attn_every_n_layers=1,
        max_position_embeddings=tokenizer.model_max_length,
        # 64 dimensions need larger weights than the default 0.02: the first plateau is left much sooner
        initializer_range=0.1,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.cls_token_id,
        cls_token_id=tokenizer.cls_token_id,
        eos_token_id=tokenizer.sep_token_id,
        sep_token_id=tokenizer.sep_token_id,
        attn_implementation="eager",  # a little faster than sdpa at this size
    )
    return ModernBertForMaskedLM(config)


def examples(tasks: Sequence[int], longest: int, rng: Random) -> Iterator[Question]:
    """Yield questions without end, equally many of each task, on stories of 2 to `longest` statements."""
    while True:
        batches = [stories.generate(task, 1000, seed=rng.getrandbits(63)) for task in tasks]
        questions = [cut(q, rng.randint(2, longest)) for batch in batches for story in batch for q in story]
        rng.shuffle(questions)
        yield from (question for question in questions if question)


def cut(question: Question, length: int) -> Question | None:
    """Return the question with only its last statements, if they hold its supporting facts."""
    dropped = max(0, len(question.story) - length)
    supporting = tuple(fact - dropped for fact in question.supporting)
    if min(supporting) < 0:
        return None
    return replace(question, story=question.story[dropped:], supporting=supporting)


def encode(
    tokenizer: PreTrainedTokenizerFast, questions: Sequence[Question]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return ids, attention and words of the story [B, T], and the answer's place [B]."""
    batch = tokenizer(
        [question.paragraph for question in questions],
        [f"{question.question} {question.answer}" for question in questions],
        padding=True,
        verbose=False,  # longer stories than 512 tokens are fine here: positions are rotary
        return_token_type_ids=True,
        return_special_tokens_mask=True,
        return_tensors="pt",
    )
    story = (batch.token_type_ids == 0) & (batch.special_tokens_mask == 0)
    return batch.input_ids, batch.attention_mask, story, batch.attention_mask.sum(dim=1) - 2


def losses(
    model: ModernBertForMaskedLM,
    tokenizer: PreTrainedTokenizerFast,
    questions: Sequence[Question],
    noise: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Return the masked-LM loss, and whether each answer is right [B].

    Every answer is masked. In odd rows each word of the story is masked too, with a probability drawn from
    U(0, 1). Answers weigh as much as all other masked words together.
    """
    ids, attention, story, places = encode(tokenizer, questions)
    rows = torch.arange(len(ids))
    ratio = torch.rand(len(ids), 1, generator=noise) * (rows % 2)[:, None]
    words = story & (torch.rand(ids.shape, generator=noise) < ratio)
    masked = ids.masked_fill(words, tokenizer.mask_token_id)
    masked[rows, places] = tokenizer.mask_token_id
    logits = model(input_ids=masked, attention_mask=attention).logits  # [B, T, V]
    answers, gold = logits[rows, places], ids[rows, places]
    loss = cross_entropy(answers, gold) + cross_entropy(logits[words], ids[words])
    return loss, answers.argmax(dim=1) == gold


@torch.no_grad()
def answers_right(
    model: ModernBertForMaskedLM, tokenizer: PreTrainedTokenizerFast, questions: Sequence[Question]
) -> list[bool]:
    """Return whether each masked answer is predicted right, with nothing else masked."""
    right = []
    for question in questions:
        ids, attention, _, places = encode(tokenizer, [question])
        masked = ids.clone()
        masked[0, places] = tokenizer.mask_token_id
        logits = model(input_ids=masked, attention_mask=attention).logits
        right.append(bool(logits[0, places].argmax() == ids[0, places]))
    return right


def pretrain(model: ModernBertForMaskedLM, tokenizer: PreTrainedTokenizerFast, *, seed: int) -> Iterator[str]:
    """Train the model in place; yield the log line by line."""
    rng, noise = Random(seed), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.98), weight_decay=0.01)
    start, step = time.perf_counter(), 0
    for tasks, longest, limit in STAGES:
        source = examples(tasks, longest, rng)
        recent: deque[float] = deque(maxlen=50)  # accuracy on the rows whose story is untouched
        for done in range(limit) if limit else itertools.count():
            rate = min(1.0, (step + 1) / WARMUP_STEPS) * (1 - done / limit if limit else 1.0)
            for group in optimizer.param_groups:
                group["lr"] = LEARNING_RATE * rate
            loss, right = losses(model, tokenizer, list(itertools.islice(source, BATCH)), noise)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            step += 1
            recent.append(right[::2].float().mean().item())
            mean = sum(recent) / len(recent)
            passed = not limit and len(recent) == recent.maxlen and mean > PASS
            if passed or step % 500 == 0:
                minutes = (time.perf_counter() - start) / 60
                yield f"{minutes:4.1f} | {step:5} | {longest:2} | {loss.item():.3f} | {mean:.3f}"
            if passed:
                break


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the model goes")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)  # so that the result does not depend on the number of cores
    torch.manual_seed(options.seed)
    tokenizer = build_tokenizer()
    model = build_model(tokenizer)
    print("minutes | step | longest story | loss | answers right")
    for line in pretrain(model, tokenizer, seed=options.seed):
        print(line, flush=True)
    model.eval()
    for task in stories.TASKS:
        fresh = [q for story in stories.generate(task, 1000, seed=options.seed + 1) for q in story]
        by_length: dict[int, list[bool]] = {}
        for question, right in zip(fresh, answers_right(model, tokenizer, fresh), strict=True):
            by_length.setdefault(min(n for n in LENGTHS if n >= len(question.story)), []).append(right)
        shares = [f"≤ {length}: {sum(hits) / len(hits):.3f}" for length, hits in sorted(by_length.items())]
        print(f"task {task}, masked answers right by story length: {', '.join(shares)}")
    model.save_pretrained(options.folder)
    tokenizer.save_pretrained(options.folder)


if __name__ == "__main__":
    main()

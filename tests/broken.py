"""Checkpoints that are broken in many ways, and the message that refuses each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from toy import encoder

WEIGHTS = "model.safetensors"
OLD_TORCH = "|vulnerability issue in `torch.load`" if torch.__version__ < "2.6" else ""
"""Transformers reads no pickles with a torch that could run their code."""


def write(name: str, content: str | bytes) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)

    return change


def settings(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        file = folder / "config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))

    return change


def weights(change: Callable[[str, torch.Tensor], torch.Tensor | None]) -> Callable[[Path], None]:
    def rewrite(folder: Path) -> None:
        changed = {name: change(name, tensor) for name, tensor in load_file(folder / WEIGHTS).items()}
        save_file({name: tensor for name, tensor in changed.items() if tensor is not None}, folder / WEIGHTS)

    return rewrite


def without(pattern: str) -> Callable[[Path], None]:
    return lambda folder: [file.unlink() for file in folder.glob(pattern)]


class Evil:
    """A pickle that would run code when it is read."""

    def __reduce__(self) -> Any:
        return (print, ("code of the pickle ran",))


def pickled(content: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / WEIGHTS).unlink()
        torch.save(content, folder / "pytorch_model.bin")

    return change


BROKEN = {
    "truncated weights": (
        lambda folder: write(WEIGHTS, (folder / WEIGHTS).read_bytes()[:5000])(folder),
        "no model could be loaded from .* SafetensorError",
    ),
    "empty weights": (write(WEIGHTS, ""), "no model could be loaded"),
    "no weights": (without(WEIGHTS), "no file named .*model.safetensors"),
    "config is a list": (write("config.json", "[]"), "could be loaded from"),
    "config is nested": (write("config.json", "[" * 100_000), "RecursionError"),
    "config without type": (write("config.json", "{}"), "Should have a `model_type`"),
    "size is a word": (settings(hidden_size="x"), "expected int, got str|but got str"),
    "negative size": (settings(hidden_size=-4), "negative dimension"),
    "labels in a list": (settings(id2label=["a"]), "could be loaded from"),
    "vocab_size + 8": (settings(vocab_size=33), "other shapes than its config.json says: .*word_embeddings"),
    "one layer more": (
        settings(num_hidden_layers=3),
        "of the encoder .* are missing: .* and 12 more",
    ),
    "tokenizer is empty": (write("tokenizer.json", ""), "no tokenizer could be loaded"),
    "tokenizer is a list": (write("tokenizer.json", "[]"), "no tokenizer could be loaded"),
    "length is a word": (
        write("tokenizer_config.json", '{"model_max_length": "x", "mask_token": "<mask>"}'),
        "could be loaded from",
    ),
    "no tokenizer files": (
        without("*token*"),
        "knows no words: every text would be unknown|no tokenizer could be loaded",
    ),
    "all weights NaN": (weights(lambda _, tensor: tensor * torch.nan), "not finite: .* and 37 more"),
    "one weight infinite": (
        weights(lambda name, tensor: tensor + torch.inf if name.endswith("out_proj.bias") else tensor),
        "not finite: classifier.out_proj.bias",
    ),
    "other shapes": (weights(lambda _, tensor: tensor[..., :1].contiguous()), "other shapes"),
    "pickle with code": (pickled({"a": Evil()}), f"hold more than tensors, and no code is run{OLD_TORCH}"),
    "pickle of a whole model": (pickled(encoder("bert")), f"hold more than tensors{OLD_TORCH}"),
    "no pickle": (
        lambda folder: (without(WEIGHTS)(folder), write("pytorch_model.bin", "x")(folder)),
        "no model could be loaded",
    ),
}

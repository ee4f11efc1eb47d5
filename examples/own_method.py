"""Your own method, measured beside the built-in ones: the length of a word.

python examples/own_method.py CHECKPOINT
faithmeter --import examples/own_method.py measure CHECKPOINT -m word-length
"""

import sys

import torch

import faithmeter as fm


@fm.method("word-length", recursive=False)
def word_length(clf, batch, labels, *, power: int = 1):
    """Number of characters of each token, independent of the model."""
    tokens = [clf.tokenizer.convert_ids_to_tokens(row) for row in batch.input_ids.tolist()]
    return torch.tensor([[len(token) ** power for token in row] for row in tokens], dtype=torch.float64)


if __name__ == "__main__":
    clf = fm.load(sys.argv[1])
    result = fm.measure(clf, fm.task("bAbI-1"), ["word-length", "word-length(power=2)", "grad-l2"], limit=64)
    for method in result.methods:
        print(f"{method:22} ACU {100 * result.acu(method):5.1f} %")

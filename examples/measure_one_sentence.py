"""Measure whether the explanation of one sentence is faithful.

python examples/measure_one_sentence.py CHECKPOINT "a text" ["its context"]
"""

import sys

from rich import print

import faithmeter as fm

clf = fm.load(sys.argv[1])
text, pair = sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None
print(fm.explain_text(clf, text, pair=pair, method=["loo-sign", "grad-l2"], orders=50))

"""A pipeline as in transformers that also explains, and says whether to trust the explanation.

python examples/pipeline.py CHECKPOINT "a text" ["its context"]
"""

import sys

import faithmeter as fm

pipe = fm.pipeline(sys.argv[1], method="loo-sign")
result = pipe({"text": sys.argv[2], "text_pair": sys.argv[3] if len(sys.argv) > 3 else None})
strongest = max(result["explanation"], key=lambda word: word["score"])
print(f"{result['label']} ({result['score']:.1%}), most of all for {strongest['word']!r}")
print(f"ACU {100 * result['acu']:.1f} %, p-value {result['p_value']}, trusted: {result['trusted']}")
print(*result["doubts"], sep="\n")

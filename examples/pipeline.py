"""As in transformers, but with the reasons, and whether they can be trusted.

python examples/pipeline.py CHECKPOINT "a text" ["its context"]
"""

import sys

import faithmeter as fm

pipe = fm.pipeline(sys.argv[1], method="loo-sign")
found = pipe({"text": sys.argv[2], "text_pair": sys.argv[3] if len(sys.argv) > 3 else None})
strongest = max(found["explanation"], key=lambda word: word["score"])
print(f"{found['label']} ({found['score']:.1%}), most of all for {strongest['word']!r}")
print(f"ACU {100 * found['acu']:.1f} %, p-value {found['p_value']}, trusted: {found['trusted']}")
print(*found["doubts"], sep="\n")

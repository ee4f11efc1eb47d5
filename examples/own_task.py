"""Masked fine-tuning of the embedded model on your own data, here forty made-up reviews.

python examples/own_task.py FOLDER
"""

import sys
from pathlib import Path

import faithmeter as fm

folder = Path(sys.argv[1])
reviews = folder / "reviews.csv"
rows = [
    f"the {'apple' if i % 2 else 'milk'} was {'taken' if i % 3 else 'left'},{'fruit' if i % 2 else 'drink'}"
    for i in range(40)
]
reviews.write_text("\n".join(["review,kind", *rows]))

config = fm.TrainConfig(data=str(reviews), text="review", label="kind", epochs=2, learning_rate=1e-3)
record = fm.train(config, fm.RunStore(folder / "runs"))
for line in record.test:
    print(f"masked {line.masking}: accuracy {line.score('accuracy'):.2f}")

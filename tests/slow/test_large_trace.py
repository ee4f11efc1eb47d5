"""A trace of 100,000 texts is read, completed and reported in bounded memory, libraries included."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
TEXTS = 100_000
LIMIT_MB = 1250
"""Memory of the libraries, 800 MB, and of two results: that of the measurement and that of the report."""
WORK = """
import json, random, sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

folder, texts, known = Path(sys.argv[1]), int(sys.argv[2]), 64
sys.path.insert(0, sys.argv[3])
from toy import tiny
import faithmeter as fm
from faithmeter.config import MeasureConfig
from faithmeter.report.page import write
from faithmeter.runs.measured import Origin
from faithmeter.runs.measurements import measure_checkpoint
from faithmeter.measuring.trace import join_traces
from faithmeter.store.traces import Shelf

clf = tiny(labels=2)
clf.model.float().save_pretrained(folder / "model")
clf.tokenizer.save_pretrained(folder / "model")
rng, words = random.Random(0), "the film was not good dull story plot fun music".split()
lines = [" ".join(rng.choices(words, k=8)) + f",{'ab'[i % 2]}" for i in range(texts)]
(folder / "own.csv").write_text("\\n".join(["text,label", *lines]))
store = fm.RunStore(folder / "runs")


def run(limit):
    task = fm.own_task(folder / "own.csv", text="text", label="label", all_test=True)
    config = MeasureConfig(methods=("grad-l2",), limit=limit, classes="a=LABEL_0,b=LABEL_1")
    return measure_checkpoint(folder / "model", config, store, Origin(own=task))


run(known)
[subject] = (folder / "runs" / "traces").iterdir()
shelf = Shelf(subject)
[frame] = shelf.read_texts(known)
names = [path.name for path in subject.iterdir() if path.is_dir() and path.name != "texts"]
ends = [*range(known, texts - known, 100 * known), (texts - known) // known * known]
for start, stop in zip(ends, ends[1:]):  # made-up slices, as a long run leaves them
    rows, copies = range(start, stop), (stop - start) // known
    shelf.write_texts(pd.concat([frame] * copies, ignore_index=True).assign(row=rows))
    for name in names:
        [trace] = shelf.read_trace(name, known, {}, complement=False)
        part = join_traces([trace] * copies)
        shelf.write_trace(name, {}, replace(part, rows=np.array(rows)), {})
result = run(0)
written = write(store, folder / "report.html")
print(json.dumps({
    "texts": result.texts,
    "made_up": ends[-1] - known,
    "page": written.page.stat().st_size,
    "interval": result.interval("grad-l2", "acu"),
}))
import resource
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, file=sys.stderr)
"""


def test_a_trace_of_100_000_texts_fits_into_memory(tmp_path: Path) -> None:
    tests = Path(__file__).parents[1]
    command = [sys.executable, "-c", WORK, str(tmp_path), str(TEXTS), str(tests)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["texts"] == TEXTS
    assert 0.99 * TEXTS < found["made_up"] < TEXTS - 64, "the others were computed: the rest of a long run"
    _, lower, upper, texts = found["interval"]
    assert texts == TEXTS
    assert lower < upper < lower + 0.02
    assert found["page"] > 10_000
    assert float(done.stderr.splitlines()[-1]) <= LIMIT_MB

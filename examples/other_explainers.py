"""Explainers of other libraries beside the built-in methods: own scores, captum, shap, interpreto, attention.

pip install 'faithmeter[adapters]'
python examples/other_explainers.py CHECKPOINT
"""

import sys

import captum.attr
import interpreto
import shap

import faithmeter as fm
from faithmeter.methods import adapters

clf, task = fm.load(sys.argv[1]), fm.task("bAbI-1")
texts = task.load()["test"]["text"][:32]
capitals = {row: [float(word[0].isupper()) for word in text.split()] for row, text in enumerate(texts)}
ours = {"loo-sign": "loo-sign", "int-grad-sign": "int-grad-sign"}
steps = {"n_steps": 20, "method": "riemann_right"}
others = {
    "captum-lig": adapters.captum(captum.attr.LayerIntegratedGradients, **steps),
    "captum-occlusion": adapters.captum(captum.attr.FeatureAblation),
    "shap-permutation": adapters.shap(shap.explainers.Permutation, recursive=False, silent=True),
    "interpreto-occlusion": adapters.interpreto(interpreto.Occlusion),
    "attention-rollout": adapters.attention("rollout"),
    "attention-last": adapters.attention("last"),
}
result = fm.measure(clf, task, {**ours, **others, "capitals": capitals}, limit=len(texts))
print(result.table().to_string(index=False, float_format="{:.3f}".format))

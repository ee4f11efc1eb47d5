"""Explainers of other libraries beside the built-in methods: own scores, captum, shap, interpreto, attention.

pip install 'faithmeter[adapters]'
python examples/other_explainers.py CHECKPOINT
"""

import sys

import captum.attr
import interpreto
import shap

import faithmeter as fm

clf, task = fm.load(sys.argv[1]), fm.task("bAbI-1")
texts = task.load()["test"]["text"][:32]
capitals = {row: [float(word[0].isupper()) for word in text.split()] for row, text in enumerate(texts)}
ours = {"loo-sign": "loo-sign", "int-grad-sign": "int-grad-sign"}
steps = {"n_steps": 20, "method": "riemann_right"}
others = {
    "captum-lig": fm.adapters.captum(captum.attr.LayerIntegratedGradients, **steps),
    "captum-occlusion": fm.adapters.captum(captum.attr.FeatureAblation),
    "shap-permutation": fm.adapters.shap(shap.explainers.Permutation, recursive=False, silent=True),
    "interpreto-occlusion": fm.adapters.interpreto(interpreto.Occlusion),
    "attention-rollout": fm.adapters.attention("rollout"),
    "attention-last": fm.adapters.attention("last"),
}
result = fm.measure(clf, task, {**ours, **others, "capitals": capitals}, limit=len(texts))
print(result.table().to_string(index=False, float_format="{:.3f}".format))

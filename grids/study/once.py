"""Methods that explain a text once, before anything is erased, to compare with the recursive ones."""

import faithmeter as fm
from faithmeter.methods.registry import METHODS

for name in ("loo-sign", "grad-l2"):
    recursive = METHODS[name]
    fm.method(
        f"{name}-once",
        recursive=False,
        signed=recursive.signed,
        about=f"{recursive.about}, explained once",
        unit=recursive.unit,
        cost=recursive.cost,
        by_default=False,
    )(recursive.function)

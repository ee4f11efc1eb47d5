"""Speed of light: the seconds that the necessary matrix products take at the measured peak."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from faithmeter.models.classifier import Classifier

from .race import Clock

ROWS = 1024
"""Rows of the multiplied matrices: the tokens of a micro-batch on a CPU."""
PRODUCTS = 8
"""Matrix products in one measurement of the peak, for each thread."""
BACKWARD = 2.0
"""Operations of a pass with the gradient of the inputs, relative to a forward pass."""
TRAINING = 3.0
"""Operations of a training step, relative to a forward pass."""


class Flops:
    """Floating-point operations of a forward pass of a model, by the number of tokens."""

    def __init__(self, clf: Classifier) -> None:
        self.clf = clf
        self.of_length = cache(self._count)

    def __call__(self, lengths: Iterable[int]) -> float:
        """Return the operations for texts of these lengths, special tokens included."""
        return float(sum(self.of_length(length) for length in lengths))

    def _count(self, length: int) -> int:
        ids = torch.full((1, length), self.clf.mask_id, device=self.clf.device)
        # the kernel of plain matrix products, as only those are counted
        counter = FlopCounterMode(display=False)
        with sdpa_kernel(SDPBackend.MATH), torch.inference_mode(), counter:
            self.clf.model(input_ids=ids, attention_mask=torch.ones_like(ids))
        return int(counter.get_total_flops())


def gemm_speed(clf: Classifier, clock: Clock) -> Callable[[], float]:
    """Return a function that measures the matrix products of a device, in operations per second.

    The shapes are those of the model's largest layers, and a square; the fastest counts. On a CPU every core
    multiplies its own matrices, and then all cores share one product; again the faster counts.
    """
    config = clf.model.config
    width = int(config.hidden_size)
    inner = int(getattr(config, "intermediate_size", 4 * width))
    dtype = next(clf.model.parameters()).dtype
    shapes = [(ROWS, width, inner), (ROWS, inner, width), (ROWS, ROWS, ROWS)]

    def measure() -> float:
        speeds = []
        cores = torch.get_num_threads() if clf.device.type == "cpu" else 1
        for rows, depth, columns in shapes:
            a = torch.rand(rows, depth, device=clf.device, dtype=dtype)
            b = torch.rand(depth, columns, device=clf.device, dtype=dtype)
            flops = 2.0 * rows * depth * columns * PRODUCTS * cores
            with torch.inference_mode():
                _multiply(a, b, 1)
                speeds.append(flops / _elapsed(clf.device, clock, partial(_multiply, a, b, PRODUCTS * cores)))
                if cores > 1:
                    speeds.append(flops / _elapsed(clf.device, clock, partial(_on_each_core, a, b)))
        return max(speeds)

    return measure


def _multiply(a: torch.Tensor, b: torch.Tensor, count: int) -> None:
    for _ in range(count):
        torch.mm(a, b)


def _on_each_core(a: torch.Tensor, b: torch.Tensor) -> None:
    threads = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            for job in [pool.submit(_multiply, a, b, PRODUCTS) for _ in range(threads)]:
                job.result()
    finally:
        torch.set_num_threads(threads)


def _elapsed(device: torch.device, clock: Clock, run: Callable[[], object]) -> float:
    start = clock()
    run()
    if device.type != "cpu":
        torch.get_device_module(device).synchronize()
    return clock() - start

"""The second training of the demo, in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithmeter.cli import demo
from faithmeter.store.run_store import RunStore

pytestmark = pytest.mark.slow


def test_a_training_beside_the_block_is_finished_after_it(tmp_path: Path) -> None:
    config = demo.RECIPE.replace(limit=32, epochs=1, validation_limit=40, strategy="none")
    with demo.training_beside(config, tmp_path):
        assert RunStore(tmp_path).get(config) is None
    record = RunStore(tmp_path).get(config)
    assert record is not None
    assert record.config.strategy == "none"

"""Masked fine-tuning: task and config → checkpoint and history."""

UNFINISHED = "trainer"
"""Subfolder of a run for the checkpoints of its unfinished training."""

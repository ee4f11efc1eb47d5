"""Masked fine-tuning: task and config → checkpoint and history."""

UNFINISHED = "trainer"
"""Folder in a run's folder with the checkpoints of its unfinished training."""

"""Masked fine-tuning of a model on a task."""

UNFINISHED = "trainer"
"""Name of the subfolder of a run that holds the checkpoints of its unfinished training run."""

"""Checks of the ruler itself: metrics and methods against truths that are known."""

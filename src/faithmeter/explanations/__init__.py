"""Explanations of single texts: scores per word, their rendering, and a pipeline."""

"""Classifiers: tokenization, masks, Hugging Face models, and their evaluation in cached micro-batches."""

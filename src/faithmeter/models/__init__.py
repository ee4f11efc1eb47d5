"""Classifiers: tokens, masks, a Hugging Face model, and the evaluator that batches and caches."""

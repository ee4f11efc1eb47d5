"""Masked fine-tuning on the Hugging Face Trainer."""

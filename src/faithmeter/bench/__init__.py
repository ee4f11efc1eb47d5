"""Bench: contenders do the same work on the same model, texts and threads, in interleaved rounds."""

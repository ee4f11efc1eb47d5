"""Contenders do the same work on the same model, texts and threads, in interleaved rounds: `make bench`.

This package lies beside faithmeter and is not in the wheel.
"""

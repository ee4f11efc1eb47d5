"""The folder of runs: records, their identity, and locks."""

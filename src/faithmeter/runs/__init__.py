"""Trainings, steps of Recursive ROAR and measurements: their configs, records and store."""

"""Configs → records in a store: trainings, steps of Recursive ROAR and measurements."""

"""The measurement: erasure, curves, areas, intervals, p-values, and when to doubt a result."""

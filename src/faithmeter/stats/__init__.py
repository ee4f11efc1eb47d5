"""Numbers from predictions: metrics, curves, areas, intervals, comparisons and p-values."""

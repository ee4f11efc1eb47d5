"""Tables of the runs of a store; those of the paper are in `paper.tables`."""

"""Code and data that only the replication of the paper needs; only the commands and grids import it."""

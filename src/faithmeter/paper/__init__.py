"""What only the replication of the paper needs; nothing but the command line and grids imports it."""

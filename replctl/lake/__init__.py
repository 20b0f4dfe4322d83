"""A database of a cluster as a node of replication: its catalog and its Delta tables together."""

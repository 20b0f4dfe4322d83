"""A database of a cluster as a node of replication: combines its catalog and its Delta tables."""

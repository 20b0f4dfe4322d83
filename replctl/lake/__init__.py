"""Present a database of a cluster (its catalog and its Delta tables) as a node of replication."""

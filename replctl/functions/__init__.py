"""SQL functions and views that read the state of a cluster or session, or change it."""

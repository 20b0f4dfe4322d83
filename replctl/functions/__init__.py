"""The functions, views and values that SQL can ask of a cluster and of a session."""

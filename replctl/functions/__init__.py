"""The functions, views and values through which SQL describes a cluster and a session."""

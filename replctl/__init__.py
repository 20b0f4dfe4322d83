"""PostgreSQL's logical replication over Delta tables: defined in SQL, computed by Spark."""

__version__ = "0.1.0"

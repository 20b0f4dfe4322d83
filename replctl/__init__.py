"""PostgreSQL's logical replication over Delta tables, run by Spark, steered by SQL."""

__version__ = "0.1.0"

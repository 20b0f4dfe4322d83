"""The rules of logical replication, following the documentation's chapter, without driver, SQL or
Spark.
"""

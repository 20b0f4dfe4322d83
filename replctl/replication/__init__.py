"""The rules of logical replication, as the documentation's chapter has them: no driver, no SQL, no
Spark."""

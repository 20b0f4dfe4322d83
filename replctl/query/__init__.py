"""SELECT and the statements that change rows: analysed here, run by SQLite or by Spark."""

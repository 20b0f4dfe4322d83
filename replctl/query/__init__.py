"""SELECT and the statements that change rows: analyse them, and run them in SQLite or Spark."""

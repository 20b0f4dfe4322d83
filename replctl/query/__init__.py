"""SELECT and the statements that change rows: analysis, and execution in SQLite or Spark."""

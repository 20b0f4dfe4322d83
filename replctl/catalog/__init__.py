"""The catalog: one SQLite file per cluster.  This package reads and writes rows, without rules."""

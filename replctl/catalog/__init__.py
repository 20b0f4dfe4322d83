"""The catalog: one SQLite file per cluster.  This package reads and writes its rows.  The rules of
statements are in `commands`.
"""

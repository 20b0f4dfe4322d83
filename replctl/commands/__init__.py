"""DDL and settings: one function for each statement.  It changes the catalog and returns the
command tag.
"""

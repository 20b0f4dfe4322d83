"""DDL and settings: one function per statement, which changes the catalog and returns the command
tag.
"""

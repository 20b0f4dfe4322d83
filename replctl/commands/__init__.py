"""DDL and settings: a function for each statement, which changes the catalog and answers with the
tag."""

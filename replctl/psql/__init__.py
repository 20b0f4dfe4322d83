"""The command that users see: psql's options, scripts, variables, backslash commands and tables."""

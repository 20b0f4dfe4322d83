"""Statements of the tests, mutated at random, through the command: whatever a script holds, it ends
in results and errors of PostgreSQL, soon, and without much memory."""

"""Runs statements of the tests, mutated at random, through the command.  Each script must end soon
in results and errors of PostgreSQL, without much memory."""

-- A wrong value leaves the state, which psql prints all the same.
\timing maybe
\timing off

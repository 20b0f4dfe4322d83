"""PostgreSQL's built-in objects (types, operators, functions, casts), and values as text."""

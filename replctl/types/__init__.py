"""What every PostgreSQL has built in: types, operators, functions, casts, and the text form of
values."""

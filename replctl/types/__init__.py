"""The built-in objects of PostgreSQL: types, operators, functions, casts, and the text form of
values.
"""

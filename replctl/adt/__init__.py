"""PostgreSQL's built-in functions and operators on Python values, with a module for each file of
its src/backend/utils/adt; `interpret` evaluates typed expressions with them.
"""

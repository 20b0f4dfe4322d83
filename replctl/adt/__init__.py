"""PostgreSQL's built-in functions and operators on values of Python, a module for each file of its
src/backend/utils/adt; `interpret` evaluates typed expressions with them."""

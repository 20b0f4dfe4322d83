# Commands for people who change replctl: `just --list` shows them.

python := env("PYTHON", if path_exists(".venv/bin/python") == "true" { ".venv/bin/python" } else { "python3" })

# Check format, lint, types, prose, sizes, imports and the documentation
check:
    PYTHON={{python}} .ci/check

# Run the tests that need no Spark and no server, in about a minute
fast:
    {{python}} -m pytest -q -m "not spark" --numprocesses 2 --dist worksteal tests/parser tests/types tests/expr tests/replication tests/catalog tests/test_readmes.py tests/test_prose.py

# Run one test, a file or a folder
test NAME *OPTIONS:
    {{python}} -m pytest {{NAME}} {{OPTIONS}}

# Let a server answer: `just golden script 'host=localhost user=postgres' schema`
golden NAME *ARGUMENTS:
    {{python}} .ci/generate_{{NAME}}_golden.py {{ARGUMENTS}}

# Build the documentation as a site, into site/
docs:
    NO_MKDOCS_2_WARNING=1 {{python}} -m mkdocs build --strict

# Compare random expressions with a PostgreSQL server
fuzz EXPRESSIONS="10000" SEED="1":
    {{python}} -m tests.differential --expressions {{EXPRESSIONS}} --seed {{SEED}}

# Measure replctl next to jobs by hand
bench *OPTIONS:
    {{python}} -m benchmarks {{OPTIONS}}

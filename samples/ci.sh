#!/bin/sh
# Use replctl in a CI script: create what is missing, and check exit codes and rows.
# Run it after the example (REPLCTL_HOME=/some/dir samples/run.sh), with the same REPLCTL_HOME.
set -eu

fail() {
    echo "ci.sh: $1" >&2
    exit 1
}
expect() { # expect CODE COMMAND...
    wanted=$1
    shift
    code=0
    "$@" >/dev/null 2>&1 || code=$?
    [ "$code" -eq "$wanted" ] || fail "exit code $code, not $wanted: $*"
}
: "${REPLCTL_HOME:?is not set}"

# Create a publication unless it exists.
has=$(replctl -X -d shop -A -t -c "SELECT count(*) FROM pg_publication WHERE pubname = 'paid'")
[ "$has" -eq 0 ] && replctl -X -q -d shop -c "CREATE PUBLICATION paid FOR TABLE orders"

# psql's exit codes: 1 for an error of a -c command, 2 for a failed connection, 3 for an error of a
# script.
expect 0 replctl -X -d shop -c 'SELECT pubname FROM pg_publication'
expect 1 replctl -X -d shop -c 'CREATE PUBLICATION paid'
expect 2 replctl -X -d nowhere -c 'SELECT 1'
echo 'DROP PUBLICATION unknown;' >"$REPLCTL_HOME/bad.sql"
expect 3 replctl -X -d shop -v ON_ERROR_STOP=1 -f "$REPLCTL_HOME/bad.sql"

# replctl refuses the same row filters as PostgreSQL when the publication is created.
expect 1 replctl -X -d shop -c 'CREATE PUBLICATION odd FOR TABLE orders WHERE (random() > 0.5)'

# Bring the branch up to date, and compare it with the shop.
expect 0 replctl sync
query="SELECT count(*), sum(amount) FROM orders WHERE region = 'north'"
here=$(replctl -X -d north -A -t -c "$query")
there=$(replctl -X -d shop -A -t -c "$query")
[ "$here" = "$there" ] || fail "the north has $here, the shop $there"

replctl -X -q -d shop -c 'DROP PUBLICATION paid'
echo "ci.sh: all is well ($here)"

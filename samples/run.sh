#!/bin/sh
# The whole story: a shop, its northern branch, a day of changes, and what the branch has at its end.
# The cluster is made in $REPLCTL_HOME, or in a directory that goes away again.
set -eu
cd "$(dirname "$0")"
if [ -z "${REPLCTL_HOME:-}" ]; then
    REPLCTL_HOME=$(mktemp -d)
    trap 'rm -rf "$REPLCTL_HOME"' EXIT
    export REPLCTL_HOME
fi
replctl -X -v ON_ERROR_STOP=1 -f 1_shop.sql -f 2_north.sql -f 3_changes.sql -f 4_result.sql

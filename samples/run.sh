#!/bin/sh
# Run the example: a shop, its northern branch, a day of changes, and the branch's rows at the end.
# The cluster is created in $REPLCTL_HOME, or in a temporary directory that is removed at the end.
set -eu
cd "$(dirname "$0")"
if [ -z "${REPLCTL_HOME:-}" ]; then
    REPLCTL_HOME=$(mktemp -d)
    trap 'rm -rf "$REPLCTL_HOME"' EXIT
    export REPLCTL_HOME
fi
replctl -X -v ON_ERROR_STOP=1 -f 1_shop.sql -f 2_north.sql -f 3_changes.sql -f 4_result.sql

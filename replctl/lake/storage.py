"""Where relations get their storage: a place for the Delta table, and a name in it for each column.

Nothing is made here; the first write makes the table (table_write.py).
"""

from __future__ import annotations

import re

from replctl.catalog.cluster import Cluster
from replctl.catalog.pg_class import Column, Relation, insert_storage, insert_storage_column
from replctl.catalog.storage import storage_names
from replctl.catalog.transaction import Catalog

_NOT_IN_NAMES = re.compile(
    r"[ ,;{}()\n\t=`]"
)  # what Delta refuses without column mapping, or trips over
_RESERVED = frozenset({"_change_type", "_commit_version", "_commit_timestamp", "_metadata", "_"})


def give_storage(catalog: Catalog, cluster: Cluster, relation: Relation) -> None:
    """Assign a place to a relation that holds rows, and names to its columns."""
    location = cluster.default_location(catalog.database_oid, relation.oid)
    insert_storage(catalog, relation.oid, location, is_adopted=False, is_made=False)
    for column in relation.columns:
        give_storage_column(catalog, relation.oid, column)


def give_storage_column(catalog: Catalog, relid: int, column: Column) -> None:
    """Assign a name in storage to a column: its own, or one like it that no column has had."""
    taken = storage_names(catalog, relid)
    base = _NOT_IN_NAMES.sub("_", column.name)
    name, number = base, 0
    while name.lower() in taken | _RESERVED:
        number += 1
        name = f"{base}_{number}"
    insert_storage_column(catalog, relid, column.attnum, name)

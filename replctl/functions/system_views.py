"""Find the rows of PostgreSQL's catalogs and system views for queries, and fill in defaults.

Three modules produce the rows: definition_views (relations, types, functions, constraints),
session_views (roles, settings, sessions), replication_views (publications, subscriptions, slots).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from replctl.catalog import schema_table
from replctl.catalog.pg_database import COLLATION
from replctl.catalog.relation_kind import RelPersistence
from replctl.errors import FeatureNotSupported
from replctl.functions.definition_views import DEFINITION_VIEWS
from replctl.functions.function_context import FunctionContext
from replctl.functions.replication_views import REPLICATION_VIEWS
from replctl.functions.session_views import SESSION_VIEWS
from replctl.functions.view_rows import Row, in_order, stored_rows
from replctl.types import builtin


def system_rows(context: FunctionContext, name: str) -> Iterator[tuple[Any, ...]]:
    """Return the rows of a catalog or system view, with columns in order.

    Raises:
        FeatureNotSupported: replctl does not have this catalog or view.
    """
    relation = builtin.system_relations()[name]
    rows = _VIEWS.get(name)
    if name in _EMPTY and name not in schema_table.metadata.tables:
        rows = _nothing
    if rows is None and name not in schema_table.metadata.tables:
        raise FeatureNotSupported(f'catalog "{name}" is not supported')
    found = stored_rows(context, name) if rows is None else rows(context)
    return in_order(found, relation.columns, _DEFAULTS.get(name, {}))


def _nothing(context: FunctionContext) -> Iterator[Row]:
    return iter(())


#: Catalogs and views that are always empty in replctl.
_EMPTY = frozenset(
    """pg_trigger pg_event_trigger pg_foreign_table pg_foreign_server pg_foreign_data_wrapper
    pg_user_mapping pg_user_mappings pg_extension pg_available_extensions
    pg_available_extension_versions pg_statistic pg_statistic_ext pg_statistic_ext_data pg_stats
    pg_stats_ext pg_stats_ext_exprs pg_prepared_xacts pg_prepared_statements pg_cursors pg_seclabel
    pg_seclabels pg_shseclabel pg_transform pg_largeobject pg_largeobject_metadata
    pg_parameter_acl pg_rules pg_stat_wal_receiver pg_stat_progress_vacuum
    pg_stat_progress_analyze pg_stat_progress_basebackup pg_stat_progress_cluster
    pg_stat_progress_copy pg_stat_progress_create_index pg_stat_user_functions
    pg_stat_xact_user_functions pg_default_acl pg_db_role_setting pg_policy pg_policies
    pg_hba_file_rules pg_ident_file_mappings pg_file_settings""".split()
)

_VIEWS = {**DEFINITION_VIEWS, **SESSION_VIEWS, **REPLICATION_VIEWS}

#: PostgreSQL's usual values of columns that replctl does not track.
_DEFAULTS: dict[str, Row] = {
    "pg_stat_replication_slots": {
        "spill_txns": 0, "spill_count": 0, "spill_bytes": 0,
        "stream_txns": 0, "stream_count": 0, "stream_bytes": 0,
    },
    "pg_class": {
        "reloftype": 0, "relfilenode": 0, "reltablespace": 0, "relpages": 0, "reltuples": -1,
        "relallvisible": 0, "reltoastrelid": 0, "relhasindex": 0, "relisshared": 0,
        "relpersistence": RelPersistence.PERMANENT,
        "relchecks": 0, "relhasrules": 0, "relhastriggers": 0,
        "relhassubclass": 0, "relrowsecurity": 0, "relforcerowsecurity": 0, "relispopulated": 1,
        "relispartition": 0, "relrewrite": 0, "reltype": 0, "relam": 2,
    },
    "pg_attribute": {
        "attnotnull": 0, "atthasdef": 0, "atthasmissing": 0, "attidentity": "", "attgenerated": "",
        "attisdropped": 0, "attislocal": 1, "attinhcount": 0, "attcollation": 0, "attndims": 0,
        "attcacheoff": -1, "attcompression": "",
    },
    "pg_type": {
        "typisdefined": 1, "typdelim": ",", "typrelid": 0, "typnotnull": 0, "typbasetype": 0,
        "typtypmod": -1, "typcollation": 0, "typndims": 0, "typispreferred": 0,
    },
    "pg_proc": {"prosecdef": 0, "provariadic": 0, "pronargdefaults": 0},
    "pg_operator": {"oprcanmerge": 0, "oprcanhash": 0, "oprcom": 0, "oprnegate": 0},
    "pg_inherits": {"inhdetachpending": 0},
    "pg_index": {
        "indisexclusion": 0,
        "indcheckxmin": 0, "indisready": 1, "indislive": 1,
    },
    "pg_constraint": {"condeferred": 0, "contypid": 0},
    "pg_database": {
        "encoding": 6, "datlocprovider": "c",
        "dathasloginevt": 0, "datconnlimit": -1, "dattablespace": 1663, "datcollate": COLLATION,
        "datctype": COLLATION,
    },
    "pg_roles": {"rolinherit": 1},
    "pg_partitioned_table": {"partdefid": 0},
}  # fmt: skip

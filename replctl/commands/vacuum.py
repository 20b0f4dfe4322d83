"""VACUUM, ANALYZE and CHECKPOINT (vacuum.c)."""

from __future__ import annotations

import re

from replctl.catalog.acl import Privilege
from replctl.catalog.aclchk import owner_of
from replctl.catalog.pg_authid import CHECKPOINT
from replctl.catalog.pg_class import (
    Relation,
    get_relation,
    leaf_partitions,
    load_relations,
    relation_oids,
)
from replctl.catalog.relation_kind import WITH_DELTA_TABLE, WITH_ROWS
from replctl.catalog.transaction import Catalog
from replctl.commands.define import get_boolean, get_string
from replctl.does_not_exist import no_column, no_relation, no_schema
from replctl.errors import (
    ConnectionFailure,
    DuplicateColumn,
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidParameterValue,
    LockNotAvailable,
    ObjectNotInPrerequisiteState,
    PostgresError,
    QueryCanceled,
    SqlSyntaxError,
)
from replctl.expr.type_names import schema_of_relation
from replctl.lake.delta_vacuum import Vacuumed, vacuum_cluster, vacuum_table
from replctl.lake.file_access import check_files_writable, check_writable
from replctl.lake.retention import check_slots, invalidate_slots
from replctl.parser import ast
from replctl.record import dataclass
from replctl.session import Session
from replctl.transaction_block import prevent_in_block
from replctl.types.guc import find_setting, read_value
from replctl.types.quote import quote_identifier

#: Boolean options of PostgreSQL.  Most have no effect on Delta tables.
_SWITCHES = frozenset(
    {
        "full", "freeze", "verbose", "analyze", "disable_page_skipping", "skip_locked",
        "process_main", "process_toast", "truncate", "skip_database_stats", "only_database_stats",
    }
)  # fmt: skip
_VALUES = frozenset({"index_cleanup", "parallel", "buffer_usage_limit"})
#: VACUUM reports a table if VACUUM FULL would leave at least this number of files fewer.
_MANY_FILES = 100
_MAX_WORKERS = 1024  # MAX_PARALLEL_WORKER_LIMIT


@dataclass(frozen=True, slots=True)
class _Options:
    """The options of VACUUM that have an effect."""

    is_full: bool = False
    is_verbose: bool = False
    skips_locked: bool = False


def vacuum(session: Session, statement: ast.Vacuum) -> str:
    """Remove files of tables that are no longer needed.  Without names, vacuum all tables of the
    database, dropped tables and the catalogs.

    Raises:
        ActiveSqlTransaction: the statement is in a transaction block (25001).
        SqlSyntaxError: there is no such option (42601).
        UndefinedTable, UndefinedColumn: a name does not exist.
    """
    options = _read_options(statement)
    prevent_in_block(session.block, "VACUUM")
    with session.read() as catalog:
        if statement.relations:
            found = [_relation_of(session, catalog, item) for item in statement.relations]
            named = [relation for relation in found if relation is not None]
        else:
            named = list(load_relations(catalog, relation_oids(catalog, WITH_DELTA_TABLE)).values())
        tables = {
            leaf.oid: leaf
            for relation in named
            if _is_table(session, relation) and _is_permitted(session, catalog, relation)
            for leaf in leaf_partitions(catalog, relation)
            if _has_writable_files(session, catalog, leaf)
        }
    if not statement.relations:
        invalidate_slots(session)
    check_slots(session)
    failures: list[PostgresError] = []
    for table in tables.values():
        try:
            _vacuum(session, table, options)
        except (QueryCanceled, ConnectionFailure):
            raise
        except PostgresError as error:  # vacuum the other tables first
            failures.append(_named(session, table, error))
    if not statement.relations:
        vacuum_cluster(session)
    for failure in failures[1:]:
        session.notice(
            failure.message,
            severity="WARNING",
            sqlstate=failure.sqlstate,
            detail=failure.detail,
            hint=failure.hint,
        )
    if failures:
        raise failures[0]
    return "VACUUM"


def analyze(session: Session, statement: ast.Vacuum) -> str:
    """Check the options and names of ANALYZE.  It has no other effect, because Spark plans with the
    statistics that Delta keeps of each file.

    Raises:
        SqlSyntaxError: there is no such option (42601).
        UndefinedTable, UndefinedColumn: a name does not exist.
    """
    for option in statement.options:
        if option.name in ("verbose", "skip_locked"):
            get_boolean(option)
        elif option.name == "buffer_usage_limit":
            _check_buffer_limit(option)
        else:
            raise SqlSyntaxError(
                f'unrecognized ANALYZE option "{option.name}"', position=option.pos
            )
    with session.read() as catalog:
        for item in statement.relations:
            relation = _relation_of(session, catalog, item)
            if relation is not None and _is_table(session, relation, "analyze"):
                _is_permitted(session, catalog, relation, "analyze")
    return "ANALYZE"


def _named(session: Session, table: Relation, error: PostgresError) -> PostgresError:
    """Add the name of the table that cannot be vacuumed to an error, and return the error."""
    if error.detail is None:
        name = f'"{session.database_name}.{table.schema}.{table.name}"'
        error.detail = f"It concerns table {name}."
    return error


def _is_permitted(
    session: Session, catalog: Catalog, relation: Relation, verb: str = "vacuum"
) -> bool:
    """Return whether the role may vacuum a table, because it may maintain the table or owns the
    database.  If not, report a warning.
    """
    privileges = session.privileges(catalog)
    owner = owner_of(catalog, "pg_database", session.database_oid)
    if privileges.acts_for(owner) or privileges.has_on_relation(relation, Privilege.MAINTAIN):
        return True
    session.notice(
        f'permission denied to {verb} "{relation.name}", skipping it', severity="WARNING"
    )
    return False


def _has_writable_files(session: Session, catalog: Catalog, table: Relation) -> bool:
    """Return whether replctl may remove files of a table.  Report a missing permission."""
    try:
        if table.storage is not None and table.storage.is_adopted:  # VACUUM commits nothing to it
            check_files_writable(catalog, table)
        else:
            check_writable(catalog, [table])
    except (InsufficientPrivilege, FeatureNotSupported) as error:
        # as PostgreSQL, go on with other tables
        session.notice(
            f'skipping "{table.name}" --- {error.message}',
            severity="WARNING",
            sqlstate=error.sqlstate,
            detail=error.detail,
            hint=error.hint,
        )
        return False
    except ObjectNotInPrerequisiteState:  # the cluster is a copy, and does not own the table
        return False
    return True


def _read_options(statement: ast.Vacuum) -> _Options:
    given: dict[str, bool] = {}
    workers = 0
    for option in statement.options:
        if option.name in _SWITCHES:
            given[option.name] = get_boolean(option)
        elif option.name not in _VALUES:
            raise SqlSyntaxError(f'unrecognized VACUUM option "{option.name}"', position=option.pos)
        elif option.name == "parallel":
            workers = _parallel_workers(option)
        elif option.name == "buffer_usage_limit":
            _check_buffer_limit(option)
    if given.get("full") and workers > 0:
        raise FeatureNotSupported("VACUUM FULL cannot be performed in parallel")
    if not given.get("analyze") and any(item.columns for item in statement.relations):
        raise FeatureNotSupported("ANALYZE option must be specified when a column list is provided")
    return _Options(
        given.get("full", False),
        given.get("verbose", False),
        given.get("skip_locked", False),
    )


def _check_buffer_limit(option: ast.DefElem) -> None:
    """Check the value of BUFFER_USAGE_LIMIT, which has no effect.

    Raises:
        SqlSyntaxError: the option has no value.
        InvalidParameterValue: the value is not valid.
    """
    try:
        read_value(find_setting("vacuum_buffer_usage_limit"), get_string(option))
    except InvalidParameterValue as error:
        raise InvalidParameterValue(
            "BUFFER_USAGE_LIMIT option must be 0 or between 128 kB and 16777216 kB",
            hint=error.hint,
        ) from error


def _parallel_workers(option: ast.DefElem) -> int:
    if option.value is None:
        raise SqlSyntaxError(
            f"parallel option requires a value between 0 and {_MAX_WORKERS}", position=option.pos
        )
    if re.fullmatch(r"[-+]?\d+", option.value) is None:
        raise SqlSyntaxError("parallel requires an integer value")
    workers = int(option.value)
    if not 0 <= workers <= _MAX_WORKERS:
        raise SqlSyntaxError(
            f"parallel workers for vacuum must be between 0 and {_MAX_WORKERS}", position=option.pos
        )
    return workers


def _relation_of(session: Session, catalog: Catalog, item: ast.VacuumRelation) -> Relation | None:
    """Return the named relation, and check its columns; None for a catalog."""
    name = item.relation
    environment = session.environment(catalog)
    schema_name = schema_of_relation(environment, name)
    if schema_name is not None and environment.schema_oid(schema_name) is None:
        raise no_schema(schema_name)
    oid = environment.relation_oid(schema_name, name.name)
    if oid is None:
        shown = name.name if name.schema is None else f"{name.schema}.{name.name}"
        raise no_relation(shown)
    relation = get_relation(catalog, oid)
    if relation is not None:
        for place, column in enumerate(item.columns):
            if relation.column(column) is None:
                raise no_column(column, relation.name)
            if column in item.columns[:place]:
                raise DuplicateColumn(
                    f'column "{column}" of relation "{relation.name}" appears more than once'
                )
    return relation


def _is_table(session: Session, relation: Relation, verb: str = "vacuum") -> bool:
    if relation.kind in WITH_ROWS:
        return True
    session.notice(
        f'skipping "{relation.name}" --- cannot {verb} non-tables or special system tables',
        severity="WARNING",
        sqlstate="01000",
    )
    return False


def _vacuum(session: Session, table: Relation, options: _Options) -> None:
    try:
        done = vacuum_table(
            session, table.oid, is_full=options.is_full, waits=not options.skips_locked
        )
    except LockNotAvailable:  # SKIP_LOCKED: the next table may be free
        if not options.skips_locked:
            raise
        session.notice(
            f'skipping vacuum of "{table.name}" --- lock not available',
            severity="WARNING",
            sqlstate="55P03",
        )
        return
    if options.is_verbose:
        _report(session, table, done or Vacuumed(None))
    if done is not None and done.superfluous_files >= _MANY_FILES:
        session.notice(
            f'table "{table.name}" has many small files',
            detail=f"VACUUM FULL would reduce their number by {done.superfluous_files}.",
            hint=f"Use VACUUM FULL {quote_identifier(table.schema)}"
            f".{quote_identifier(table.name)};",
        )


def _report(session: Session, table: Relation, done: Vacuumed) -> None:
    version = (
        "all versions are kept"
        if done.version is None
        else (f"versions from {done.version} on are kept")
    )
    session.notice(
        f'finished vacuuming "{session.database_name}.{table.schema}.{table.name}":'
        f" {done.files} files and {done.log_entries} entries of the log removed, {version}",
        severity="INFO",
    )


def checkpoint(session: Session) -> str:
    """Invalidate slots that hold back too much of the log, except on a standby.  CHECKPOINT has no
    other effect, because commits are already on disk.

    Raises:
        InsufficientPrivilege: the current role may not run CHECKPOINT.
    """
    with session.read() as catalog:
        if not session.privileges(catalog).acts_for(CHECKPOINT):
            raise InsufficientPrivilege(
                "permission denied to execute CHECKPOINT command",
                detail='Only roles with privileges of the "pg_checkpoint" role may execute this'
                " command.",
            )
    if not session.cluster.is_in_recovery:
        invalidate_slots(session)
    return "CHECKPOINT"

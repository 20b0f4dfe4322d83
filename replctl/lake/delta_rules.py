"""Read and check the rules of a Delta table for its rows: NOT NULL, CHECK, generated and identity
columns, append-only tables, lengths of texts, and the limits of partition columns.

Delta's protocol, sections "Column Invariants", "CHECK Constraints", "Append-only Tables",
"Generated Columns" and "Identity Columns".  Delta enforces these rules at the commit of a write.
replctl reads them from the table's newest metadata, and checks them before the write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from replctl.catalog.file_layout import PARTITION_BY, layout_columns
from replctl.catalog.pg_class import Relation
from replctl.catalog.relation_kind import Generated, Identity
from replctl.errors import GeneratedAlways, ObjectNotInPrerequisiteState
from replctl.lake.delta_default import with_delta_default
from replctl.lake.delta_log import columns_of
from replctl.lake.table_state import TableState, has_foreign_rules, table_state
from replctl.record import dataclass
from replctl.replication.update_transformation import Action
from replctl.types.quote import quote_literal
from replctl.types.text_length import TextLength, text_length

_CHECK = "delta.constraints."
_INVARIANT = "delta.invariants"
_GENERATION = "delta.generationExpression"
_DEFAULT = "CURRENT_DEFAULT"
_IDENTITY = "delta.identity.start"
_TAKES_VALUES = "delta.identity.allowExplicitInsert"
_APPEND_ONLY = "delta.appendOnly"
#: The texts that Delta stores as NULL in a partition column.
LOST_TEXTS = ("", "__HIVE_DEFAULT_PARTITION__")
_UNIFORM = "delta.universalFormat.enabledFormats"
#: The library that writes a format's metadata, and one of its classes (IcebergConverterHook,
#: HudiConverterHook).
_FORMATS = {
    "iceberg": ("delta-iceberg", "org.apache.spark.sql.delta.icebergShaded.IcebergConverter"),
    "hudi": ("delta-hudi", "org.apache.spark.sql.delta.hudi.HudiConverter"),
}


@dataclass(frozen=True, slots=True)
class DeltaRules:
    """The rules of a table.  Columns have their names in the Delta table.

    Attributes:
        columns: all columns.
        not_null: the columns that must not be NULL.
        defaults: the columns with defaults, each with the default's expression in Spark's SQL.
        checks: the names of CHECK constraints and of columns with invariants, each with its
            condition in Spark's SQL.
        generated: the generated columns, each with its expression in Spark's SQL.
        identity: the identity columns, each with a letter: Delta always assigns the values (a), or
            also accepts values at INSERT (d).
        lengths: the columns of texts with lengths.
        text_partitions: partition columns of text, in which Delta stores LOST_TEXTS as NULL.
        is_append_only: no row may be changed or deleted.
        formats: other formats for which Delta writes metadata after each commit (UniForm).
    """

    columns: tuple[str, ...] = ()
    not_null: frozenset[str] = frozenset()
    defaults: tuple[tuple[str, str], ...] = ()
    checks: tuple[tuple[str, str], ...] = ()
    generated: tuple[tuple[str, str], ...] = ()
    identity: tuple[tuple[str, Identity], ...] = ()
    lengths: tuple[tuple[str, TextLength], ...] = ()
    text_partitions: tuple[str, ...] = ()
    is_append_only: bool = False
    formats: tuple[str, ...] = ()

    @property
    def required(self) -> frozenset[str]:
        """Return the columns that must not be NULL, and that Delta does not fill by itself."""
        filled = (*self.defaults, *self.generated, *self.identity)
        return self.not_null - {name for name, _rule in filled}


def rules_of(state: TableState, location: str) -> DeltaRules:
    """Return the rules in a table's metadata.

    Raises:
        DataCorrupted: the metadata has no schema in Delta's form (XX001).
    """
    if not state.metadata:
        return DeltaRules()
    fields = columns_of(state.metadata, location, state.version)
    notes = {field["name"]: _notes(field) for field in fields}
    types = {field["name"]: field["type"] for field in fields}
    checks = [
        (name.removeprefix(_CHECK), text)
        for name, text in sorted(state.properties.items())
        if name.startswith(_CHECK)
    ]
    checks += [(n, found) for n, note in notes.items() if (found := _invariant(note)) is not None]
    identity = {
        name: Identity.BY_DEFAULT if note.get(_TAKES_VALUES) is True else Identity.ALWAYS
        for name, note in notes.items()
        if _IDENTITY in note
    }
    partitions = state.metadata.get("partitionColumns", ())
    return DeltaRules(
        tuple(types),
        frozenset(field["name"] for field in fields if not field.get("nullable", True)),
        tuple((n, str(note[_DEFAULT])) for n, note in notes.items() if _DEFAULT in note),
        tuple(checks),
        tuple((n, str(note[_GENERATION])) for n, note in notes.items() if _GENERATION in note),
        tuple(identity.items()),
        tuple((f["name"], length) for f in fields if (length := text_length(f)) is not None),
        tuple(name for name in partitions if types.get(name) == "string"),
        state.is_on(_APPEND_ONLY),
        _formats(state),
    )


def names_any(text: str, columns: Collection[str]) -> bool:
    """Return whether an expression in Spark's SQL may use one of these columns."""
    words = "|".join(re.escape(name) for name in columns)
    return bool(words) and re.search(rf"(?<!\w)({words})(?!\w)", text, re.IGNORECASE) is not None


def _notes(field: Mapping[str, Any]) -> dict[str, Any]:
    found = field.get("metadata")
    return found if isinstance(found, dict) else {}


def _invariant(notes: Mapping[str, Any]) -> str | None:
    """Return the invariant of a column from `{"expression": {"expression": "x > 3"}}`; None if it
    has none.
    """
    try:
        found = json.loads(notes[_INVARIANT])["expression"]["expression"]
    except (KeyError, TypeError, ValueError):  # Delta also accepts only this form
        return None
    return found if isinstance(found, str) else None


def _formats(state: TableState) -> tuple[str, ...]:
    names = state.properties.get(_UNIFORM, "").split(",")
    return tuple(name.strip().lower() for name in names if name.strip())


def delta_rules(relation: Relation) -> DeltaRules:
    """Return the rules that another program may have given to a relation's Delta table, and those
    of its partition columns.

    Raises:
        UndefinedFile, DataCorrupted, IoError: see `table_state`.
    """
    storage = relation.storage
    if storage is None:
        return DeltaRules()
    if not has_foreign_rules(storage):
        return _own_rules(relation)
    return rules_of(table_state(storage.location), storage.location)


def _own_rules(relation: Relation) -> DeltaRules:
    """Return the rules of a table that only replctl writes: the limits of its partition columns."""
    if not layout_columns(relation.options, PARTITION_BY):
        return DeltaRules()
    from replctl.lake.file_layout import wanted_layout  # only partitioned tables need Spark's types
    from replctl.spark import storage_type

    partitions = wanted_layout(relation).partitions
    assert relation.storage is not None
    stored = relation.storage.columns
    texts = {
        stored[c.attnum].name
        for c in relation.columns
        if storage_type(c.type, c.typmod) == "STRING"
    }
    return DeltaRules(text_partitions=tuple(name for name in partitions if name in texts))


def with_delta_columns(relation: Relation) -> Relation:
    """Return a relation with Delta's generated and identity columns, and with Delta's defaults for
    columns that have no default in the relation.

    Raises:
        The errors of `delta_rules`.
    """
    rules = delta_rules(relation)
    generated, identity = dict(rules.generated), dict(rules.identity)
    defaults = dict(rules.defaults)
    if relation.storage is None or not (generated or identity or defaults):
        return relation
    stored = {attnum: column.name for attnum, column in relation.storage.columns.items()}
    columns = [
        replace(c, generated=Generated.STORED, default=None)
        if stored.get(c.attnum) in generated
        else replace(c, identity=identity[stored[c.attnum]], default=None)
        if stored.get(c.attnum) in identity
        else with_delta_default(c, stored.get(c.attnum, ""), defaults)
        for c in relation.columns
    ]
    return replace(relation, columns=tuple(columns))


def check_takes_updates(relation: Relation, column: str) -> None:
    """Check that an UPDATE may assign a column of a relation.

    Args:
        relation: the relation with its Delta columns (`with_delta_columns`).

    Raises:
        GeneratedAlways: the column is an identity column of Delta, which never updates such columns
            (428C9).
    """
    found = relation.column(column)
    if found is not None and found.identity and found.default is None:
        raise GeneratedAlways(
            f'column "{column}" cannot be updated',
            detail=f'Column "{column}" is an identity column of the Delta table. Delta does not'
            " update identity columns.",
        )


#: The statements in messages, by action.
_DOES = {Action.UPDATE: "update", Action.DELETE: "delete from", Action.TRUNCATE: "truncate"}


def append_only_error(relation: Relation, action: Action) -> ObjectNotInPrerequisiteState | None:
    """Return the error if a table is append-only, else None.

    Args:
        action: UPDATE, DELETE or TRUNCATE.

    Raises:
        The errors of `delta_rules`.
    """
    if not delta_rules(relation).is_append_only:
        return None
    assert relation.storage is not None
    location = relation.storage.location
    return ObjectNotInPrerequisiteState(
        f'cannot {_DOES[action]} table "{relation.name}"',
        detail=f'The Delta table "{location}" is append-only: its owner has set {_APPEND_ONLY}.',
        hint=f"To allow such changes, its owner can use Spark: ALTER TABLE {_name(location)}"
        f" SET TBLPROPERTIES ({quote_literal(_APPEND_ONLY)} = 'false').",
        table=relation.relation_name,
    )


def _name(location: str) -> str:
    """Return the name that the table at a location has in Spark's SQL."""
    from replctl.spark import table_name  # only errors need it

    return table_name(location)


def check_uniform(relation: Relation, has_class: Callable[[str], bool]) -> None:
    """Check that Spark has the libraries to write a table's metadata in other formats (UniForm).
    Without them, Delta would fail after its commit.

    Args:
        has_class: returns whether Spark has a Java class.

    Raises:
        ObjectNotInPrerequisiteState: Spark lacks a library (55000).
        The errors of `delta_rules`.
    """
    for name in delta_rules(relation).formats:
        library, class_name = _FORMATS.get(name, (name, ""))
        if class_name and has_class(class_name):
            continue
        assert relation.storage is not None
        raise ObjectNotInPrerequisiteState(
            f'cannot write table "{relation.name}": Spark does not have the library "{library}"',
            detail=f'The owner of the Delta table has set {_UNIFORM} to "{name}". Without the'
            " library, Delta fails after its commit.",
            hint="If nobody needs the format, the table's owner can use Spark: ALTER TABLE"
            f" {_name(relation.storage.location)} UNSET TBLPROPERTIES ({quote_literal(_UNIFORM)}).",
            table=relation.relation_name,
        )


def check_can_be_undone(relation: Relation) -> None:
    """Check that a transaction block's changes of a table can be rolled back.

    Raises:
        ObjectNotInPrerequisiteState: the table is append-only, or the relation omits columns of the
            table (55000).
        The errors of `delta_rules`.
    """
    if relation.storage is not None and relation.storage.left_out:
        raise ObjectNotInPrerequisiteState(
            f'cannot write table "{relation.name}" in a transaction block',
            detail=f'It leaves out column "{relation.storage.left_out[0]}" of its Delta table, and'
            " ROLLBACK could not restore the column's values.",
            table=relation.relation_name,
        )
    if delta_rules(relation).is_append_only:
        raise ObjectNotInPrerequisiteState(
            f'cannot write table "{relation.name}" in a transaction block',
            detail=f"Its Delta table is append-only ({_APPEND_ONLY}), so that ROLLBACK could not"
            " delete the rows.",
            table=relation.relation_name,
        )

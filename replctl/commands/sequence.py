"""CREATE SEQUENCE, and the sequences of serial and identity columns (sequence.c;
generateSerialExtraStmts() in parse_utilcmd.c)."""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import replace
from typing import Literal

from replctl.catalog.heap import insert_relation
from replctl.catalog.pg_class import RELKIND_PLURAL, Column, Relation, find_relation_oid
from replctl.catalog.pg_sequence import Sequence, insert_sequence, sequence_state, update_sequence
from replctl.catalog.transaction import Catalog
from replctl.commands.ddl import Ddl, carry_out
from replctl.commands.naming import Schema, creation_schema, relation_name
from replctl.errors import (
    DuplicateTable,
    FeatureNotSupported,
    InvalidParameterValue,
    ObjectNotInPrerequisiteState,
    SqlSyntaxError,
    UndefinedColumn,
    UndefinedTable,
    WrongObjectType,
)
from replctl.expr.type_names import split_name
from replctl.parser import ast
from replctl.record import dataclass
from replctl.session import Session
from replctl.types.quote import quote_qualified_identifier

_LIMITS = {"int2": 2**15, "int4": 2**31, "int8": 2**63}
_COLUMNS = (
    Column(1, "last_value", "int8", not_null=True),
    Column(2, "log_cnt", "int8", not_null=True),
    Column(3, "is_called", "bool", not_null=True),
)


@dataclass(frozen=True, slots=True)
class SequenceDraft:
    """The sequence that a column is to have.

    Attributes:
        type: what it counts in; the column's.
        ownership: a(uto) for serial, i(nternal) for identity.
        options: of GENERATED AS IDENTITY.
    """

    type: str
    ownership: Literal["a", "i"]
    options: tuple[ast.DefElem, ...] = ()


def create_sequence(session: Session, statement: ast.CreateSequence) -> str:
    """Make a sequence.

    Raises:
        DuplicateTable: the name is taken.
        PostgresError: what is wrong with its options.
    """
    return carry_out(session, lambda ddl: _create_sequence(ddl, statement))


def sequence_of_column(
    ddl: Ddl, table: Relation, column: Column, draft: SequenceDraft
) -> ast.RawExpr:
    """Make the sequence of a serial or identity column; the column's default.

    Raises:
        PostgresError: what is wrong with its options.
    """
    named = next((o.value for o in draft.options if o.name == "sequence_name"), None)
    place = Schema(table.schema_oid, table.schema)
    if named is None:
        name = relation_name(ddl.catalog, table.name, place.oid, [column.name], "seq")
    else:
        schema_name, name = split_name(ddl.environment, tuple(named.split(".")))
        if schema_name is not None:
            place = creation_schema(ddl.environment, schema_name, name)
    options = [option for option in draft.options if option.name != "sequence_name"]
    sequence = replace(
        _with_options(Sequence(0), options, draft.type, is_identity=draft.ownership == "i"),
        owner_relid=table.oid,
        owner_attnum=column.attnum,
        ownership=draft.ownership,
    )
    _insert(ddl, place, name, sequence)
    literal = ast.Constant("string", quote_qualified_identifier(place.name, name))
    regclass = ast.TypeCast(literal, ast.TypeName(("pg_catalog", "regclass")))
    return ast.FuncCall(("pg_catalog", "nextval"), (regclass,))


def _create_sequence(ddl: Ddl, statement: ast.CreateSequence) -> str:
    target = statement.relation
    place = creation_schema(ddl.environment, target.schema, target.name, database=target.catalog)
    if find_relation_oid(ddl.catalog, target.name, place.oid) is not None:
        message = f'relation "{target.name}" already exists'
        if not statement.if_not_exists:
            raise DuplicateTable(message)
        ddl.notice(f"{message}, skipping", sqlstate=DuplicateTable.sqlstate)
        return "CREATE SEQUENCE"
    sequence = _with_options(Sequence(0), statement.options, None, is_identity=False)
    owner = next((o for o in statement.options if o.name == "owned_by"), None)
    if owner is not None:
        sequence = _with_owner(ddl, sequence, owner, place)
    _insert(ddl, place, target.name, sequence)
    return "CREATE SEQUENCE"


def _insert(ddl: Ddl, place: Schema, name: str, sequence: Sequence) -> None:
    oid = ddl.catalog.new_oid()
    relation = Relation(
        oid,
        name,
        place.name,
        place.oid,
        "S",
        ddl.session.role_oid,
        "",
        "t" if place.is_temporary else "p",
        "n",
        _COLUMNS,
    )
    insert_relation(ddl.catalog, relation)
    insert_sequence(ddl.catalog, replace(sequence, relid=oid))


# ---------------------------------------------------------------------------------------------
# Options


def _with_options(
    sequence: Sequence, options: Items[ast.DefElem], column_type: str | None, *, is_identity: bool
) -> Sequence:
    """Return a new sequence with its options (init_params).

    Args:
        column_type: the type, if the sequence is a column's.
    """
    given: dict[str, ast.DefElem] = {}
    for option in options:
        if option.name in given:
            raise SqlSyntaxError("conflicting or redundant options", position=option.pos)
        given[option.name] = option
    type_ = column_type or "int8"
    if "as" in given:
        type_ = (given["as"].value or "").removeprefix("pg_catalog.")
    _check_countable(type_, is_identity=is_identity)
    increment = _number(given, "increment", 1)
    if increment == 0:
        raise InvalidParameterValue("INCREMENT must not be zero")
    lowest, highest = -_LIMITS[type_], _LIMITS[type_] - 1
    maximum = _number(given, "maxvalue", highest if increment > 0 else -1)
    minimum = _number(given, "minvalue", 1 if increment > 0 else lowest)
    _check_limits(type_, minimum, maximum)
    start = _number(given, "start", minimum if increment > 0 else maximum)
    _check_within("START", start, minimum, maximum)
    if "restart" in given:
        raise FeatureNotSupported("RESTART of a new sequence is not supported")
    cache = _number(given, "cache", 1)
    if cache <= 0:
        raise InvalidParameterValue(f"CACHE ({cache}) must be greater than zero")
    cycles = "cycle" in given and given["cycle"].value == "true"
    return replace(
        sequence,
        type=type_,
        start=start,
        increment=increment,
        maximum=maximum,
        minimum=minimum,
        cache=cache,
        cycles=cycles,
    )


def retype_sequence(catalog: Catalog, sequence: Sequence, type_: str) -> None:
    """Let the sequence of an identity column count in another type; limits that were its type's
    follow (init_params).

    Raises:
        InvalidParameterValue: it is no type to count in, or the sequence does not fit into it.
    """
    _check_countable(type_, is_identity=True)
    old, new = _LIMITS[sequence.type], _LIMITS[type_]
    maximum = new - 1 if sequence.maximum == old - 1 else sequence.maximum
    minimum = -new if sequence.minimum == -old else sequence.minimum
    _check_limits(type_, minimum, maximum)
    _check_within("START", sequence.start, minimum, maximum)
    _check_within("RESTART", sequence_state(catalog, sequence.relid)[0], minimum, maximum)
    update_sequence(catalog, replace(sequence, type=type_, maximum=maximum, minimum=minimum))


def _check_countable(type_: str, *, is_identity: bool) -> None:
    if type_ not in _LIMITS:
        what = "identity column" if is_identity else "sequence"
        raise InvalidParameterValue(f"{what} type must be smallint, integer, or bigint")


def _check_limits(type_: str, minimum: int, maximum: int) -> None:
    lowest, highest = -_LIMITS[type_], _LIMITS[type_] - 1
    for word, value in (("MAXVALUE", maximum), ("MINVALUE", minimum)):
        if not lowest <= value <= highest:
            raise InvalidParameterValue(
                f"{word} ({value}) is out of range for sequence data type {_SHOWN[type_]}"
            )
    if minimum >= maximum:
        raise InvalidParameterValue(f"MINVALUE ({minimum}) must be less than MAXVALUE ({maximum})")


def _number(given: dict[str, ast.DefElem], name: str, default: int) -> int:
    option = given.get(name)
    return default if option is None or option.value is None else int(option.value)


_SHOWN = {"int2": "smallint", "int4": "integer", "int8": "bigint"}


def _check_within(word: str, value: int, minimum: int, maximum: int) -> None:
    if value < minimum:
        raise InvalidParameterValue(
            f"{word} value ({value}) cannot be less than MINVALUE ({minimum})"
        )
    if value > maximum:
        raise InvalidParameterValue(
            f"{word} value ({value}) cannot be greater than MAXVALUE ({maximum})"
        )


def _with_owner(ddl: Ddl, sequence: Sequence, option: ast.DefElem, place: Schema) -> Sequence:
    """OWNED BY (process_owned_by)."""
    *table_name, column_name = (option.value or "").split(".")
    if not table_name:
        if column_name == "none":
            return sequence
        raise SqlSyntaxError(
            "invalid OWNED BY option", hint="Specify OWNED BY table.column or OWNED BY NONE."
        )
    schema_name, name = split_name(ddl.environment, tuple(table_name))
    oid = ddl.environment.relation_oid(schema_name, name)
    if oid is None:
        raise UndefinedTable(f'relation "{".".join(table_name)}" does not exist')
    table = ddl.relation(oid)
    if table.kind not in ("r", "p", "v", "f"):
        raise WrongObjectType(
            f'sequence cannot be owned by relation "{table.name}"',
            detail=f"This operation is not supported for {RELKIND_PLURAL[table.kind]}.",
        )
    if table.owner != ddl.session.role_oid:
        raise ObjectNotInPrerequisiteState("sequence must have same owner as table it is linked to")
    if table.schema_oid != place.oid:
        raise ObjectNotInPrerequisiteState(
            "sequence must be in same schema as table it is linked to"
        )
    column = table.column(column_name)
    if column is None:
        raise UndefinedColumn(f'column "{column_name}" of relation "{table.name}" does not exist')
    return replace(sequence, owner_relid=table.oid, owner_attnum=column.attnum, ownership="a")

"""CREATE and ALTER SEQUENCE, and the sequences of serial and identity columns (sequence.c,
generateSerialExtraStmts() in parse_utilcmd.c).
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import replace

from replctl.catalog.heap import insert_relation
from replctl.catalog.pg_class import Column, Relation, find_relation_oid
from replctl.catalog.pg_sequence import (
    Sequence,
    State,
    get_sequence,
    insert_sequence,
    rewrite_sequence,
    sequence_state,
    update_sequence,
)
from replctl.catalog.relation_kind import (
    DependencyType,
    RelKind,
    RelPersistence,
    ReplicaIdentity,
)
from replctl.commands.ddl import Ddl, carry_out
from replctl.commands.find_relation import find_relation
from replctl.commands.naming import Schema, creation_schema, relation_name, relation_schema
from replctl.does_not_exist import no_column, no_relation
from replctl.errors import (
    DuplicateTable,
    FeatureNotSupported,
    InvalidParameterValue,
    ObjectNotInPrerequisiteState,
    SqlSyntaxError,
    WrongObjectType,
)
from replctl.expr.type_names import split_name, type_of
from replctl.parser import ast
from replctl.record import dataclass
from replctl.session import Session
from replctl.types import text
from replctl.types.builtin import FIRST_USER_OID
from replctl.types.quote import quote_qualified_identifier

_LIMITS = {"int2": 2**15, "int4": 2**31, "int8": 2**63}
_COLUMNS = (
    Column(1, "last_value", "int8", not_null=True),
    Column(2, "log_cnt", "int8", not_null=True),
    Column(3, "is_called", "bool", not_null=True),
)


@dataclass(frozen=True, slots=True)
class SequenceDraft:
    """The definition of a new sequence that belongs to a column.

    Attributes:
        type: the data type of the sequence and the column.
        options: the options of GENERATED AS IDENTITY.
    """

    type: str
    ownership: DependencyType
    options: tuple[ast.DefElem, ...] = ()


def create_sequence(session: Session, statement: ast.CreateSequence) -> str:
    """Create a sequence.

    Raises:
        DuplicateTable: the name is taken.
        PostgresError: an option is wrong.
    """
    return carry_out(session, lambda ddl: _create_sequence(ddl, statement))


def alter_sequence(session: Session, statement: ast.AlterSequence) -> str:
    """Change the options of a sequence, its next value and the column that owns it.

    Raises:
        UndefinedTable, WrongObjectType: the relation does not exist or is not a sequence.
        PostgresError: an option is wrong.
    """
    return carry_out(session, lambda ddl: _alter_sequence(ddl, statement))


def sequence_of_column(
    ddl: Ddl, table: Relation, column: Column, draft: SequenceDraft
) -> ast.RawExpr:
    """Create the sequence of a serial or identity column, and return the column's default.

    Raises:
        PostgresError: an option is wrong.
    """
    named = next((o.names for o in draft.options if o.name == "sequence_name"), None)
    place = Schema(table.schema_oid, table.schema)
    if named is None:
        name = relation_name(ddl.catalog, table.name, place.oid, [column.name], "seq")
    else:
        schema_name, name = split_name(ddl.environment, named)
        if schema_name is not None:
            place = creation_schema(ddl.environment, schema_name, name)
        if place.oid != table.schema_oid:  # a sequence has the schema of its table
            raise no_relation(f"{place.name}.{table.name}")
        if find_relation_oid(ddl.catalog, name, place.oid) is not None:
            raise DuplicateTable(f'relation "{name}" already exists')
    given = (option for option in draft.options if option.name != "sequence_name")
    options = [ast.DefElem("as", draft.type), *given]  # a second AS is an error
    is_identity = draft.ownership == DependencyType.INTERNAL
    _check_type(ddl, options)
    sequence, state = with_options(Sequence(0, draft.type), None, options, is_identity=is_identity)
    sequence = replace(
        sequence,
        owner_relid=table.oid,
        owner_attnum=column.attnum,
        ownership=draft.ownership,
    )
    _insert(ddl, place, name, sequence, state, table.owner, table.persistence)
    literal = ast.Constant("string", quote_qualified_identifier(place.name, name))
    regclass = ast.TypeCast(literal, ast.TypeName(("pg_catalog", "regclass")))
    return ast.FuncCall(("pg_catalog", "nextval"), (regclass,))


def _create_sequence(ddl: Ddl, statement: ast.CreateSequence) -> str:
    target = statement.relation
    message = f'relation "{target.name}" already exists'
    if statement.if_not_exists and _is_taken(ddl, _place(ddl, target), target.name):
        ddl.notice(f"{message}, skipping", sqlstate=DuplicateTable.sqlstate)
        return "CREATE SEQUENCE"
    _check_type(ddl, statement.options)
    sequence, state = with_options(Sequence(0), None, statement.options)
    place = _place(ddl, target)
    if _is_taken(ddl, place, target.name):
        raise DuplicateTable(message)
    owner = _owner_option(statement.options)
    if owner is not None:
        sequence = _with_owner(ddl, sequence, owner, ddl.session.role_oid, place.oid)
    persistence = RelPersistence.UNLOGGED if statement.is_unlogged else place.persistence
    _insert(ddl, place, target.name, sequence, state, ddl.session.role_oid, persistence)
    return "CREATE SEQUENCE"


def _place(ddl: Ddl, target: ast.RangeVar) -> Schema:
    return relation_schema(ddl.environment, target)


def _is_taken(ddl: Ddl, place: Schema, name: str) -> bool:
    return find_relation_oid(ddl.catalog, name, place.oid) is not None


def _alter_sequence(ddl: Ddl, statement: ast.AlterSequence) -> str:
    name = statement.relation
    parts = (name.name,) if name.schema is None else (name.schema, name.name)
    relation = find_relation(ddl, parts, missing_ok=statement.missing_ok)
    if relation is None:
        return "ALTER SEQUENCE"
    sequence = get_sequence(ddl.catalog, relation.oid)
    if sequence is None:
        raise WrongObjectType(
            f'cannot open relation "{relation.name}"',
            detail=f"This operation is not supported for {relation.kind.plural}.",
        )
    ddl.privileges.check_relation_owner(relation)
    changed = change_sequence(ddl, sequence, statement.options)
    owner = _owner_option(statement.options)
    if owner is not None:
        changed = _with_owner(ddl, changed, owner, relation.owner, relation.schema_oid)
        update_sequence(ddl.catalog, changed)
    return "ALTER SEQUENCE"


def _owner_option(options: Items[ast.DefElem]) -> ast.DefElem | None:
    return next((option for option in options if option.name == "owned_by"), None)


def _insert(
    ddl: Ddl,
    place: Schema,
    name: str,
    sequence: Sequence,
    state: State,
    owner: int,
    persistence: RelPersistence,
) -> None:
    oid = ddl.catalog.new_oid()
    relation = Relation(
        oid,
        name,
        place.name,
        place.oid,
        RelKind.SEQUENCE,
        owner,
        "",
        persistence,
        ReplicaIdentity.NOTHING,
        _COLUMNS,
    )
    ddl.made.add(oid)
    insert_relation(ddl.catalog, relation)
    insert_sequence(ddl.catalog, replace(sequence, relid=oid), state)


# ---------------------------------------------------------------------------------------------
# Options


def _number(option: ast.DefElem) -> int:
    assert option.value is not None
    return int(text.canonical("int8", option.value))


def _options_by_name(options: Items[ast.DefElem]) -> dict[str, ast.DefElem]:
    """Return the options of a sequence by name.

    Raises:
        SqlSyntaxError: an option is given twice, or is only for identity columns.
    """
    given: dict[str, ast.DefElem] = {}
    for option in options:
        if option.name in given:
            raise SqlSyntaxError("conflicting or redundant options", position=option.pos)
        if option.name == "sequence_name":
            raise SqlSyntaxError("invalid sequence option SEQUENCE NAME", position=option.pos)
        given[option.name] = option
    return given


def _check_type(ddl: Ddl, options: Items[ast.DefElem]) -> None:
    """Check that the type of AS exists.

    Raises:
        UndefinedObject, InvalidSchemaName: the type, or its schema, does not exist.
    """
    for option in _options_by_name(options).values():
        if option.type_name is not None:
            type_of(ddl.environment, option.type_name)


def with_options(
    sequence: Sequence,
    state: State | None,
    options: Items[ast.DefElem],
    *,
    is_identity: bool = False,
) -> tuple[Sequence, State]:
    """Apply options to a sequence.  Return the sequence and its new state (init_params).

    Args:
        state: last_value and is_called of the sequence; None for a new sequence.

    Raises:
        PostgresError: an option is wrong, or the options contradict each other.
    """
    given = _options_by_name(options)
    type_ = sequence.type
    if "as" in given:
        type_ = (given["as"].value or "").removeprefix("pg_catalog.")
    check_countable(type_, is_identity=is_identity)
    increment = _number(given["increment"]) if "increment" in given else sequence.increment
    if increment == 0:
        raise InvalidParameterValue("INCREMENT must not be zero")
    cycles = given["cycle"].value == "true" if "cycle" in given else sequence.cycles
    sequence = replace(sequence, increment=increment, cycles=cycles)
    minimum, maximum = _limits(sequence, type_, given, is_new=state is None)
    start = sequence.start
    if "start" in given:
        start = _number(given["start"])
    elif state is None:
        start = minimum if increment > 0 else maximum
    _check_within("START", start, minimum, maximum)
    last = (start, False) if state is None else state
    if "restart" in given:
        option = given["restart"]
        last = (start if option.value is None else _number(option), False)
    _check_within("RESTART", last[0], minimum, maximum)
    cache = _number(given["cache"]) if "cache" in given else sequence.cache
    if cache <= 0:
        raise InvalidParameterValue(f"CACHE ({cache}) must be greater than zero")
    changed = replace(
        sequence, type=type_, start=start, maximum=maximum, minimum=minimum, cache=cache
    )
    return changed, last


def _limits(
    sequence: Sequence, type_: str, given: dict[str, ast.DefElem], *, is_new: bool
) -> tuple[int, int]:
    """Return the minimum and the maximum.  A limit that equals the old type's limit becomes the new
    type's limit.
    """
    old, new, ascends = _LIMITS[sequence.type], _LIMITS[type_], sequence.increment > 0
    changes = not is_new and "as" in given
    resets_maximum = changes and sequence.maximum == old - 1
    resets_minimum = changes and sequence.minimum == -old
    maximum, minimum = sequence.maximum, sequence.minimum
    if "maxvalue" in given and given["maxvalue"].value is not None:
        maximum = _number(given["maxvalue"])
    elif is_new or "maxvalue" in given or resets_maximum:
        maximum = new - 1 if ascends or resets_maximum else -1
    _check_limit("MAXVALUE", maximum, type_)
    if "minvalue" in given and given["minvalue"].value is not None:
        minimum = _number(given["minvalue"])
    elif is_new or "minvalue" in given or resets_minimum:
        minimum = -new if not ascends or resets_minimum else 1
    _check_limit("MINVALUE", minimum, type_)
    if minimum >= maximum:
        raise InvalidParameterValue(f"MINVALUE ({minimum}) must be less than MAXVALUE ({maximum})")
    return minimum, maximum


def _check_limit(word: str, value: int, type_: str) -> None:
    if not -_LIMITS[type_] <= value < _LIMITS[type_]:
        raise InvalidParameterValue(
            f"{word} ({value}) is out of range for sequence data type {_SHOWN[type_]}"
        )


def check_countable(type_: str, *, is_identity: bool) -> None:
    """Check that a sequence can have a data type.

    Raises:
        InvalidParameterValue: the type is not an integer type.
    """
    if type_ not in _LIMITS:
        what = "identity column" if is_identity else "sequence"
        raise InvalidParameterValue(f"{what} type must be smallint, integer, or bigint")


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


def change_sequence(
    ddl: Ddl, sequence: Sequence, options: Items[ast.DefElem], *, is_identity: bool = False
) -> Sequence:
    """Change the options of a sequence.  A limit that equals the old type's limit becomes the new
    type's limit.

    Raises:
        PostgresError: an option is wrong.
    """
    state = sequence_state(ddl.catalog, sequence.relid)
    _check_type(ddl, options)
    changed, last = with_options(sequence, state, options, is_identity=is_identity)
    if any(option.name != "owned_by" for option in options):
        return rewrite_sequence(ddl.catalog, changed, last)
    return changed


def _with_owner(
    ddl: Ddl, sequence: Sequence, option: ast.DefElem, owner: int, schema_oid: int
) -> Sequence:
    """Return a sequence that belongs to the column in OWNED BY (process_owned_by).

    Args:
        owner, schema_oid: the role that owns the sequence, and the schema of the sequence.
    """
    *table_name, column_name = option.names
    if not table_name:
        if column_name != "none":
            raise SqlSyntaxError(
                "invalid OWNED BY option", hint="Specify OWNED BY table.column or OWNED BY NONE."
            )
        changed = replace(sequence, owner_relid=0, owner_attnum=0, ownership=DependencyType.NONE)
    else:
        table, column = _owning_column(ddl, tuple(table_name), column_name, owner, schema_oid)
        changed = replace(
            sequence,
            owner_relid=table.oid,
            owner_attnum=column.attnum,
            ownership=DependencyType.AUTO,
        )
    if sequence.ownership == DependencyType.INTERNAL:
        raise FeatureNotSupported(
            "cannot change ownership of identity sequence",
            detail=f'Sequence "{ddl.relation(sequence.relid).name}" is linked to table'
            f' "{ddl.relation(sequence.owner_relid).name}".',
        )
    return changed


def _owning_column(
    ddl: Ddl, table_name: tuple[str, ...], column_name: str, owner: int, schema_oid: int
) -> tuple[Relation, Column]:
    schema_name, name = split_name(ddl.environment, table_name)
    oid = ddl.environment.relation_oid(schema_name, name)
    if oid is None:
        raise no_relation(".".join(table_name))
    elsewhere = "sequence must be in same schema as table it is linked to"
    if oid < FIRST_USER_OID:
        raise ObjectNotInPrerequisiteState(elsewhere)
    table = ddl.relation(oid)
    if table.kind not in (
        RelKind.TABLE,
        RelKind.PARTITIONED_TABLE,
        RelKind.VIEW,
        RelKind.FOREIGN_TABLE,
    ):
        raise WrongObjectType(
            f'sequence cannot be owned by relation "{table.name}"',
            detail=f"This operation is not supported for {table.kind.plural}.",
        )
    if table.owner != owner:
        raise ObjectNotInPrerequisiteState("sequence must have same owner as table it is linked to")
    if table.schema_oid != schema_oid:
        raise ObjectNotInPrerequisiteState(elsewhere)
    column = table.column(column_name)
    if column is None:
        raise no_column(column_name, table.name)
    return table, column

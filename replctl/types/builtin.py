"""PostgreSQL's own types, operators, functions and casts: the rows of pg_type, pg_operator,
pg_proc, pg_cast and pg_collation that initdb creates, with look-ups for the analysis.

The rows come from a PostgreSQL 17 server (`.ci/generate_types.py`).  All other modules identify a
type by its catalog name (`int4`, `_int4`, `bpchar`), and look up other facts in its `Type`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import TypeVar

from replctl.record import dataclass
from replctl.types.function_kind import ArgumentMode, FunctionKind, Parallel, Volatility
from replctl.types.type_kind import (
    CastMethod,
    CoercionCode,
    TypeAlign,
    TypeCategory,
    TypeKind,
    TypeStorage,
)

FIRST_USER_OID = 16384  # FirstNormalObjectId in transam.h


@dataclass(frozen=True, slots=True)
class Type:
    """A row of pg_type: `name` is typname, `sql_name` is format_type() without a modifier."""

    oid: int
    name: str
    sql_name: str
    length: int
    kind: TypeKind
    category: TypeCategory
    is_preferred: bool
    delimiter: str
    is_by_value: bool
    align: TypeAlign
    storage: TypeStorage
    element: str | None  # typelem of a true array, else None (also for point and name)
    array: str | None
    collation: str | None
    has_typmod: bool
    has_btree: bool
    has_hash: bool
    is_composite: bool = False  # made by CREATE TYPE ... AS (...); False for row types of tables

    @property
    def is_array(self) -> bool:
        return self.category == TypeCategory.ARRAY and self.element is not None

    @property
    def is_builtin(self) -> bool:
        return self.oid < FIRST_USER_OID


POLYMORPHIC = frozenset(
    "anyelement anyarray anynonarray anyenum anyrange anymultirange anycompatible"
    " anycompatiblearray "
    "anycompatiblenonarray anycompatiblerange anycompatiblemultirange".split()
)


@dataclass(frozen=True, slots=True)
class Operator:
    """A row of pg_operator; `left` is None for a prefix operator."""

    oid: int
    name: str
    left: str | None
    right: str
    result: str
    function: str
    function_oid: int
    commutator: str | None
    negator: str | None
    volatility: Volatility
    is_strict: bool
    schema: str = "pg_catalog"
    can_merge: bool = False
    can_hash: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """A row of pg_proc."""

    oid: int
    name: str
    argument_types: tuple[str, ...]
    result: str
    kind: FunctionKind
    volatility: Volatility
    is_strict: bool
    returns_set: bool
    variadic: str | None  # element type of the last argument, if VARIADIC
    defaults: tuple[str, ...]  # texts of the defaults of the last arguments
    source: str
    argument_names: tuple[str, ...]  # of the input arguments; '' for one without a name
    columns: tuple[tuple[str, str], ...]  # (name, type) of OUT and TABLE arguments
    schema: str = "pg_catalog"
    cost: float = 100
    rows: float = 0  # estimated, of a set
    parallel: Parallel = Parallel.UNSAFE
    is_leakproof: bool = False


_T = TypeVar("_T")
_WithOid = TypeVar("_WithOid", bound=Operator | Function)


@dataclass(frozen=True, slots=True)
class Cast:
    """A row of pg_cast."""

    source: str
    target: str
    function: str | None
    function_oid: int
    context: CoercionCode
    method: CastMethod
    volatility: Volatility | None
    argument_count: int


@dataclass(frozen=True, slots=True)
class SystemRelation:
    """A catalog or a system view: `kind` is r or v; columns are (name, type)."""

    oid: int
    name: str
    kind: str
    columns: tuple[tuple[str, str], ...]
    schema: str = "pg_catalog"


@cache
def types() -> dict[str, Type]:
    """Return all built-in types by catalog name."""
    result = {}
    for row in builtin_rows("pg_type"):
        is_true_array = row["typcategory"] == TypeCategory.ARRAY
        result[row["typname"]] = Type(
            oid=int(row["oid"]),
            name=row["typname"],
            sql_name=row["sql_name"],
            length=int(row["typlen"]),
            kind=TypeKind(row["typtype"]),
            category=TypeCategory(row["typcategory"]),
            is_preferred=row["typispreferred"] == "t",
            delimiter=row["typdelim"],
            is_by_value=row["typbyval"] == "t",
            align=TypeAlign(row["typalign"]),
            storage=TypeStorage(row["typstorage"]),
            element=row["typelem"] or None if is_true_array else None,
            array=row["typarray"] or None,
            collation=row["typcollation"] or None,
            has_typmod=row["has_typmod"] == "t",
            has_btree=row["has_btree"] == "t",
            has_hash=row["has_hash"] == "t",
        )
    return result


@cache
def types_by_oid() -> dict[int, Type]:
    """Return all built-in types by OID."""
    return {type_.oid: type_ for type_ in types().values()}


@cache
def operators() -> _Named[Operator]:
    """Return all built-in operators by operator name, in the order of their OIDs."""
    return _Named(("pg_operator",), "oprname", _operator)


@cache
def operator_by_oid() -> Mapping[int, Operator]:
    """Return all built-in operators by OID."""
    return _ByOid(operators())


@cache
def functions() -> _Named[Function]:
    """Return all built-in functions and aggregates by name, in the order of their OIDs, and
    replctl's own.
    """
    return _Named(("pg_proc", "own_proc"), "proname", _function)


@cache
def function_by_oid() -> Mapping[int, Function]:
    """Return all built-in functions by OID."""
    return _ByOid(functions())


@dataclass(frozen=True, slots=True)
class RestrictedRelation:
    """A system relation with restricted access.

    Attributes:
        readable: the columns that every role may read.
        roles: the predefined roles that may read all columns.
        calls: OIDs of the restricted functions that the view calls.
    """

    readable: frozenset[str]
    roles: tuple[str, ...]
    calls: tuple[int, ...]


@cache
def restricted_functions() -> dict[int, tuple[str, ...]]:
    """Return the built-in functions with restricted access by OID, each with the predefined roles
    that may call it (PostgreSQL's initial privileges).
    """
    rows = builtin_rows("restricted")
    return {int(row["oid"]): _names(row["roles"]) for row in rows if row["kind"] == "function"}


@cache
def restricted_relations() -> dict[str, RestrictedRelation]:
    """Return the system relations with restricted access, by name."""
    return {
        row["name"]: RestrictedRelation(
            frozenset(_names(row["readable"])),
            _names(row["roles"]),
            tuple(map(int, _names(row["calls"]))),
        )
        for row in builtin_rows("restricted")
        if row["kind"] == "relation"
    }


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


@cache
def casts() -> dict[tuple[str, str], Cast]:
    """Return the rows of pg_cast by (source, target)."""
    result = {}
    for row in builtin_rows("pg_cast"):
        result[row["castsource"], row["casttarget"]] = Cast(
            source=row["castsource"],
            target=row["casttarget"],
            function=row["castfunc"] or None,
            function_oid=int(row["castfunc_oid"] or 0),
            context=CoercionCode(row["castcontext"]),
            method=CastMethod(row["castmethod"]),
            volatility=Volatility(row["provolatile"]) if row["provolatile"] else None,
            argument_count=int(row["pronargs"] or 0),
        )
    return result


@cache
def collations() -> dict[str, int]:
    """Return OIDs of the collations in every cluster, by name."""
    return {row["collname"]: int(row["oid"]) for row in builtin_rows("pg_collation")}


@cache
def system_columns() -> dict[str, tuple[int, str]]:
    """Return attnum and type of the columns of every table (ctid, xmin, ...), by name."""
    return {
        row["attname"]: (int(row["attnum"]), row["typname"])
        for row in builtin_rows("pg_system_column")
    }


@cache
def system_relations() -> dict[str, SystemRelation]:
    """Return the relations of pg_catalog and replctl's own, by name."""
    return _relations("pg_catalog")


@cache
def information_schema() -> dict[str, SystemRelation]:
    """Return the views of information_schema by name; its domains are replaced by their base
    types.
    """
    return _relations("information_schema")


@cache
def not_null_system_columns() -> frozenset[tuple[int, str]]:
    """Return the columns of system relations that cannot be NULL, as OID and column name."""
    return frozenset(
        (int(row["oid"]), row["attname"])
        for row in builtin_rows("pg_system_relation")
        if row["attnotnull"] == "t"
    )


@cache
def system_relations_by_oid() -> dict[int, SystemRelation]:
    """Return the relations of pg_catalog and of information_schema by OID."""
    relations = (*system_relations().values(), *information_schema().values())
    return {relation.oid: relation for relation in relations}


@cache
def system_attributes(schema: str) -> dict[str, list[dict[str, str]]]:
    """Return the rows of all columns of a schema's relations, by relation."""
    files = {
        "pg_catalog": ("pg_system_relation", "own_system_relation"),
        "information_schema": ("information_schema",),
    }
    found: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in (row for file in files[schema] for row in builtin_rows(file)):
        found[row["relname"]].append(row)
    return found


@cache
def system_indexes() -> dict[int, list[dict[str, str]]]:
    """Return the rows of all indexes of catalogs, by the catalog's OID."""
    found: dict[int, list[dict[str, str]]] = defaultdict(list)
    for row in builtin_rows("pg_system_index"):
        found[int(row["indrelid"])].append(row)
    return found


def _relations(schema: str) -> dict[str, SystemRelation]:
    return {
        name: SystemRelation(
            int(rows[0]["oid"]),
            name,
            rows[0]["relkind"],
            tuple((row["attname"], row["typname"]) for row in rows),
            schema,
        )
        for name, rows in system_attributes(schema).items()
    }


class KeywordCategory(StrEnum):
    """The kinds of names that a keyword may be (keywords.h; pg_get_keywords.catcode)."""

    UNRESERVED = "U"
    COL_NAME = "C"  # not of a function or a type
    TYPE_FUNC_NAME = "T"  # only of a function or a type
    RESERVED = "R"


@cache
def keywords() -> dict[str, tuple[KeywordCategory, bool]]:
    """Return all keywords: the category of each, and whether it may be a label without AS."""
    return {
        row["word"]: (KeywordCategory(row["catcode"]), row["barelabel"] == "t")
        for row in builtin_rows("pg_keywords")
    }


class _Named(Mapping[str, tuple[_T, ...]]):
    """The rows of data files by name.  A row is parsed when its name is looked up, because a short
    command needs only few of the thousands of rows.
    """

    def __init__(
        self, sources: Sequence[str], name: str, make: Callable[[dict[str, str]], _T]
    ) -> None:
        self._header, rows = _lines(sources[0])
        for own in sources[1:]:
            rows += _lines(own)[1]
        self._make = make
        self._made: dict[str, tuple[_T, ...]] = {}
        column, oid = self._header.index(name), self._header.index("oid")
        self._rows: dict[str, list[list[str]]] = defaultdict(list)
        #: The names of the rows by OID.
        self.names: dict[int, str] = {}
        for row in rows:
            self._rows[row[column]].append(row)
            self.names[int(row[oid])] = row[column]

    def __getitem__(self, name: str) -> tuple[_T, ...]:
        if name not in self._made:
            if name not in self._rows:
                raise KeyError(name)
            rows = (dict(zip(self._header, row, strict=True)) for row in self._rows[name])
            self._made[name] = tuple(self._make(row) for row in rows)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


class _ByOid(Mapping[int, _WithOid]):
    """The rows of `_Named` by OID."""

    def __init__(self, named: _Named[_WithOid]) -> None:
        self._named: _Named[_WithOid] = named

    def __getitem__(self, oid: int) -> _WithOid:
        return next(item for item in self._named[self._named.names[oid]] if item.oid == oid)

    def __iter__(self) -> Iterator[int]:
        return iter(self._named.names)

    def __len__(self) -> int:
        return len(self._named.names)


def _operator(row: dict[str, str]) -> Operator:
    return Operator(
        oid=int(row["oid"]),
        name=row["oprname"],
        left=row["oprleft"] or None,
        right=row["oprright"],
        result=row["oprresult"],
        function=row["oprcode"],
        function_oid=int(row["oprcode_oid"]),
        commutator=row["oprcom"] or None,
        negator=row["oprnegate"] or None,
        volatility=Volatility(row["provolatile"]),
        is_strict=row["proisstrict"] == "t",
        can_merge=row["oprcanmerge"] == "t",
        can_hash=row["oprcanhash"] == "t",
    )


@cache
def _argument_modes(letters: str) -> tuple[ArgumentMode, ...]:
    return tuple(map(ArgumentMode, letters.split(","))) if letters else ()


def _function(row: dict[str, str]) -> Function:
    argument_types = tuple(filter(None, row["proargtypes"].split(",")))
    names = row["proargnames"].split(",") if row["proargnames"] else []
    modes = _argument_modes(row["proargmodes"]) or (ArgumentMode.IN,) * len(names)
    all_types = row["proallargtypes"].split(",") if row["proallargtypes"] else list(argument_types)
    inputs = [name for name, mode in zip(names, modes, strict=False) if mode.is_input]
    outputs = [
        (name, type_)
        for name, mode, type_ in zip(names, modes, all_types, strict=False)
        if mode.is_output
    ]
    count = int(row["pronargdefaults"])
    return Function(
        oid=int(row["oid"]),
        name=row["proname"],
        argument_types=argument_types,
        result=row["prorettype"],
        kind=FunctionKind(row["prokind"]),
        volatility=Volatility(row["provolatile"]),
        is_strict=row["proisstrict"] == "t",
        returns_set=row["proretset"] == "t",
        variadic=row["provariadic"] or None,
        defaults=tuple(_split_defaults(row["proargdefaults"])) if count else (),
        source=row["prosrc"],
        argument_names=tuple(inputs) if inputs else ("",) * len(argument_types),
        columns=tuple(outputs),
        cost=float(row["procost"]),
        rows=float(row["prorows"]),
        parallel=Parallel(row["proparallel"]),
        is_leakproof=row["proleakproof"] == "t",
    )


def _split_defaults(text: str) -> list[str]:
    """Split at commas outside of quotes and brackets: `NULL::name, false, ARRAY['a', 'b']` becomes
    its items.
    """
    items, depth, quoted, start = [], 0, False, 0
    for i, char in enumerate(text):
        if char == "'":
            quoted = not quoted
        elif not quoted:
            depth += (char in "([{") - (char in ")]}")
            if char == "," and depth == 0:
                items.append(text[start:i].strip())
                start = i + 1
    items.append(text[start:].strip())
    return items


@cache
def type_descriptions() -> dict[int, str]:
    """Return the comments on the builtin types, by OID."""
    return {int(row["objoid"]): row["description"] for row in builtin_rows("pg_type_description")}


def builtin_rows(name: str) -> list[dict[str, str]]:
    """Return the rows of data/NAME.tsv."""
    header, rows = _lines(name)
    return [dict(zip(header, row, strict=True)) for row in rows]


def _lines(name: str) -> tuple[list[str], list[list[str]]]:
    """Return the column names and the rows of data/NAME.tsv.  Its format is COPY's text format,
    without escapes that matter here.
    """
    text = (files("replctl.types") / "data" / f"{name}.tsv").read_text(encoding="utf-8")
    header, *rows = (line.split("\t") for line in text.splitlines())
    return header, rows

"""Options, publications and subscriptions."""

from __future__ import annotations

from typing import Literal, TypeAlias

from replctl.parser.ast.expression import RangeVar, RawExpr, TypeName
from replctl.parser.ast.syntax_node import Node
from replctl.record import dataclass

# ---------------------------------------------------------------------------------------------
# Options


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DefElem(Node):
    """`name = value` in a WITH list; `value` is None if there is only a name.

    A value that is written as a name or keyword (publish = insert, slot_name = NONE) is a text with
    `is_name`.  A number or string literal is its text; `is_integer` marks integers.  `names` are
    the parts of a name that may be qualified.  `type_name` is a type.
    """

    name: str
    value: str | None
    is_name: bool = False
    is_integer: bool = False
    names: tuple[str, ...] = ()
    type_name: TypeName | None = None


# ---------------------------------------------------------------------------------------------
# Publications and subscriptions


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PublicationTable(Node):
    relation: RangeVar
    columns: tuple[str, ...] | None = None
    where: RawExpr | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PublicationSchema(Node):
    """A schema; `name` is None for CURRENT_SCHEMA."""

    name: str | None


PublicationObject: TypeAlias = PublicationTable | PublicationSchema


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CreatePublication(Node):
    name: str
    objects: tuple[PublicationObject, ...] = ()
    for_all_tables: bool = False
    options: tuple[DefElem, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AlterPublication(Node):
    """ALTER PUBLICATION: SET (options), or ADD, SET or DROP of objects."""

    name: str
    action: Literal["options", "add", "set", "drop"]
    objects: tuple[PublicationObject, ...] = ()
    options: tuple[DefElem, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CreateSubscription(Node):
    name: str
    conninfo: str
    publications: tuple[str, ...]
    options: tuple[DefElem, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AlterSubscription(Node):
    name: str
    action: Literal[
        "options", "connection", "refresh", "refresh_tables", "add_publication", "set_publication",
        "drop_publication", "enable", "disable", "skip",
    ]  # fmt: skip
    conninfo: str | None = None
    publications: tuple[str, ...] = ()
    relations: tuple[RangeVar, ...] = ()
    options: tuple[DefElem, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DropSubscription(Node):
    name: str
    missing_ok: bool = False
    behavior: Literal["restrict", "cascade"] = "restrict"

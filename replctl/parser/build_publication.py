"""Build the nodes of publication.lark and subscription.lark, and of WITH lists, even of tables."""

from __future__ import annotations

from dataclasses import replace

from lark import Token

from replctl.errors import SqlSyntaxError
from replctl.parser import ast
from replctl.parser.build_parts import start_of
from replctl.record import dataclass


@dataclass(frozen=True)
class _Continuation(ast.Node):
    """A publication object without TABLE or TABLES IN SCHEMA: it is of the same kind as the
    previous one.

    `relation` is None for CURRENT_SCHEMA.
    """

    relation: ast.RangeVar | None
    columns: tuple[str, ...] | None = None
    where: ast.RawExpr | None = None


class PublicationBuilder:
    """Builds the nodes of publications and subscriptions.  Each rule or alias has a method."""

    # -- publications

    def create_publication(
        self, name: Token, options: tuple[ast.DefElem, ...] | None
    ) -> ast.CreatePublication:
        return ast.CreatePublication(str(name), options=options or (), pos=start_of(name))

    def create_publication_all(
        self, name: Token, options: tuple[ast.DefElem, ...] | None
    ) -> ast.CreatePublication:
        return ast.CreatePublication(
            str(name), for_all_tables=True, options=options or (), pos=start_of(name)
        )

    def create_publication_for(
        self,
        name: Token,
        objects: tuple[ast.PublicationObject, ...],
        options: tuple[ast.DefElem, ...] | None,
    ) -> ast.CreatePublication:
        return ast.CreatePublication(str(name), objects, options=options or (), pos=start_of(name))

    def alter_publication_options(
        self, name: Token, options: tuple[ast.DefElem, ...]
    ) -> ast.AlterPublication:
        return ast.AlterPublication(str(name), "options", options=options, pos=start_of(name))

    def alter_publication(
        self, name: Token, action: str, objects: tuple[ast.PublicationObject, ...]
    ) -> ast.AlterPublication:
        return ast.AlterPublication(str(name), action, objects, pos=start_of(name))  # type: ignore[arg-type]

    def alter_publication_action(self, word: Token) -> str:
        return str(word)

    def publication_objects(
        self, *items: ast.PublicationObject | _Continuation
    ) -> tuple[ast.PublicationObject, ...]:
        """Give each continuation the kind of the object before it (preprocess_pubobj_list in
        gram.y).
        """
        objects: list[ast.PublicationObject] = []
        for item in items:
            if not isinstance(item, _Continuation):
                objects.append(item)
            elif not objects:
                raise SqlSyntaxError(
                    "invalid publication object list",
                    detail="One of TABLE or TABLES IN SCHEMA must be specified before a standalone"
                    " table or schema name.",
                    position=item.pos,
                )
            elif isinstance(objects[-1], ast.PublicationTable):
                objects.append(_continued_table(item))
            else:
                objects.append(_continued_schema(item))
        return tuple(objects)

    def publication_table(
        self,
        word: Token,
        relation: ast.RangeVar,
        columns: tuple[Token, ...] | None,
        where: ast.RawExpr | None,
    ) -> ast.PublicationTable:
        return ast.PublicationTable(relation, _columns(columns), where, pos=relation.pos)

    def publication_schema(self, word: Token, name: Token) -> ast.PublicationSchema:
        return ast.PublicationSchema(str(name), pos=start_of(name))

    def publication_current_schema(self, word: Token, name: Token) -> ast.PublicationSchema:
        return ast.PublicationSchema(None, pos=start_of(name))

    def publication_continuation(
        self, relation: ast.RangeVar, columns: tuple[Token, ...] | None, where: ast.RawExpr | None
    ) -> _Continuation:
        return _Continuation(relation, _columns(columns), where, pos=relation.pos)

    def publication_continued_current_schema(self, word: Token) -> _Continuation:
        return _Continuation(None, pos=start_of(word))

    # -- options

    def definition_list(self, *options: ast.DefElem) -> tuple[ast.DefElem, ...]:
        return options

    def def_flag(self, name: Token) -> ast.DefElem:
        return ast.DefElem(str(name), None, pos=start_of(name))

    def def_elem(self, name: Token, value: ast.DefElem) -> ast.DefElem:
        return replace(value, name=str(name), pos=start_of(name))

    def def_qualified(
        self, namespace: Token, name: Token, value: ast.DefElem | None
    ) -> ast.DefElem:
        qualified = f"{namespace}.{name}"
        if value is None:
            return ast.DefElem(qualified, None, pos=start_of(namespace))
        return replace(value, name=qualified, pos=start_of(namespace))

    def def_name(self, word: Token) -> ast.DefElem:
        return ast.DefElem("", str(word), is_name=True)

    def def_type(self, type_name: ast.TypeName) -> ast.DefElem:
        """Return a name that is not a keyword, or a type (TypeNameToString in parse_type.c)."""
        text = ".".join(type_name.names) + ("[]" if type_name.array_bounds else "")
        return ast.DefElem("", text, is_name=True)

    def def_operator(self, parts: tuple[Token, ...]) -> ast.DefElem:
        return ast.DefElem("", ".".join(parts), is_name=True)

    def def_literal(self, literal: Token) -> ast.DefElem:
        return ast.DefElem("", str(literal), is_integer=literal.type == "ICONST")

    def def_signed(self, sign: Token, number: Token) -> ast.DefElem:
        text = f"-{number}" if sign.type == "MINUS" else str(number)
        return ast.DefElem("", text, is_integer=number.type == "ICONST")

    # -- subscriptions

    def create_subscription(
        self,
        name: Token,
        conninfo: Token,
        publications: tuple[Token, ...],
        options: tuple[ast.DefElem, ...] | None,
    ) -> ast.CreateSubscription:
        return ast.CreateSubscription(
            str(name),
            str(conninfo),
            tuple(map(str, publications)),
            options or (),
            pos=start_of(name),
        )

    def alter_subscription_options(
        self, name: Token, options: tuple[ast.DefElem, ...]
    ) -> ast.AlterSubscription:
        return ast.AlterSubscription(str(name), "options", options=options, pos=start_of(name))

    def alter_subscription_connection(self, name: Token, conninfo: Token) -> ast.AlterSubscription:
        return ast.AlterSubscription(str(name), "connection", str(conninfo), pos=start_of(name))

    def alter_subscription_refresh(
        self, name: Token, options: tuple[ast.DefElem, ...] | None
    ) -> ast.AlterSubscription:
        return ast.AlterSubscription(
            str(name), "refresh", options=options or (), pos=start_of(name)
        )

    def alter_subscription_refresh_tables(
        self,
        name: Token,
        relations: tuple[ast.RangeVar, ...],
        options: tuple[ast.DefElem, ...] | None,
    ) -> ast.AlterSubscription:
        return ast.AlterSubscription(
            str(name),
            "refresh_tables",
            relations=relations,
            options=options or (),
            pos=start_of(name),
        )

    def alter_subscription_publications(
        self,
        name: Token,
        action: str,
        publications: tuple[Token, ...],
        options: tuple[ast.DefElem, ...] | None,
    ) -> ast.AlterSubscription:
        return ast.AlterSubscription(
            str(name),
            f"{action}_publication",  # type: ignore[arg-type]
            publications=tuple(map(str, publications)),
            options=options or (),
            pos=start_of(name),
        )

    def alter_subscription_enable(self, name: Token) -> ast.AlterSubscription:
        return ast.AlterSubscription(str(name), "enable", pos=start_of(name))

    def alter_subscription_disable(self, name: Token) -> ast.AlterSubscription:
        return ast.AlterSubscription(str(name), "disable", pos=start_of(name))

    def alter_subscription_skip(
        self, name: Token, options: tuple[ast.DefElem, ...]
    ) -> ast.AlterSubscription:
        return ast.AlterSubscription(str(name), "skip", options=options, pos=start_of(name))

    def subscription_action(self, word: Token) -> str:
        return str(word)

    def drop_subscription(
        self, if_exists: bool | None, name: Token, behavior: str | None
    ) -> ast.DropSubscription:
        return ast.DropSubscription(
            str(name),
            bool(if_exists),
            behavior or "restrict",  # type: ignore[arg-type]
            pos=start_of(name),
        )


def _columns(names: tuple[Token, ...] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(map(str, names))


def _continued_table(item: _Continuation) -> ast.PublicationTable:
    if item.relation is None:
        raise SqlSyntaxError("invalid table name", position=item.pos)
    return ast.PublicationTable(item.relation, item.columns, item.where, pos=item.pos)


def _continued_schema(item: _Continuation) -> ast.PublicationSchema:
    if item.relation is None:
        return ast.PublicationSchema(None, pos=item.pos)
    if item.where is not None:
        raise SqlSyntaxError("WHERE clause not allowed for schema", position=item.pos)
    if item.columns is not None:
        raise SqlSyntaxError("column specification not allowed for schema", position=item.pos)
    if item.relation.schema is not None or not item.relation.inherit:
        raise SqlSyntaxError("invalid schema name", position=item.pos)
    return ast.PublicationSchema(item.relation.name, pos=item.pos)

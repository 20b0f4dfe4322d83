"""Build the nodes of policy.lark: row-level security."""

from __future__ import annotations

from lark import Token

from replctl.errors import SqlSyntaxError
from replctl.parser import ast
from replctl.parser.build_parts import role_name, start_of

Names = tuple[Token, ...]


class PolicyBuilder:
    """Builds the nodes of policy.lark.  Each rule or alias has a method."""

    def create_policy(
        self,
        name: Token,
        relation: ast.RangeVar,
        kind: str | None,
        command: Token | None,
        roles: Names | None,
        using: ast.RawExpr | None,
        check: ast.RawExpr | None,
    ) -> ast.CreatePolicy:
        return ast.CreatePolicy(
            str(name),
            relation,
            kind != "restrictive",
            "all" if command is None else str(command),
            _names(roles or ()),
            using,
            check,
            pos=start_of(name),
        )

    def policy_kind(self, kind: Token) -> str:
        if kind not in ("permissive", "restrictive"):
            raise SqlSyntaxError(
                f'unrecognized row security option "{kind}"',
                hint="Only PERMISSIVE or RESTRICTIVE policies are supported currently.",
                position=start_of(kind),
            )
        return str(kind)

    def alter_policy(
        self,
        name: Token,
        relation: ast.RangeVar,
        roles: Names | None,
        using: ast.RawExpr | None,
        check: ast.RawExpr | None,
    ) -> ast.AlterPolicy:
        listed = None if roles is None else _names(roles)
        return ast.AlterPolicy(str(name), relation, listed, using, check, pos=start_of(name))

    def drop_on_table(
        self,
        word: Token,
        if_exists: bool | None,
        name: Token,
        relation: Names,
        behavior: str | None,
    ) -> ast.Drop:
        return ast.Drop(
            str(word),  # type: ignore[arg-type]
            ((*_names(relation), str(name)),),
            bool(if_exists),
            behavior or "restrict",  # type: ignore[arg-type]
            pos=start_of(name),
            name_positions=(start_of(name),),
        )

    def rename_policy(
        self,
        word: Token,
        if_exists: bool | None,
        name: Token,
        relation: ast.RangeVar,
        new_name: Token,
    ) -> ast.Rename:
        parts = (relation.catalog, relation.schema, relation.name)
        return ast.Rename(
            "policy",
            tuple(part for part in parts if part is not None),
            str(new_name),
            str(name),
            bool(if_exists),
            pos=start_of(name),
        )


def _names(names: Names) -> tuple[str, ...]:
    return tuple(map(role_name, names))

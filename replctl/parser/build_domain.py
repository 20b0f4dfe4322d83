"""Build the nodes of CREATE DOMAIN and ALTER DOMAIN in utility.lark."""

from __future__ import annotations

import dataclasses
from typing import Any

from lark import Token

from replctl.parser import ast
from replctl.parser.build_parts import Names, name_texts, start_of
from replctl.parser.build_table import defined_column


class DomainBuilder:
    """Builds the nodes of domains.  Each rule or alias has a method."""

    def create_domain(
        self, name: Names, type_name: ast.TypeName, *constraints: Any
    ) -> ast.CreateDomain:
        column = defined_column(name[-1], constraints)
        definition = dataclasses.replace(column, type_name=type_name)
        return ast.CreateDomain(name_texts(name), definition, pos=start_of(name[0]))

    def domain_set_default(self, name: Names, expr: ast.RawExpr) -> ast.AlterDomain:
        return ast.AlterDomain(name_texts(name), "set default", expr, pos=start_of(name[0]))

    def domain_drop_default(self, name: Names) -> ast.AlterDomain:
        return ast.AlterDomain(name_texts(name), "drop default", pos=start_of(name[0]))

    def domain_set_not_null(self, name: Names) -> ast.AlterDomain:
        return ast.AlterDomain(name_texts(name), "set not null", pos=start_of(name[0]))

    def domain_drop_not_null(self, name: Names) -> ast.AlterDomain:
        return ast.AlterDomain(name_texts(name), "drop not null", pos=start_of(name[0]))

    def domain_add_constraint(self, name: Names, constraint: ast.Constraint) -> ast.AlterDomain:
        return ast.AlterDomain(
            name_texts(name), "add constraint", constraint=constraint, pos=start_of(name[0])
        )

    def domain_drop_constraint(
        self, name: Names, if_exists: bool | None, constraint: Token, behavior: str | None
    ) -> ast.AlterDomain:
        return ast.AlterDomain(
            name_texts(name),
            "drop constraint",
            name=str(constraint),
            missing_ok=bool(if_exists),
            pos=start_of(name[0]),
        )

    def domain_validate_constraint(self, name: Names, constraint: Token) -> ast.AlterDomain:
        return ast.AlterDomain(
            name_texts(name), "validate constraint", name=str(constraint), pos=start_of(name[0])
        )

    def rename_domain_constraint(self, name: Names, old: Token, new: Token) -> ast.Rename:
        return ast.Rename(
            "constraint", name_texts(name), str(new), str(old), relation_type="domain",
            pos=start_of(name[0]),
        )  # fmt: skip

    def comment_on_domain_constraint(
        self, word: Token, name: Token, domain_word: Token, domain: Names, text: Token
    ) -> ast.Comment:
        return ast.Comment(
            "constraint",
            name_texts(domain),
            None if text.type == "NULL" else str(text) or None,
            str(name),
            sub_type="domain",
            pos=start_of(domain[0]),
        )

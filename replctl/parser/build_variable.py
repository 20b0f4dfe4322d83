"""Build the nodes of SET, RESET, SHOW and ALTER SYSTEM in utility.lark."""

from __future__ import annotations

from dataclasses import replace

from lark import Token

from replctl.errors import SqlSyntaxError
from replctl.parser import ast
from replctl.parser.build_parts import check_no_keyword
from replctl.parser.build_type import INTERVAL_BITS, INTERVAL_FULL_RANGE

#: The fields that an interval as a time zone may have.
_ZONE_FIELDS = 1 << INTERVAL_BITS["hour"] | 1 << INTERVAL_BITS["minute"]


class VariableBuilder:
    """Builds the nodes of settings.  Each rule or alias has a method."""

    def variable_scope(self, word: Token) -> str:
        return str(word)

    def variable_name(self, *parts: Token) -> str:
        return ".".join(parts)

    def variable_values(self, *values: Token | str) -> tuple[str, ...]:
        return tuple(map(str, values))

    def variable_set(
        self, scope: str | None, name: str, values: tuple[str, ...]
    ) -> ast.VariableSet:
        return ast.VariableSet(name, values, scope == "local")

    def variable_set_default(self, scope: str | None, name: str) -> ast.VariableSet:
        return ast.VariableSet(name, (), scope == "local")

    def _variable_set_token(
        self, scope: str | None, name: str, value: Token | str | None
    ) -> ast.VariableSet:
        is_default = value is None or (
            isinstance(value, Token) and value.type in ("DEFAULT", "LOCAL")
        )
        return self.variable_set(scope, name, () if is_default else (str(value),))

    def set_time_zone(self, scope: str | None, value: Token | str) -> ast.VariableSet:
        """Return SET TIME ZONE; LOCAL means DEFAULT.

        Unlike most names, the name of the zone must not even be an unreserved keyword.
        """
        if isinstance(value, Token) and value.type == "IDENT":
            check_no_keyword(value)
        return self._variable_set_token(scope, "timezone", value)

    def set_time_zone_interval(
        self,
        scope: str | None,
        word: Token,
        literal: Token,
        fields: tuple[ast.Constant, ...] | None,
    ) -> ast.VariableSet:
        modifiers = tuple(str(field.value) for field in fields or ())
        if fields and int(modifiers[0]) & ~_ZONE_FIELDS:
            raise SqlSyntaxError(
                "time zone interval must be HOUR or HOUR TO MINUTE", position=fields[0].pos
            )
        found = self.variable_set(scope, "timezone", (str(literal),))
        return replace(found, interval=modifiers)

    def set_time_zone_precision(
        self, scope: str | None, word: Token, precision: Token, literal: Token
    ) -> ast.VariableSet:
        found = self.variable_set(scope, "timezone", (str(literal),))
        return replace(found, interval=(str(INTERVAL_FULL_RANGE), str(precision)))

    def set_schema(self, scope: str | None, schema: Token) -> ast.VariableSet:
        return self.variable_set(scope, "search_path", (str(schema),))

    def set_names(self, scope: str | None, encoding: Token | None) -> ast.VariableSet:
        return self._variable_set_token(scope, "client_encoding", encoding)

    def set_role(self, scope: str | None, role: Token) -> ast.VariableSet:
        return self.variable_set(scope, "role", (str(role),))

    def set_session_authorization(self, scope: str | None, role: Token) -> ast.VariableSet:
        return self._variable_set_token(scope, "session_authorization", role)

    def set_transaction(self, scope: str | None, modes: tuple[ast.DefElem, ...]) -> ast.VariableSet:
        return ast.VariableSet("transaction", tuple(mode.name for mode in modes), is_local=True)

    def set_session_characteristics(
        self, scope: str | None, modes: tuple[ast.DefElem, ...]
    ) -> ast.VariableSet:
        return ast.VariableSet(
            "session characteristics", tuple(mode.name for mode in modes), scope == "local"
        )

    def reset_transaction_isolation(self) -> ast.VariableSet:
        return ast.VariableSet("transaction_isolation", reset=True)

    def show_transaction_isolation(self) -> ast.VariableShow:
        return ast.VariableShow("transaction_isolation")

    def show_session_authorization(self) -> ast.VariableShow:
        return ast.VariableShow("session_authorization")

    def variable_reset(self, name: str | Token) -> ast.VariableSet:
        return ast.VariableSet(str(name), reset=True)

    def reset_time_zone(self) -> ast.VariableSet:
        return ast.VariableSet("timezone", reset=True)

    def reset_session_authorization(self) -> ast.VariableSet:
        return ast.VariableSet("session_authorization", reset=True)

    def alter_system(self, name: str, values: tuple[str, ...]) -> ast.AlterSystem:
        return ast.AlterSystem(ast.VariableSet(name, values))

    def alter_system_reset(self, name: str | Token) -> ast.AlterSystem:
        return ast.AlterSystem(self.variable_reset(name))

    def variable_show(self, name: str) -> ast.VariableShow:
        return ast.VariableShow(name)

    def variable_show_all(self, word: Token) -> ast.VariableShow:
        return ast.VariableShow("all")

    def show_time_zone(self) -> ast.VariableShow:
        return ast.VariableShow("timezone")

"""Build the nodes of role.lark: roles, GRANT and REVOKE."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from lark import Token

from replctl.errors import ReservedName, SqlSyntaxError
from replctl.parser import ast
from replctl.parser.build_parts import role_name, start_of
from replctl.parser.syntax_error import MisplacedToken
from replctl.types.builtin import keywords

Names = tuple[Token, ...]
_FLAGS = frozenset(
    prefix + name
    for name in (
        "superuser", "createrole", "replication", "createdb", "login", "bypassrls", "inherit",
    )
    for prefix in ("", "no")
)  # fmt: skip


class _Target(NamedTuple):
    """The objects of a GRANT or REVOKE: their kind and names.  Functions also have `arguments`."""

    kind: Any
    names: tuple[tuple[str, ...], ...]
    arguments: tuple[tuple[ast.FunctionParameter, ...] | None, ...] = ()


class RoleBuilder:
    """Builds the nodes of role.lark.  Each rule or alias has a method."""

    def create_role(
        self, kind: Token, name: Token, with_word: object, *options: ast.RoleOption
    ) -> ast.CreateRole:
        return ast.CreateRole(str(kind), _role(name), options, pos=start_of(name))  # type: ignore[arg-type]

    def alter_role(
        self, kind: Token, name: Token, with_word: object, *options: ast.RoleOption
    ) -> ast.AlterRole:
        return ast.AlterRole(role_name(name), options, pos=start_of(name))

    def alter_group(self, kind: Token, name: Token, word: Token, roles: Names) -> ast.GrantRole:
        return ast.GrantRole(
            str(word) == "add", (role_name(name),), _names(roles), alters_group=True
        )

    def rename_role(self, kind: Token, name: Token, new_name: Token) -> ast.Rename:
        return ast.Rename("role", (_role(name),), _role(new_name), pos=start_of(name))

    def drop_role(self, kind: Token, if_exists: bool | None, roles: Names) -> ast.DropRole:
        return ast.DropRole(_names(roles), bool(if_exists))

    def role_list(self, *roles: Token) -> Names:
        return roles

    def role_option_flag(self, word: Token) -> ast.RoleOption:
        if str(word) not in _FLAGS:
            is_quoted = len(word) != (word.end_pos or 0) - start_of(word)
            if not is_quoted and str(word) in keywords():  # PostgreSQL expects no keyword here
                raise MisplacedToken(word)
            raise SqlSyntaxError(f'unrecognized role option "{word}"', position=start_of(word))
        return ast.RoleOption(str(word), pos=start_of(word))

    def role_option_value(self, word: Token, value: Token | str) -> ast.RoleOption:
        is_null = isinstance(value, Token) and value.type == "NULL"
        return ast.RoleOption(str(word), None if is_null else str(value), pos=start_of(word))

    def role_option_encrypted(self, word: Token, name: Token, value: Token) -> ast.RoleOption:
        return ast.RoleOption(str(name), str(value), pos=start_of(word))

    def role_option_unencrypted(self, word: Token, name: Token, value: Token) -> ast.RoleOption:
        raise SqlSyntaxError(
            "UNENCRYPTED PASSWORD is no longer supported",
            hint="Remove UNENCRYPTED to store the password in encrypted form instead.",
            position=start_of(word),
        )

    def role_option_roles(self, word: Token, roles: Names) -> ast.RoleOption:
        name = "role" if str(word) == "user" else str(word)
        return ast.RoleOption(name, roles=_names(roles), pos=start_of(word))

    def role_option_in(self, word: Token, kind: Token, roles: Names) -> ast.RoleOption:
        return ast.RoleOption("in", roles=_names(roles), pos=start_of(word))

    # -- GRANT, REVOKE

    def grant_on(
        self,
        privileges: tuple[ast.Privilege, ...],
        target: _Target,
        grantees: tuple[str, ...],
        with_option: bool | None,
        granted_by: Token | None,
    ) -> ast.Grant:
        return ast.Grant(
            True,
            privileges,
            target.kind,
            target.names,
            grantees,
            bool(with_option),
            granted_by=_text(granted_by),
            arguments=target.arguments,
        )

    def revoke_stmt(
        self,
        privileges: tuple[ast.Privilege, ...],
        target: _Target,
        grantees: tuple[str, ...],
        granted_by: Token | None,
        behavior: str | None,
    ) -> ast.Grant:
        return ast.Grant(
            False,
            privileges,
            target.kind,
            target.names,
            grantees,
            granted_by=_text(granted_by),
            behavior=behavior or "restrict",  # type: ignore[arg-type]
            arguments=target.arguments,
        )

    def revoke_grant_option(self, *parts: Any) -> ast.Grant:
        return dataclasses.replace(self.revoke_stmt(*parts), only_option=True)

    def grant_role(
        self,
        granted: tuple[ast.Privilege, ...],
        members: Names,
        options: tuple[tuple[str, bool], ...] | None,
        granted_by: Token | None,
    ) -> ast.GrantRole:
        return ast.GrantRole(
            True, _roles(granted), _names(members), options or (), _text(granted_by)
        )

    def revoke_role(
        self,
        granted: tuple[ast.Privilege, ...],
        members: Names,
        granted_by: Token | None,
        behavior: str | None,
    ) -> ast.GrantRole:
        return ast.GrantRole(
            False,
            _roles(granted),
            _names(members),
            (),
            _text(granted_by),
            behavior or "restrict",  # type: ignore[arg-type]
        )

    def revoke_role_option(self, option: Token, *parts: Any) -> ast.GrantRole:
        return dataclasses.replace(self.revoke_role(*parts), options=((str(option), False),))

    def grant_role_options(self, *options: tuple[str, bool]) -> tuple[tuple[str, bool], ...]:
        return options

    def grant_role_option(self, name: Token, value: Token) -> tuple[str, bool]:
        if str(name) not in ("admin", "inherit", "set"):
            raise SqlSyntaxError(f'unrecognized role option "{name}"', position=start_of(name))
        return str(name), value.type != "FALSE"

    def all_privileges(self, word: Token, columns: Names | None) -> tuple[ast.Privilege, ...]:
        return (ast.Privilege("all", _names(columns or ()), pos=start_of(word)),)

    def privilege_list(self, *privileges: ast.Privilege) -> tuple[ast.Privilege, ...]:
        return privileges

    def privilege(self, name: Token, columns: Names | None) -> ast.Privilege:
        return ast.Privilege(str(name), _names(columns or ()), pos=start_of(name))

    def grantees(self, *roles: Token) -> tuple[str, ...]:
        return _names(roles)

    def target_tables(self, *relations: Any) -> _Target:
        return _Target("table", _relations(relations))

    def target_sequences(self, *relations: Any) -> _Target:
        return _Target("sequence", _relations(relations))

    def target_databases(self, names: Names) -> _Target:
        return _Target("database", _each(names))

    def target_schemas(self, names: Names) -> _Target:
        return _Target("schema", _each(names))

    def target_functions(self, word: Token, *functions: Any) -> _Target:
        names = tuple(_names(function.name) for function in functions)
        return _Target(str(word), names, tuple(function.arguments for function in functions))

    def target_types(self, word: Token, names: tuple[Names, ...]) -> _Target:
        return _Target(str(word), tuple(map(_names, names)))

    def target_all_tables(self, names: Names) -> _Target:
        return _Target("all tables", _each(names))

    def target_all_sequences(self, names: Names) -> _Target:
        return _Target("all sequences", _each(names))

    def target_all_functions(self, word: Token, names: Names) -> _Target:
        return _Target(f"all {word}", _each(names))

    # -- default privileges, settings, owned objects

    def alter_default_privileges(self, *parts: Any) -> ast.AlterDefaultPrivileges:
        *options, grant = parts
        found: dict[str, tuple[str, ...]] = {}
        for kind, names, pos in options:
            if kind in found:
                raise SqlSyntaxError("conflicting or redundant options", position=pos)
            found[kind] = _names(names)
        return ast.AlterDefaultPrivileges(
            found.get("roles", ()), found.get("schemas", ()), grant, pos=grant.pos
        )

    def default_acl_schemas(self, word: Token, names: Names) -> tuple[str, Names, int]:
        return "schemas", names, start_of(word)

    def default_acl_roles(self, word: Token, names: Names) -> tuple[str, Names, int]:
        return "roles", names, start_of(word)

    def default_acl_target(self, word: Token) -> _Target:
        kind = {"tables": "table", "sequences": "sequence", "types": "type", "schemas": "schema"}
        return _Target(kind.get(str(word), "function"), ())

    def default_acl_action(
        self,
        privileges: tuple[ast.Privilege, ...],
        target: _Target,
        grantees: tuple[str, ...],
        with_option: bool | None,
    ) -> ast.Grant:
        return self.grant_on(privileges, target, grantees, with_option, None)

    def default_acl_revoke(
        self,
        privileges: tuple[ast.Privilege, ...],
        target: _Target,
        grantees: tuple[str, ...],
        behavior: str | None,
    ) -> ast.Grant:
        return self.revoke_stmt(privileges, target, grantees, None, behavior)

    def default_acl_revoke_option(self, *parts: Any) -> ast.Grant:
        return dataclasses.replace(self.default_acl_revoke(*parts), only_option=True)

    def drop_owned(self, roles: Names, behavior: str | None) -> ast.DropOwned:
        return ast.DropOwned(_names(roles), behavior or "restrict")  # type: ignore[arg-type]

    def reassign_owned(self, roles: Names, new_owner: Token) -> ast.ReassignOwned:
        return ast.ReassignOwned(_names(roles), role_name(new_owner))

    def alter_role_set(
        self, kind: Token, name: Token, database: Token | None, change: ast.VariableSet
    ) -> ast.AlterRoleSet:
        return ast.AlterRoleSet(role_name(name), _text(database), change, pos=start_of(name))

    def alter_all_roles_set(
        self, kind: Token, word: Token, database: Token | None, change: ast.VariableSet
    ) -> ast.AlterRoleSet:
        return ast.AlterRoleSet(None, _text(database), change, pos=start_of(word))

    def alter_database_set(self, name: Token, change: ast.VariableSet) -> ast.AlterDatabaseSet:
        return ast.AlterDatabaseSet(str(name), change, pos=start_of(name))


def _role(name: Token) -> str:
    """Return the name of a role that is created or renamed (RoleId in gram.y).

    Raises:
        ReservedName: the name is "public" or a keyword such as CURRENT_ROLE.
    """
    if name.type in ("CURRENT_ROLE", "CURRENT_USER", "SESSION_USER"):
        word = name.type
        raise ReservedName(f"{word} cannot be used as a role name here", position=start_of(name))
    if name == "public":
        raise ReservedName('role name "public" is reserved', position=start_of(name))
    return str(name)


def _roles(privileges: tuple[ast.Privilege, ...]) -> tuple[str, ...]:
    for privilege in privileges:
        if privilege.columns:
            raise SqlSyntaxError("column names cannot be included in GRANT/REVOKE ROLE")
    return tuple(privilege.name for privilege in privileges)


def _relations(relations: Any) -> tuple[tuple[str, ...], ...]:
    (items,) = relations
    return tuple(
        tuple(part for part in (item.catalog, item.schema, item.name) if part is not None)
        for item in items
    )


def _names(names: Names) -> tuple[str, ...]:
    return tuple(map(role_name, names))


def _each(names: Names) -> tuple[tuple[str, ...], ...]:
    return tuple((str(name),) for name in names)


def _text(token: Token | None) -> str | None:
    return None if token is None else role_name(token)

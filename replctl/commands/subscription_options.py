"""The options of CREATE and ALTER SUBSCRIPTION (parse_subscription_options() in
subscriptioncmds.c).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from typing import Any, TypeVar

from replctl.catalog.pg_replication_slots import validate_slot_name
from replctl.catalog.pg_subscription import RESYNC_MAX_DELETE, Resync, Streaming, Subscription
from replctl.catalog.table_copy import CopyMethod, Deletion
from replctl.commands.define import get_boolean, get_string, options_by_name
from replctl.errors import InvalidParameterValue, SqlSyntaxError
from replctl.parser import ast
from replctl.record import dataclass

_SYNCHRONOUS_COMMIT = ("local", "remote_write", "remote_apply", "on", "off")
_ALL = 100
_Choice = TypeVar("_Choice", bound=Enum)
_HIDDEN_SYNCHRONOUS_COMMIT = ("true", "yes", "1", "false", "no", "0")


@dataclass(frozen=True, slots=True)
class SubscriptionOptions:
    """The options of a WITH list.  Options that are missing in it have their defaults.

    Attributes:
        given: the names of the options in the list.
        copies_by: how `copy_data` treats existing rows.
        replace, reconcile, delete: options about existing rows, which PostgreSQL does not have.
        create_tables: create missing tables.
        table_options: the storage parameters of these tables, in the form of a WITH list.
    """

    given: frozenset[str]
    connect: bool = True
    enabled: bool = True
    create_slot: bool = True
    copy_data: bool = True
    copies_by: CopyMethod = CopyMethod.APPEND
    replace: bool = False
    reconcile: bool = False
    delete: Deletion | None = None
    refresh: bool = True
    slot_name: str | None = None
    synchronous_commit: str = "off"
    binary: bool = False
    streaming: Streaming = Streaming.OFF
    two_phase: bool = False
    disable_on_error: bool = False
    password_required: bool = True
    run_as_owner: bool = False
    failover: bool = False
    origin: str = "any"
    resync: Resync = Resync.MANUAL
    resync_max_delete: int = RESYNC_MAX_DELETE
    table_map: str = ""
    create_tables: bool = False
    table_options: str = ""
    follow_schema: bool = False

    def has(self, name: str) -> bool:
        """Return whether an option was given."""
        return name in self.given

    def check_combinations(self) -> None:
        """Check that no two options exclude each other.

        Raises:
            SqlSyntaxError: two options exclude each other.
        """
        self.check_table_options()
        if not self.connect:
            for name in ("enabled", "create_slot", "copy_data", "create_tables"):
                if name in self.given and getattr(self, name):
                    raise exclusive("connect = false", f"{name} = true")
        if "slot_name" not in self.given or self.slot_name is not None:
            return
        for name in ("enabled", "create_slot"):
            if not getattr(self, name):
                continue
            if name in self.given:
                raise exclusive("slot_name = NONE", f"{name} = true")
            raise SqlSyntaxError(f"subscription with slot_name = NONE must also set {name} = false")

    def check_table_options(self) -> None:
        """Check that `create_tables` is not given with `refresh = false`, and that `table_options`
        is not given without `create_tables`.

        Raises:
            SqlSyntaxError: one of these combinations is given.
        """
        if self.create_tables and not self.refresh:
            raise exclusive("refresh = false", "create_tables = true")
        if self.table_options and not self.create_tables:
            raise SqlSyntaxError(
                "table_options is only allowed with create_tables = true",
                hint="Add create_tables = true to the options.",
            )

    def check_deletion(self, *, is_reconciled: bool) -> None:
        """Check that `delete` is only given for a reconcile.

        Raises:
            SqlSyntaxError: `delete` is given without a reconcile.
        """
        if self.delete is None or is_reconciled:
            return
        said = f"delete = {self.delete.value}"
        if self.replace:
            raise exclusive("replace = true", said)
        if not self.copy_data:
            raise exclusive("copy_data = false", said)
        raise SqlSyntaxError(
            f"{said} is only allowed where tables are reconciled",
            hint="Add copy_data = reconcile to the options.",
        )

    def applied(self, subscription: Subscription) -> Subscription:
        """Return the subscription with the given options that need no conversion."""
        names = (
            "synchronous_commit", "binary", "streaming", "disable_on_error", "password_required",
            "run_as_owner", "failover", "origin", "resync", "resync_max_delete",
            "follow_schema",
        )  # fmt: skip
        changed: dict[str, Any] = {name: getattr(self, name) for name in names if self.has(name)}
        return replace(subscription, **changed)


def parse_options(options: Sequence[ast.DefElem], known: Sequence[str]) -> SubscriptionOptions:
    """Return the options of a list.  It may contain only options in `known`.

    Raises:
        SqlSyntaxError, InvalidParameterValue, InvalidName: an option or its value is wrong.
    """
    given = options_by_name(options, known, "subscription")
    values = {name: _value(option) for name, option in given.items()}
    if values.get("copy_data") is CopyMethod.RECONCILE:
        values |= {"copy_data": True, "copies_by": CopyMethod.RECONCILE}
    if values.get("connect") is False:
        for name in ("enabled", "create_slot", "copy_data"):
            values.setdefault(name, False)
    return SubscriptionOptions(frozenset(given), **values)


def _value(option: ast.DefElem) -> Any:
    match option.name:
        case "slot_name":
            name = get_string(option)
            if name == "none":
                return None
            validate_slot_name(name)
            return name
        case "copy_data":
            if option.value is not None and option.value.lower() == CopyMethod.RECONCILE.value:
                return CopyMethod.RECONCILE
            return get_boolean(option)
        case "delete":
            return _choice(option, Deletion)
        case "resync":
            return _choice(option, Resync)
        case "resync_max_delete":
            return _percentage(option)
        case "synchronous_commit":
            return _synchronous_commit(get_string(option))
        case "streaming":
            return _streaming(option)
        case "table_map" | "table_options":
            return get_string(option)
        case "origin":
            origin = get_string(option)
            if origin.lower() not in ("any", "none"):
                raise InvalidParameterValue(f'unrecognized origin value: "{origin}"')
            return origin
        case _:
            return get_boolean(option)


def _synchronous_commit(value: str) -> str:
    if value.lower() not in (*_SYNCHRONOUS_COMMIT, *_HIDDEN_SYNCHRONOUS_COMMIT):
        raise InvalidParameterValue(
            f'invalid value for parameter "synchronous_commit": "{value}"',
            hint=f"Available values: {', '.join(_SYNCHRONOUS_COMMIT)}.",
        )
    return value


def _choice(option: ast.DefElem, choices: type[_Choice]) -> _Choice:
    value = get_string(option)
    try:
        return choices(value.lower())
    except ValueError:
        raise InvalidParameterValue(
            f'unrecognized {option.name} value: "{value}"',
            hint=f"Available values: {', '.join(choice.value for choice in choices)}.",
        ) from None


def _percentage(option: ast.DefElem) -> int:
    value = get_string(option)
    if not (value.isascii() and value.isdecimal() and int(value) <= _ALL):
        raise InvalidParameterValue(
            f'invalid value for option "{option.name}": "{value}"',
            detail=f"It is a percentage of the rows of a table, from 0 to {_ALL}.",
        )
    return int(value)


def _streaming(option: ast.DefElem) -> Streaming:
    if option.value is not None and option.value.lower() == "parallel":
        return Streaming.PARALLEL
    try:
        return Streaming.ON if get_boolean(option) else Streaming.OFF
    except SqlSyntaxError:
        raise SqlSyntaxError(f'{option.name} requires a Boolean value or "parallel"') from None


def exclusive(first: str, second: str) -> SqlSyntaxError:
    """Return the error for two options that exclude each other."""
    return SqlSyntaxError(f"{first} and {second} are mutually exclusive options")

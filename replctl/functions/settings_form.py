"""Rewrite expressions that depend on the session's TimeZone, DateStyle and similar settings.

The engines know only UTC and the canonical forms.  So the zone becomes an argument: `t::date` of a
timestamptz becomes the date of `t AT TIME ZONE 'Australia/Sydney'`.  replctl refuses expressions
that cannot be written in this way.

The functions also rewrite queries.  Then `transform` is the function that visits subqueries.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.expr.composite_text import is_composite
from replctl.expr.environment import Environment
from replctl.expr.user_type import without_user_types
from replctl.expr.value_text import is_shown_otherwise
from replctl.functions.session_value import time_value
from replctl.session import Session
from replctl.types import builtin, text
from replctl.types.date import utc_offset
from replctl.types.function_kind import Volatility
from replctl.types.shown import depends
from replctl.types.value_format import CANONICAL, ValueFormat

#: Returns a copy of an expression in which a function replaces nodes (nodes.transform).
Transform: TypeAlias = Callable[[Any, Callable[[Any], Any]], Any]

_TEXTS = frozenset(("text", "varchar", "bpchar", "name", "unknown", "cstring"))
#: Types whose input depends on TimeZone, DateStyle or IntervalStyle.
_READ_BY_SETTINGS = frozenset(
    """
    date time timetz timestamp timestamptz interval tsrange tstzrange daterange tsmultirange
    tstzmultirange datemultirange
    """.split()
)
_ZONED = frozenset(("timestamptz", "timetz", "tstzrange", "tstzmultirange"))
#: Functions that convert values of any type to text, or read text.
_TEXT_FUNCTIONS = frozenset(
    """
    concat concat_ws format quote_literal quote_nullable array_to_string textanycat anytextcat
    to_json to_jsonb row_to_json array_to_json json_build_array json_build_object jsonb_build_array
    jsonb_build_object json_object_agg jsonb_object_agg json_agg jsonb_agg json_agg_strict
    jsonb_agg_strict json_object_agg_strict jsonb_object_agg_strict json_object_agg_unique
    jsonb_object_agg_unique query_to_xml
    """.split()
)
#: Sources of functions that read text, or convert times to text, according to the settings.
_TEXT_SOURCES = frozenset(
    """
    jsonb_path_exists_tz jsonb_path_match_tz jsonb_path_query_tz jsonb_path_query_array_tz
    jsonb_path_query_first_tz json_populate_record jsonb_populate_record json_to_record
    jsonb_to_record json_to_recordset jsonb_to_recordset json_populate_recordset
    jsonb_populate_recordset to_timestamp to_date
    """.split()
)
#: Stable functions of these types that do not depend on the zone.
_WITHOUT_ZONE = frozenset(("timetz_zone", "timetz_izone"))
_DAY = 86400
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "cmp")


def computable(
    session: Session,
    environment: Environment,
    expr: nodes.Expr,
    transform: Transform = nodes.transform,
) -> nodes.Expr:
    """Return a default, a CHECK or a similar expression of the catalog as the engines compute it:
    without user-defined types, and by the settings of the session.

    Raises:
        FeatureNotSupported: the expression depends on a setting in an unsupported way (0A000).
    """
    check_row_texts(environment, expr, transform)
    result: nodes.Expr = in_form(session, without_user_types(environment, expr), transform)
    return result


def check_row_texts(
    environment: Environment, part: Any, transform: Transform = nodes.transform
) -> None:
    """Refuse an expression that converts a row to text, if the text depends on the session's
    settings.

    Args:
        part: an expression with user-defined types.

    Raises:
        FeatureNotSupported: the expression converts such a row (0A000).
    """

    def check(node: Any) -> None:
        if not isinstance(node, nodes.CoerceViaIO):
            return
        source = node.arg.type
        if is_composite(environment, source) and is_shown_otherwise(environment, source):
            shown = environment.format_type(source)
            raise _refusal(environment.value_format, f"cast of type {shown} to {node.type}")

    if environment.value_format != CANONICAL:
        transform(part, check)


def in_form(session: Session, part: Any, transform: Transform = nodes.transform) -> Any:
    """Rewrite an expression so that the engines, with UTC and the default settings, compute the
    result that it has with the session's settings.

    Raises:
        FeatureNotSupported: the expression depends on a setting in an unsupported way (0A000).
    """
    value_format = session.value_format
    return (
        part
        if value_format == CANONICAL
        else transform(part, _Rewriter(session, value_format, transform).replaced)
    )


class _Rewriter:
    def __init__(self, session: Session, value_format: ValueFormat, transform: Transform) -> None:
        self._session = session
        self._transform = transform
        self._format = value_format
        self._zone = nodes.Const("text", value_format.zone, collation="default")

    def replaced(self, node: Any) -> Any:
        """Return the replacement of a node; None to keep the node and visit its parts."""
        match node:
            case nodes.SqlValueFunction():
                value = time_value(self._session, node)
                return None if value is None else self._inside(value)
            case nodes.CoerceViaIO():
                self._check_text(node.arg.type, node.type)
            case nodes.FuncExpr(function_oid=oid):
                return self._call(node, builtin.function_by_oid().get(oid))
            case nodes.OpExpr(operator_oid=oid):
                operator = builtin.operator_by_oid().get(oid)
                found = None if operator is None else operator.function_oid
                return self._call(node, builtin.function_by_oid().get(found or 0))
            case nodes.ScalarArrayOpExpr(operator_oid=oid):
                self._check_operator(oid, node)
            case nodes.DistinctExpr(operator_oid=oid) | nodes.NullIfExpr(operator_oid=oid):
                self._check_operator(oid, node)
            case _ if hasattr(node, "function_oid"):  # an aggregate, or a window function
                function = builtin.function_by_oid().get(node.function_oid)
                if function is not None:
                    self._check(function, [arg.type for arg in node.args])
        return None

    def _inside(self, part: Any) -> Any:
        return self._transform(part, self.replaced)

    def _call(self, node: Any, function: builtin.Function | None) -> Any:
        if function is None:
            return None
        if not self._format.is_utc:
            if function.source == "time_timetz":
                return self._with_zone(self._inside(node.args[0]))
            make = _ZONE_ARGUMENT.get(function.source) or _ZONE_ARGUMENT_BY_OID.get(function.oid)
            if make is not None:
                made = make(self._zone, *(self._inside(arg) for arg in node.args))
                if made is not None:
                    return made
        self._check(function, [arg.type for arg in node.args])
        return None

    def _with_zone(self, value: nodes.Expr) -> nodes.Expr:
        """Return a time with the offset that the zone has at this time on the day of the
        transaction's start (time_timetz).
        """
        zone, now = self._format.time_zone, int(self._session.transaction_start.timestamp())
        today = (now + zone.at(now)[0]) // _DAY * _DAY
        times: tuple[int, ...] = (0, _DAY)  # the clock changes at most once a day
        if isinstance(value, nodes.Const) and value.value is not None:
            micros = text.parse("time", value.value)
            assert isinstance(micros, int)
            times = (micros // 1_000_000,)
        offsets = {zone.offset(today + seconds) for seconds in times}
        if len(offsets) > 1:
            raise self._refusal("cast of type time to timetz on a day when the offset changes")
        return _joined(value, utc_offset(offsets.pop()))

    def _check(self, function: builtin.Function, types: list[str]) -> None:
        """Refuse a function whose result depends on a setting."""
        name = function.name
        if function.source in _TEXT_SOURCES:
            raise self._refusal(f"function {name}()")
        is_text = name in _TEXT_FUNCTIONS or function.source in _TEXT_FUNCTIONS
        if is_text and any(depends(type_, self._format) for type_ in types):
            raise self._refusal(f"function {name}() of such values")
        if self._format.is_utc or function.source in _WITHOUT_ZONE:
            return
        is_zoned = (
            function.volatility == Volatility.STABLE
            or function.source == "in_range_timestamptz_interval"
        )
        if is_zoned and not _ZONED.isdisjoint(t.removeprefix("_") for t in types):
            raise self._refusal(f"function {name}({', '.join(types)})")

    def _check_operator(self, oid: int, node: Any) -> None:
        operator = builtin.operator_by_oid().get(oid)
        function = operator and builtin.function_by_oid().get(operator.function_oid)
        if function:
            types = [arg.type.removeprefix("_") for arg in node.args]
            self._check(function, types)

    def _check_text(self, source: str, target: str) -> None:
        """Refuse a conversion through text whose result depends on a setting."""
        value_format = self._format
        if depends(source, value_format):
            raise self._refusal(f"cast of type {source} to {target}")
        reads = (
            value_format.date_order != "MDY"
            or value_format.interval_style != "postgres"
            or not value_format.is_utc
        )
        if reads and source in _TEXTS and target.removeprefix("_") in _READ_BY_SETTINGS:
            raise self._refusal(f"cast of type {source} to {target}")

    def _refusal(self, what: str) -> FeatureNotSupported:
        return _refusal(self._format, what)


def _refusal(value_format: ValueFormat, what: str) -> FeatureNotSupported:
    changed = [f'{name} "{value}"' for name, value, _usual in value_format.changed()]
    return FeatureNotSupported(f"{what} is not supported with {', '.join(changed)}")


# ---------------------------------------------------------------------------------------------
# The zone as an argument


@cache
def _function(source: str, *types: str) -> builtin.Function:
    return next(
        function
        for function in builtin.function_by_oid().values()
        if function.source == source and function.argument_types == types
    )


def _made(source: str, *args: nodes.Expr, types: tuple[str, ...] | None = None) -> nodes.FuncExpr:
    function = _function(source, *(types or (arg.type for arg in args)))
    collation = "default" if "text" in function.argument_types else None
    return nodes.FuncExpr(
        function.oid,
        function.name,
        function.result,
        args,
        input_collation=collation,
        returns_set=function.returns_set,
    )


def _joined(value: nodes.Expr, offset: str) -> nodes.Expr:
    """Return a time with an offset, such as `+13`, as timetz."""
    zone = nodes.Const("text", offset, collation="default")
    shown = nodes.CoerceViaIO(value, "text", "explicit", "default")
    return nodes.CoerceViaIO(_made("textcat", shown, zone), "timetz", "explicit")


def _local(zone: nodes.Expr, value: nodes.Expr) -> nodes.FuncExpr:
    """Return the local time of a timestamptz in a zone."""
    return _made("timestamptz_zone", zone, value, types=("text", "timestamptz"))


def _moment(zone: nodes.Expr, value: nodes.Expr) -> nodes.FuncExpr:
    """Return the timestamptz of a local timestamp, or of the beginning of a date, in a zone."""
    if value.type == "date":
        value = _made("date_timestamp", value)
    return _made("timestamp_zone", zone, value, types=("text", "timestamp"))


def _field(zoned: str, plain: str) -> Callable[..., nodes.Expr | None]:
    """Return a function that builds extract(). It uses the local time of the zone; only epoch uses
    the timestamptz itself."""

    def make(zone: nodes.Expr, field: nodes.Expr, value: nodes.Expr) -> nodes.Expr | None:
        name = field.value if isinstance(field, nodes.Const) else None
        if name is None or name.lower().startswith("timezone"):
            return None
        if name.lower() == "epoch":
            return _made(zoned, field, value, types=("text", "timestamptz"))
        return _made(plain, field, _local(zone, value), types=("text", "timestamp"))

    return make


def _in_zone(source: str, *types: str) -> Callable[..., nodes.Expr]:
    """Return a function that builds the call of `source` with the zone as its last argument."""
    return lambda zone, *args: _made(source, *args, zone, types=types)


def _compared(name: str) -> Callable[..., nodes.Expr]:
    """Return a function that builds a comparison, and converts the operands to timestamptz."""

    def make(zone: nodes.Expr, left: nodes.Expr, right: nodes.Expr) -> nodes.Expr:
        sides = (
            side if side.type == "timestamptz" else _moment(zone, side) for side in (left, right)
        )
        return _made(f"timestamp_{name}", *sides, types=("timestamptz", "timestamptz"))

    return make


_ZONE_ARGUMENT: dict[str, Callable[..., nodes.Expr | None]] = {
    "timestamptz_date": lambda zone, value: _made("timestamp_date", _local(zone, value)),
    "timestamptz_time": lambda zone, value: _made("timestamp_time", _local(zone, value)),
    "timestamptz_timestamp": _local,
    "timestamp_timestamptz": _moment,
    "date_timestamptz": _moment,
    "timestamptz_at_local": _local,
    "timestamp_at_local": _moment,
    "timestamptz_trunc": _in_zone("timestamptz_trunc_zone", "text", "timestamptz", "text"),
    "timestamptz_pl_interval": _in_zone(
        "timestamptz_pl_interval_at_zone", "timestamptz", "interval", "text"
    ),
    "timestamptz_mi_interval": _in_zone(
        "timestamptz_mi_interval_at_zone", "timestamptz", "interval", "text"
    ),
    "generate_series_timestamptz": _in_zone(
        "generate_series_timestamptz_at_zone", "timestamptz", "timestamptz", "interval", "text"
    ),
    "timestamptz_age": lambda zone, *args: (
        _made("timestamp_age", *(_local(zone, arg) for arg in args)) if len(args) == 2 else None
    ),
    "timestamptz_part": _field("timestamptz_part", "timestamp_part"),
    "extract_timestamptz": _field("extract_timestamptz", "extract_timestamp"),
    "make_timestamptz": _in_zone(
        "make_timestamptz_at_timezone", "int4", "int4", "int4", "int4", "int4", "float8", "text"
    ),
    **{
        f"{left}_{name}_{right}": _compared(name)
        for name in _COMPARISONS
        for left, right in (
            ("date", "timestamptz"),
            ("timestamptz", "date"),
            ("timestamp", "timestamptz"),
            ("timestamptz", "timestamp"),
        )
    },
}

#: Like _ZONE_ARGUMENT, for functions that PostgreSQL defines in SQL, by OID.
_ZONE_ARGUMENT_BY_OID: dict[int, Callable[..., nodes.Expr | None]] = {
    2549: lambda zone, interval, value: _ZONE_ARGUMENT["timestamptz_pl_interval"](
        zone, value, interval
    ),
    1176: lambda zone, date, time: _moment(zone, _made("datetime_timestamp", date, time)),
}

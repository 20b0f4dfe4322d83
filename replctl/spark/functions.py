"""PostgreSQL's functions and operators in Spark SQL, each under the name that implements it (prosrc).

An integer result is computed in a wider type and cast back, so that Spark's overflow error names the type.
What is not here has no exact translation yet and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeAlias

from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.spark import numeric_sql
from replctl.spark.comparison import comparison, date_as_timestamp, interval_key, is_comparable
from replctl.spark.data_type import quote, storage_type
from replctl.spark.sql_value import SqlValue, raise_error_sql
from replctl.types import builtin

Arguments: TypeAlias = Sequence[SqlValue]
Constants: TypeAlias = Sequence[nodes.Const | None]
Translator: TypeAlias = Callable[[Arguments, Constants], str]


def call(
    source: str,
    args: Arguments,
    result: str,
    constants: Constants = (),
    name: str = "",
) -> SqlValue:
    """A call of the function that `source` implements.

    Args:
        result: PostgreSQL's type of the result.
        constants: for each argument the constant that it is, or None.
        name: what messages call the function.

    Raises:
        FeatureNotSupported: there is no exact translation.
    """
    operator = _comparison_operators().get(source)
    if operator is not None and len(args) == 2:
        return comparison(operator, *args)
    if source in numeric_sql.FUNCTIONS:
        return numeric_sql.FUNCTIONS[source](args, constants)
    template = TEMPLATES.get(source)
    if template is not None:
        text = template.format(*(_operand(arg) for arg in args))
        return SqlValue(f"({text})", result, storage_type(result))
    translator = TRANSLATORS.get(source)
    if translator is not None:
        return SqlValue(f"({translator(args, constants)})", result, storage_type(result))
    types = ", ".join(
        builtin.types()[arg.type].sql_name if arg.type in builtin.types() else arg.type
        for arg in args
    )
    raise FeatureNotSupported(f"function {name or source}({types}) is not supported")


def relabel(value: SqlValue, target: str) -> SqlValue:
    """A cast between binary-compatible types: text to varchar changes nothing, char(n) loses its blanks
    by a function before it gets here."""
    return SqlValue(value.text, target, value.spark)


def sql_value(name: str, type_: str, typmod: int) -> SqlValue:
    """CURRENT_TIMESTAMP and its like: the statement's time is Spark's."""
    text = {
        "current_timestamp": "current_timestamp()",
        "current_date": "CAST(current_timestamp() AS DATE)",
        "localtimestamp": "CAST(current_timestamp() AS TIMESTAMP_NTZ)",
        "localtime": "pmod(unix_micros(current_timestamp()), 86400000000L)",
    }.get(name)
    if text is None:
        raise FeatureNotSupported(f"{name.upper()} is not supported here")
    return SqlValue(text, type_, storage_type(type_, typmod))


def aggregate(expr: nodes.Aggref, translate: Callable[[nodes.Expr], SqlValue]) -> SqlValue:
    """An aggregate call."""
    args = [translate(arg) for arg in expr.args]
    condition = "" if expr.filter is None else f" FILTER (WHERE {translate(expr.filter).text})"
    distinct = "DISTINCT " if expr.is_distinct else ""
    if expr.is_star:
        return SqlValue(f"count(*){condition}", "int8", "BIGINT")
    name, value = expr.name, args[0]
    spark = storage_type(expr.type)
    match name:
        case "count":
            text = f"count({distinct}{_operand(value)}){condition}"
        case "min" | "max" if is_comparable(value):
            text, spark = f"{name}({value.text}){condition}", value.spark
        case "sum" | "avg":
            return numeric_sql.sum_or_average(expr, value, distinct, condition)
        case "bool_and" | "every":
            text = f"bool_and({value.text}){condition}"
        case "bool_or":
            text = f"bool_or({value.text}){condition}"
        case "string_agg" if not expr.order_by and len(args) == 2:
            text = f"array_join(collect_list({distinct}{value.text}){condition}, {args[1].text})"
        case "array_agg" if not expr.order_by:
            text, spark = (
                f"collect_list({distinct}{value.text}){condition}",
                f"ARRAY<{value.spark}>",
            )
        case _:
            raise FeatureNotSupported(f"aggregate function {name} is not supported")
    return SqlValue(text, expr.type, spark)


def window(expr: nodes.WindowFunc, translate: Callable[[nodes.Expr], SqlValue]) -> SqlValue:
    """A window function call."""
    if not expr.is_aggregate and expr.name not in _WINDOW_FUNCTIONS:
        raise FeatureNotSupported(f"window function {expr.name} is not supported")
    if expr.is_aggregate:
        called = aggregate(
            nodes.Aggref(
                expr.function_oid,
                expr.name,
                expr.type,
                expr.args,
                is_star=expr.is_star,
                filter=expr.filter,
            ),
            translate,
        )
    else:
        args = ", ".join(translate(arg).text for arg in expr.args)
        called = SqlValue(f"{expr.name}({args})", expr.type, storage_type(expr.type))
    partition = ", ".join(translate(item).text for item in expr.partition_by)
    order = ", ".join(sort_key(key, translate) for key in expr.order_by)
    parts = [
        f"PARTITION BY {partition}" if partition else "",
        f"ORDER BY {order}" if order else "",
        expr.frame,
    ]
    return SqlValue(
        f"{called.text} OVER ({' '.join(filter(None, parts))})", expr.type, called.spark
    )


def set_function_sql(name: str, args: Arguments, *, with_ordinality: bool = False) -> str:
    """What follows SELECT to give the rows that a set-returning function returns, as c1 (and c2, which
    counts them).

    Raises:
        FeatureNotSupported: the function has no translation.
    """
    match name:
        case "generate_series" if {arg.type for arg in args} <= {"int4", "int8"}:
            start, stop = args[0].text, args[1].text
            step = args[2].text if len(args) > 2 else "1"
            zero = raise_error_sql("22023", "step size cannot equal zero")
            rows = (
                f"CASE WHEN {step} = 0 THEN {zero} WHEN ({step} > 0) = ({start} <= {stop})"
                f" OR {start} = {stop} THEN sequence({start}, {stop}, {step}) END"
            )
        case "unnest" if len(args) == 1:
            rows = args[0].text
        case _:
            raise FeatureNotSupported(f"function {name} is not supported in FROM")
    if with_ordinality:
        return f"c1, CAST(place + 1 AS BIGINT) AS c2 FROM (SELECT posexplode({rows}) AS (place, c1))"
    return f"explode({rows}) AS c1"


def sort_key(key: nodes.SortKey, translate: Callable[[nodes.Expr], SqlValue]) -> str:
    """An ORDER BY item; NULLs are last unless asked for first, as PostgreSQL sorts them."""
    value = translate(key.expr)
    if not is_comparable(value):
        raise FeatureNotSupported(f"sorting by type {value.type} is not supported")
    direction = "DESC" if key.descending else "ASC"
    return f"{sortable(value)} {direction} NULLS {'FIRST' if key.nulls_first else 'LAST'}"


def sortable(value: SqlValue) -> str:
    """What Spark has to sort by to sort as PostgreSQL does."""
    if value.type == "bpchar":
        return f"rtrim({value.text})"
    if value.type == "interval":
        return interval_key(value.text)
    if value.type == "numeric" and value.decimal is None:
        return numeric_sql.sort_key(value)
    return value.text


_WINDOW_FUNCTIONS = {"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead",
                     "first_value", "last_value", "nth_value"}  # fmt: skip


@cache
def _comparison_operators() -> dict[str, str]:
    """The comparison that a function computes, for types whose comparison is known: int4lt -> <."""
    result = {}
    for name in ("=", "<>", "<", "<=", ">", ">="):
        for operator in builtin.operators()[name]:
            source = builtin.function_by_oid()[operator.function_oid].source
            if operator.left is not None:
                result[source] = name
    return result


def _operand(value: SqlValue) -> str:
    """A char(n) is text without its blanks, to most functions."""
    return f"rtrim({value.text})" if value.type == "bpchar" else value.text


def _integer(template: str, target: str) -> str:
    """An operation on integers: computed as BIGINT, so that leaving `target` is what overflows."""
    return f"CAST({template} AS {target})"


_WIDE = {"int2": "int4", "int4": "int8", "int8": "int8"}
_NAMES = {"int2": "SMALLINT", "int4": "INT", "int8": "BIGINT"}


def _integer_arithmetic() -> dict[str, str]:
    """+, -, *, / and % over all pairs of integers; the result is of the wider type."""
    result: dict[str, str] = {}
    operations = {"pl": "{0} + {1}", "mi": "{0} - {1}", "mul": "{0} * {1}", "div": "{0} div {1}"}
    digits = {"2": "int2", "4": "int4", "8": "int8"}
    for first, left in digits.items():
        for second, right in digits.items():
            wider = max(left, right)
            a, b = (f"CAST({{{i}}} AS BIGINT)" for i in (0, 1))
            prefix = f"int{first}" if first == second else f"int{first}{second}"
            for suffix, text in operations.items():
                computed = text.replace("{0}", a).replace("{1}", b)
                result[prefix + suffix] = _integer(computed, _NAMES[wider])
    for name, spark in _NAMES.items():
        result[f"{name}mod"] = "{0} % {1}"
        result[f"{name}um"] = _integer("0L - CAST({0} AS BIGINT)", spark)
        result[f"{name}abs"] = _integer("abs(CAST({0} AS BIGINT))", spark)
        result[f"{name}up"] = "{0}"
        result[f"{name}and"] = "{0} & {1}"
        result[f"{name}or"] = "{0} | {1}"
        result[f"{name}xor"] = "{0} ^ {1}"
        result[f"{name}not"] = "~{0}"
    for name in ("int4", "int8"):
        result[f"{name}shl"] = "shiftleft({0}, {1})"
        result[f"{name}shr"] = "shiftright({0}, {1})"
    return result


def _float_arithmetic() -> dict[str, str]:
    """Arithmetic of float8 and float4 with PostgreSQL's overflow, underflow and zero errors."""
    overflow = raise_error_sql("22003", "value out of range: overflow")
    underflow = raise_error_sql("22003", "value out of range: underflow")
    division = raise_error_sql("22012", "division by zero")
    result: dict[str, str] = {}
    pairs = {"float4": ("{0}", "{1}", "FLOAT"), "float8": ("{0}", "{1}", "DOUBLE"),
             "float48": ("CAST({0} AS DOUBLE)", "{1}", "DOUBLE"), "float84": ("{0}", "CAST({1} AS DOUBLE)", "DOUBLE")}  # fmt: skip
    for prefix, (a, b, _) in pairs.items():
        infinite = "abs({r}) = double('Infinity') AND abs({a}) <> double('Infinity') AND abs({b}) <> double('Infinity')"
        for suffix, sign in (("pl", "+"), ("mi", "-"), ("mul", "*")):
            r = f"({a} {sign} {b})"
            text = f"CASE WHEN {infinite.format(r=r, a=a, b=b)} THEN {overflow}"
            if sign == "*":
                text += f" WHEN {r} = 0 AND {a} <> 0 AND {b} <> 0 THEN {underflow}"
            result[prefix + suffix] = f"{text} ELSE {r} END"
        r = f"({a} / {b})"
        result[prefix + "div"] = (
            f"CASE WHEN {b} = 0 AND NOT isnan({a}) THEN {division} WHEN {b} = 0 THEN {a}"
            f" WHEN {infinite.format(r=r, a=a, b=b)} THEN {overflow} ELSE {r} END"
        )
    for name in ("float4", "float8"):
        result |= {f"{name}um": "-{0}", f"{name}abs": "abs({0})", f"{name}up": "{0}"}
    return result


def _float_to_integer(spark: str, low: str, high: str, name: str) -> str:
    """Half to even; NaN and what is out of range are errors."""
    error = raise_error_sql("22003", f"{name} out of range")
    rounded = "rint(CAST({0} AS DOUBLE))"
    return f"CASE WHEN {{0}} IS NULL THEN NULL WHEN {rounded} >= {low} AND {rounded} < {high} THEN CAST({rounded} AS {spark}) ELSE {error} END"


#: prosrc -> Spark SQL of {0}, {1}, ...
TEMPLATES: dict[str, str] = {
    **_integer_arithmetic(),
    **_float_arithmetic(),
    # casts between numbers
    "i2toi4": "CAST({0} AS INT)",
    "i4toi2": "CAST({0} AS SMALLINT)",
    "int28": "CAST({0} AS BIGINT)",
    "int48": "CAST({0} AS BIGINT)",
    "int82": "CAST({0} AS SMALLINT)",
    "int84": "CAST({0} AS INT)",
    "i2tof": "CAST({0} AS FLOAT)",
    "i4tof": "CAST({0} AS FLOAT)",
    "i8tof": "CAST({0} AS FLOAT)",
    "i2tod": "CAST({0} AS DOUBLE)",
    "i4tod": "CAST({0} AS DOUBLE)",
    "i8tod": "CAST({0} AS DOUBLE)",
    "ftod": "CAST({0} AS DOUBLE)",
    "dtoi2": _float_to_integer("SMALLINT", "-32768D", "32768D", "smallint"),
    "dtoi4": _float_to_integer("INT", "-2147483648D", "2147483648D", "integer"),
    "dtoi8": _float_to_integer("BIGINT", "-9223372036854775808D", "9223372036854775808D", "bigint"),
    "ftoi2": _float_to_integer("SMALLINT", "-32768D", "32768D", "smallint"),
    "ftoi4": _float_to_integer("INT", "-2147483648D", "2147483648D", "integer"),
    "ftoi8": _float_to_integer("BIGINT", "-9223372036854775808D", "9223372036854775808D", "bigint"),
    "int4_bool": "{0} <> 0",
    "bool_int4": "CAST({0} AS INT)",
    "booltext": "CASE WHEN {0} THEN 'true' WHEN NOT {0} THEN 'false' END",
    # booleans
    "booland_statefunc": "{0} AND {1}",
    # text
    "textcat": "{0} || {1}",
    "textlen": "length({0})",
    "bpcharlen": "length({0})",
    "textoctetlen": "octet_length({0})",
    "bpcharoctetlen": "octet_length({0})",
    "lower": "translate({0}, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz')",
    "upper": "translate({0}, 'abcdefghijklmnopqrstuvwxyz', 'ABCDEFGHIJKLMNOPQRSTUVWXYZ')",
    "btrim1": "trim(BOTH ' ' FROM {0})",
    "ltrim1": "trim(LEADING ' ' FROM {0})",
    "rtrim1": "trim(TRAILING ' ' FROM {0})",
    "btrim": "trim(BOTH {1} FROM {0})",
    "ltrim": "trim(LEADING {1} FROM {0})",
    "rtrim": "trim(TRAILING {1} FROM {0})",
    "replace_text": "replace({0}, {1}, {2})",
    "translate": "translate({0}, {1}, {2})",
    "text_reverse": "reverse({0})",
    "repeat": "repeat({0}, {1})",
    "textpos": "locate({1}, {0})",
    "text_starts_with": "startswith({0}, {1})",
    "text_left": "CASE WHEN {1} >= 0 THEN substring({0}, 1, {1}) ELSE substring({0}, 1, greatest(length({0}) + {1}, 0)) END",
    "text_right": "CASE WHEN {1} >= 0 THEN right({0}, {1}) ELSE substring({0}, 1 - {1}) END",
    "lpad": "lpad({0}, {1}, {2})",
    "rpad": "rpad({0}, {1}, {2})",
    "ascii": "ascii({0})",
    "md5_text": "md5({0})",
    "text_substr_no_len": "substring({0}, greatest({1}, 1))",
    "rtrim1_bpchar": "rtrim({0})",
    "text_bpchar": "rtrim({0})",
    # bytea
    "byteacat": "{0} || {1}",
    "byteaoctetlen": "octet_length({0})",
    "md5_bytea": "md5({0})",
    # dates and times
    "date_pli": "date_add({0}, {1})",
    "date_mii": "date_sub({0}, {1})",
    "date_mi": "datediff({0}, {1})",
    "datetime_timestamp": "CAST({0} AS TIMESTAMP_NTZ) + make_dt_interval(0, 0, 0, CAST({1} AS DECIMAL(20,0)) * 0.000001BD)",
    "timestamp_date": "CAST({0} AS DATE)",
    "timestamp_time": "pmod(unix_micros(CAST({0} AS TIMESTAMP)), 86400000000L)",
    "timestamptz_date": "CAST({0} AS DATE)",
    "timestamptz_timestamp": "CAST({0} AS TIMESTAMP_NTZ)",
    "timestamp_timestamptz": "CAST({0} AS TIMESTAMP)",
    "timestamp_pl_interval": "{0} + make_ym_interval(0, ({1}).m) + make_dt_interval(({1}).d, 0, 0, CAST(({1}).us AS DECIMAL(20,0)) * 0.000001BD)",
    "timestamp_mi_interval": "{0} - make_ym_interval(0, ({1}).m) - make_dt_interval(({1}).d, 0, 0, CAST(({1}).us AS DECIMAL(20,0)) * 0.000001BD)",
    "timestamptz_pl_interval": "{0} + make_ym_interval(0, ({1}).m) + make_dt_interval(({1}).d, 0, 0, CAST(({1}).us AS DECIMAL(20,0)) * 0.000001BD)",
    "timestamptz_mi_interval": "{0} - make_ym_interval(0, ({1}).m) - make_dt_interval(({1}).d, 0, 0, CAST(({1}).us AS DECIMAL(20,0)) * 0.000001BD)",
    "date_pl_interval": "CAST({0} AS TIMESTAMP_NTZ) + make_ym_interval(0, ({1}).m) + make_dt_interval(({1}).d, 0, 0, CAST(({1}).us AS DECIMAL(20,0)) * 0.000001BD)",
    "date_mi_interval": "CAST({0} AS TIMESTAMP_NTZ) - make_ym_interval(0, ({1}).m) - make_dt_interval(({1}).d, 0, 0, CAST(({1}).us AS DECIMAL(20,0)) * 0.000001BD)",
    "time_pl_interval": "pmod({0} + ({1}).us, 86400000000L)",
    "time_mi_interval": "pmod({0} - ({1}).us, 86400000000L)",
    "interval_mul": "named_struct('m', CAST(({0}).m * {1} AS INT), 'd', CAST(({0}).d * {1} AS INT), 'us', CAST(rint(({0}).us * {1}) AS BIGINT))",
    "mul_d_interval": "named_struct('m', CAST(({1}).m * {0} AS INT), 'd', CAST(({1}).d * {0} AS INT), 'us', CAST(rint(({1}).us * {0}) AS BIGINT))",
    "interval_pl": "named_struct('m', ({0}).m + ({1}).m, 'd', ({0}).d + ({1}).d, 'us', ({0}).us + ({1}).us)",
    "interval_mi": "named_struct('m', ({0}).m - ({1}).m, 'd', ({0}).d - ({1}).d, 'us', ({0}).us - ({1}).us)",
    "now": "current_timestamp()",
    # floats
    "dround": "rint({0})",
    "dceil": "CASE WHEN abs({0}) < 4503599627370496D THEN CAST(ceil({0}) AS DOUBLE) ELSE {0} END",
    "dfloor": "CASE WHEN abs({0}) < 4503599627370496D THEN CAST(floor({0}) AS DOUBLE) ELSE {0} END",
    "dtrunc": "CASE WHEN abs({0}) < 4503599627370496D THEN signum({0}) * CAST(floor(abs({0})) AS DOUBLE) ELSE {0} END",
    "dsign": "CASE WHEN isnan({0}) THEN 0D ELSE signum({0}) END",
    "dpi": "pi()",
    "dexp": "exp({0})",
    "dsqrt": "CASE WHEN {0} < 0 THEN "
    + raise_error_sql("2201F", "cannot take square root of a negative number")
    + " ELSE sqrt({0}) END",
    "drandom": "rand()",
    # arrays
    "array_cardinality": "size({0})",
    "array_append": "concat(coalesce({0}, array()), array({1}))",
    "array_prepend": "concat(array({0}), coalesce({1}, array()))",
    "array_cat": "CASE WHEN {0} IS NULL THEN {1} WHEN {1} IS NULL THEN {0} ELSE concat({0}, {1}) END",
    "array_length": "CASE WHEN {1} = 1 THEN nullif(size({0}), 0) END",
    "arraycontains": "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN forall({1}, y -> coalesce(exists({0}, x -> x = y), FALSE)) END",
    "arraycontained": "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN forall({0}, y -> coalesce(exists({1}, x -> x = y), FALSE)) END",
    "arrayoverlap": "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN exists({0}, y -> coalesce(exists({1}, x -> x = y), FALSE)) END",
}


# ---------------------------------------------------------------------------------------------
# What a template cannot say


def _substring(args: Arguments, constants: Constants) -> str:
    """substring(t, s, n) counts from s, even where s is before the first character."""
    text, start, count = (_operand(arg) for arg in args)
    error = raise_error_sql("22011", "negative substring length not allowed")
    end = f"CAST({start} AS BIGINT) + {count}"
    length = f"greatest(CAST({end} - greatest({start}, 1) AS INT), 0)"
    return f"CASE WHEN {count} < 0 THEN {error} ELSE substring({text}, greatest({start}, 1), {length}) END"


def _like(*, fold: bool, negate: bool) -> Translator:
    def translate(args: Arguments, constants: Constants) -> str:
        value, pattern = args[0].text, args[1]
        shown = _spark_pattern(pattern.text, constants[1] if len(constants) > 1 else None)
        if fold:
            value, shown = (TEMPLATES["lower"].format(item) for item in (value, shown))
        return f"{value} {'NOT ' if negate else ''}LIKE {shown}"

    return translate


def _spark_pattern(text: str, constant: nodes.Const | None) -> str:
    """A LIKE pattern for Spark, which refuses a backslash before an ordinary character.

    a\\bc%  ->  abc%
    """
    if constant is None or constant.value is None:
        if constant is not None:
            return text
        raise FeatureNotSupported("LIKE with a pattern that is not a constant is not supported")
    result, i, pattern = [], 0, constant.value
    while i < len(pattern):
        char = pattern[i]
        if char == "\\":
            i += 1
            if i == len(pattern):
                raise FeatureNotSupported(
                    "LIKE with a pattern that ends with the escape character is not supported"
                )
            char = pattern[i]
            result.append("\\" + char if char in "%_\\" else char)
        else:
            result.append(char)
        i += 1
    return quote("".join(result))


def _chr(args: Arguments, constants: Constants) -> str:
    """chr() beyond 255: by way of UTF-32."""
    code = args[0].text
    error = raise_error_sql("54000", "null character not permitted")
    return f"CASE WHEN {code} = 0 THEN {error} ELSE decode(unhex(lpad(hex({code}), 8, '0')), 'UTF-32') END"


def _varchar(args: Arguments, constants: Constants) -> str:
    """Length coercion of varchar(n): an explicit cast cuts, another may cut only blanks."""
    length, is_explicit = _length_coercion(constants)
    value = args[0].text
    cut = f"substring({value}, 1, {length})"
    if is_explicit:
        return cut
    error = raise_error_sql("22001", f"value too long for type character varying({length})")
    return f"CASE WHEN length(rtrim({value})) <= {length} THEN {cut} WHEN {value} IS NOT NULL THEN {error} END"


def _bpchar(args: Arguments, constants: Constants) -> str:
    """Length coercion of char(n): padded with blanks to n characters."""
    length, is_explicit = _length_coercion(constants)
    value = args[0].text
    padded = f"rpad({value}, {length}, ' ')"
    if is_explicit:
        return padded
    error = raise_error_sql("22001", f"value too long for type character({length})")
    return f"CASE WHEN length(rtrim({value})) <= {length} THEN {padded} WHEN {value} IS NOT NULL THEN {error} END"


def _length_coercion(constants: Constants) -> tuple[int, bool]:
    typmod, explicit = constants[1], constants[2]
    assert typmod is not None
    assert typmod.value is not None
    return int(typmod.value) - 4, explicit is not None and explicit.value == "t"


def _extract(args: Arguments, constants: Constants) -> str:
    field = constants[0].value if constants and constants[0] is not None else None
    value = args[1]
    if field is None or value.type not in ("date", "timestamp", "timestamptz"):
        raise FeatureNotSupported("extract of this kind is not supported")
    timestamp = date_as_timestamp(value) if value.type == "date" else value.text
    if field == "epoch":
        return f"CAST(unix_micros(CAST({timestamp} AS TIMESTAMP)) AS DECIMAL(20,0)) * 0.000001BD"
    simple = {"year": "YEAR", "month": "MONTH", "day": "DAY", "quarter": "QUARTER", "doy": "DOY", "week": "WEEK",
              "isodow": "DAYOFWEEK_ISO", "isoyear": "YEAROFWEEK"}  # fmt: skip
    times = {"hour": "HOUR", "minute": "MINUTE", "second": "SECOND"}
    if field in simple:
        return f"extract({simple[field]} FROM {timestamp})"
    if field == "dow":
        return f"dayofweek({timestamp}) - 1"
    if field in times and value.type != "date":
        return f"extract({times[field]} FROM {timestamp})"
    raise FeatureNotSupported(f'extract of "{field}" is not supported')


def _date_to_timestamp(args: Arguments, constants: Constants) -> str:
    return date_as_timestamp(args[0])


def _array_element(args: Arguments, constants: Constants) -> str:
    return f"nullif(array_position({args[0].text}, {args[1].text}), 0)"


#: prosrc -> a function of the arguments and of those of them that are constants.
TRANSLATORS: dict[str, Translator] = {
    "text_substr": _substring,
    "textlike": _like(fold=False, negate=False),
    "textnlike": _like(fold=False, negate=True),
    "bpcharlike": _like(fold=False, negate=False),
    "texticlike": _like(fold=True, negate=False),
    "texticnlike": _like(fold=True, negate=True),
    "chr": _chr,
    "varchar": _varchar,
    "bpchar": _bpchar,
    "date_timestamp": _date_to_timestamp,
    "array_position": _array_element,
}

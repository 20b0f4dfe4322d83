"""PostgreSQL's functions and operators in Spark SQL, by their implementation (prosrc).

Spark computes an integer result in a wider type and casts it back, so that its overflow error names
the type. Functions that are not listed here have no exact translation in Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeAlias

from replctl.adt import functions as adt_functions
from replctl.adt.case_mapping import is_ascii_collation, lower, translation_pairs
from replctl.adt.interpret import relabelled
from replctl.adt.like import without_needless_escapes
from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.spark import numeric_sql
from replctl.spark.comparison_sql import (
    INFINITE_DATES,
    comparison,
    date_as_timestamp,
    is_comparable,
)
from replctl.spark.data_type import quote, storage_type
from replctl.spark.java_regex import java_regex
from replctl.spark.sql_value import SqlValue, bound, raise_error_sql
from replctl.types import builtin
from replctl.types.builtin import Function
from replctl.types.character import TYPMOD_HEADER
from replctl.types.date import FIRST_DATE, LAST_DATE

Arguments: TypeAlias = Sequence[SqlValue]
Constants: TypeAlias = Sequence[nodes.Const | None]
Translator: TypeAlias = Callable[[Arguments, Constants], str]
CollatedTranslator: TypeAlias = Callable[[Arguments, Constants, bool], str]


def call(
    function: Function,
    args: Arguments,
    result: str,
    constants: Constants = (),
    collation: str | None = None,
) -> SqlValue:
    """Translate a function call to an expression of Spark itself, without Python.

    Args:
        result: PostgreSQL's type of the result.
        constants: the constant of each argument; None for an argument that is not a constant.
        collation: the collation of the arguments.

    Raises:
        FeatureNotSupported: Spark has no exact expression for the call.
    """
    source = function.source
    operator = _comparison_operators().get(source)
    if operator is not None and len(args) == 2:
        text = bound(args, lambda values: comparison(operator, *values).text)
        return SqlValue(text, "bool", "BOOLEAN")
    named = f"{function.name}({','.join(function.argument_types)})"
    of_own_type = VALUES.get(source) or VALUES.get(named)
    if of_own_type is not None:
        return of_own_type(args, constants)
    build = _builder(source, constants, collation) or _builder(named, constants, collation)
    if build is None:
        types = [arg.type for arg in args]
        raise adt_functions.unsupported(function, types)
    return SqlValue(f"({bound(args, build)})", result, storage_type(result))


def _builder(
    source: str, constants: Constants, collation: str | None
) -> Callable[[Arguments], str] | None:
    if source in TEMPLATES:
        template = TEMPLATES[source]
        return lambda args: template.format(*(_operand(arg) for arg in args))
    if source in TRANSLATORS:
        translator = TRANSLATORS[source]
        return lambda args: translator(args, constants)
    if source in COLLATED:
        collated, ascii_only = COLLATED[source], is_ascii_collation(collation)
        return lambda args: collated(args, constants, ascii_only)
    return None


def is_comparison(source: str) -> bool:
    """Return whether a function is one of =, <>, <, <=, >, >=."""
    return source in _comparison_operators()


#: Functions, in addition to comparisons, that never fail.
_NEVER_FAILING = frozenset(
    "textcat textlen bpcharlen textoctetlen btrim1 ltrim1 rtrim1 btrim ltrim rtrim replace_text"
    " translate text_reverse textpos text_starts_with text_left text_right md5_text rtrim1_bpchar"
    " text_bpchar byteacat byteaoctetlen md5_bytea upper lower text_substr_no_len i2toi4 int28"
    " int48 i2tof i4tof i8tof i2tod i4tod i8tod ftod int2_numeric int4_numeric int8_numeric"
    " int4_bool bool_int4 booltext".split()
)


def can_fail(source: str) -> bool:
    """Return whether a function (pg_proc.prosrc) may fail for some arguments."""
    return not is_comparison(source) and source not in _NEVER_FAILING


def relabel(value: SqlValue, target: str) -> SqlValue:
    """Translate a cast between binary-compatible types: the type changes, and integers become
    unsigned or signed.  Another function has already removed the blanks of char(n).
    """
    if relabelled(value.type, target) is None:
        return SqlValue(value.text, target, value.spark)
    wide = f"CAST({value.text} AS BIGINT)"  # an OID of regclass is text
    if value.type == "int4":
        return SqlValue(f"pmod({wide}, 4294967296L)", target, "BIGINT")
    if target == "int4":
        signed = f"pmod({wide} + 2147483648L, 4294967296L) - 2147483648L"
        return SqlValue(f"CAST({signed} AS INT)", target, "INT")
    raise FeatureNotSupported(f"{value.type} as {target} is not supported")  # cidr as inet


def sql_value(name: str, type_: str, typmod: int) -> SqlValue:
    """Translate CURRENT_TIMESTAMP and similar functions.  Spark returns the start of its own query,
    not the start of the transaction.
    """
    text = {
        "current_timestamp": "current_timestamp()",
        "current_date": "CAST(current_timestamp() AS DATE)",
        "localtimestamp": "CAST(current_timestamp() AS TIMESTAMP_NTZ)",
        "localtime": "pmod(unix_micros(current_timestamp()), 86400000000L)",
    }.get(name)
    if text is None:
        raise FeatureNotSupported(f"{name.upper()} is not supported here")
    return SqlValue(text, type_, storage_type(type_, typmod))


@cache
def _comparison_operators() -> dict[str, str]:
    """Return the operator of each function that implements a comparison: `<` for int4lt."""
    result = {}
    for name in ("=", "<>", "<", "<=", ">", ">="):
        for operator in builtin.operators()[name]:
            source = builtin.function_by_oid()[operator.function_oid].source
            if operator.left is not None:
                result[source] = name
    return result


def _operand(value: SqlValue) -> str:
    """Return SQL of an argument for most functions: char(n) without trailing blanks."""
    return f"rtrim({value.text})" if value.type == "bpchar" else value.text


def _integer(template: str, target: str) -> str:
    """Return an operation on integers: compute a BIGINT, and cast it to `target`.  The cast reports
    the overflow.
    """
    return f"CAST({template} AS {target})"


_WIDE = {"int2": "int4", "int4": "int8", "int8": "int8"}
_NAMES = {"int2": "SMALLINT", "int4": "INT", "int8": "BIGINT"}


def _integer_arithmetic() -> dict[str, str]:
    """Return +, -, *, / and % for all pairs of integer types; the result has the wider type."""
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
    """Return arithmetic of float8 and float4, with PostgreSQL's errors for overflow, underflow and
    division by zero."""
    overflow = raise_error_sql("22003", "value out of range: overflow")
    underflow = raise_error_sql("22003", "value out of range: underflow")
    division = raise_error_sql("22012", "division by zero")
    result: dict[str, str] = {}
    pairs = {
        "float4": ("{0}", "{1}", "FLOAT"),
        "float8": ("{0}", "{1}", "DOUBLE"),
        "float48": ("CAST({0} AS DOUBLE)", "{1}", "DOUBLE"),
        "float84": ("{0}", "CAST({1} AS DOUBLE)", "DOUBLE"),
    }
    for prefix, (a, b, spark) in pairs.items():
        infinite = "abs({r}) = double('Infinity') AND abs({a}) <> double('Infinity') AND abs({b}) <> double('Infinity')"  # noqa: E501
        for suffix, sign in (("pl", "+"), ("mi", "-"), ("mul", "*")):
            r = f"({a} {sign} {b})"
            text = f"CASE WHEN {infinite.format(r=r, a=a, b=b)} THEN {overflow}"
            if sign == "*":
                text += f" WHEN {r} = 0 AND {a} <> 0 AND {b} <> 0 THEN {underflow}"
            result[prefix + suffix] = f"{text} ELSE {r} END"
        r = f"CAST({a} / {b} AS {spark})"  # Spark divides in double precision
        result[prefix + "div"] = (
            f"CASE WHEN {a} IS NULL THEN NULL WHEN {b} = 0 AND NOT isnan({a}) THEN {division}"
            f" WHEN {b} = 0 THEN {a}"
            f" WHEN {infinite.format(r=r, a=a, b=b)} THEN {overflow}"
            f" WHEN {r} = 0 AND {a} <> 0 AND abs({b}) <> double('Infinity') THEN {underflow}"
            f" ELSE {r} END"
        )
    for name in ("float4", "float8"):
        result |= {f"{name}um": "-{0}", f"{name}abs": "abs({0})", f"{name}up": "{0}"}
    return result


def _float_to_integer(spark: str, low: str, high: str, name: str) -> str:
    """Return a cast that rounds half to even, with errors for NaN and values out of range."""
    error = raise_error_sql("22003", f"{name} out of range")
    rounded = "rint(CAST({0} AS DOUBLE))"
    return f"CASE WHEN {{0}} IS NULL THEN NULL WHEN {rounded} >= {low} AND {rounded} < {high} THEN CAST({rounded} AS {spark}) ELSE {error} END"  # noqa: E501


#: prosrc -> Spark SQL over {0}, {1}, ...
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
    "btrim1": "trim(BOTH ' ' FROM {0})",
    "ltrim1": "trim(LEADING ' ' FROM {0})",
    "rtrim1": "trim(TRAILING ' ' FROM {0})",
    "btrim": "trim(BOTH {1} FROM {0})",
    "ltrim": "trim(LEADING {1} FROM {0})",
    "rtrim": "trim(TRAILING {1} FROM {0})",
    "replace_text": "replace({0}, {1}, {2})",
    "translate": "translate({0}, {1}, {2})",
    "text_reverse": "reverse({0})",
    "textpos": "locate({1}, {0})",
    "text_starts_with": "startswith({0}, {1})",
    "text_left": "CASE WHEN {1} >= 0 THEN substring({0}, 1, {1}) WHEN {1} < 0 THEN substring({0}, 1, greatest(length({0}) + {1}, 0)) END",  # noqa: E501
    "md5_text": "md5({0})",
    "text_substr_no_len": "CASE WHEN {1} IS NOT NULL THEN substring({0}, greatest({1}, 1)) END",
    "rtrim1_bpchar": "rtrim({0})",
    "text_bpchar": "rtrim({0})",
    # bytea
    "byteacat": "{0} || {1}",
    "byteaoctetlen": "octet_length({0})",
    "md5_bytea": "md5({0})",
    # dates and times
    "timestamptz_timestamp": "CAST({0} AS TIMESTAMP_NTZ)",
    "timestamp_timestamptz": "CAST({0} AS TIMESTAMP)",
    "now": "current_timestamp()",
    "statement_timestamp": "current_timestamp()",
    # floats
    "dround": "rint({0})",
    "dceil": "CASE WHEN {0} <> 0 AND abs({0}) < 4503599627370496D THEN -CAST(floor(-{0}) AS DOUBLE) ELSE {0} END",  # noqa: E501
    "dfloor": "CASE WHEN {0} <> 0 AND abs({0}) < 4503599627370496D THEN CAST(floor({0}) AS DOUBLE) ELSE {0} END",  # noqa: E501
    "dtrunc": "CASE WHEN abs({0}) < 4503599627370496D THEN signum({0}) * CAST(floor(abs({0})) AS DOUBLE) ELSE {0} END",  # noqa: E501
    "dsign": "CASE WHEN isnan({0}) THEN 0D ELSE signum({0}) END",
    "dpi": "pi()",
    "dsqrt": "CASE WHEN {0} < 0 THEN "
    + raise_error_sql("2201F", "cannot take square root of a negative number")
    + " ELSE sqrt({0}) END",
    # arrays
    "array_cardinality": "size({0})",
    "array_length": "CASE WHEN {1} = 1 THEN nullif(size({0}), 0) END",
}


# ---------------------------------------------------------------------------------------------
# Functions that need more than a template


def _appended(args: Arguments, constants: Constants) -> str:
    array, item = args
    _check_storage(array)
    return f"concat(coalesce({array.text}, array()), array({item.text}))"


def _prepended(args: Arguments, constants: Constants) -> str:
    item, array = args
    _check_storage(array)
    return f"concat(array({item.text}), coalesce({array.text}, array()))"


def _check_storage(array: SqlValue) -> None:
    if array.type == "_numeric":
        raise FeatureNotSupported("arrays of numeric are exact text")


def _substring(args: Arguments, constants: Constants) -> str:
    """Translate substring(t, s, n).  PostgreSQL counts n characters from s, even if s is before the
    first character."""
    text, start, count = (_operand(arg) for arg in args)
    error = raise_error_sql("22011", "negative substring length not allowed")
    end = f"CAST({start} AS BIGINT) + {count}"
    known = f"{text} IS NOT NULL AND {start} IS NOT NULL"  # greatest() ignores NULL
    length = f"greatest(CAST({end} - greatest({start}, 1) AS INT), 0)"
    return (
        f"CASE WHEN {known} AND {count} < 0 THEN {error} WHEN {known} AND {count} >= 0"
        f" THEN substring({text}, greatest({start}, 1), {length}) END"
    )


def _folded(text: str, *, to_lower: bool, ascii_only: bool) -> str:
    source, target = translation_pairs(to_lower=to_lower, ascii_only=ascii_only)
    return f"translate({text}, {quote(source)}, {quote(target)})"


def _case_mapping(*, to_lower: bool) -> CollatedTranslator:
    """Translate lower() or upper(), which map letters one by one, unlike Spark's functions."""

    def translate(args: Arguments, constants: Constants, ascii_only: bool) -> str:
        return _folded(_operand(args[0]), to_lower=to_lower, ascii_only=ascii_only)

    return translate


def _like(*, negate: bool) -> Translator:
    def translate(args: Arguments, constants: Constants) -> str:
        # PostgreSQL compares the blanks of char(n), too.
        return f"{args[0].text} {'NOT ' if negate else ''}LIKE {_spark_pattern(_constant(constants, 1))}"  # noqa: E501

    return translate


def _ilike(*, negate: bool) -> CollatedTranslator:
    def translate(args: Arguments, constants: Constants, ascii_only: bool) -> str:
        pattern = _spark_pattern(lower(_constant(constants, 1), ascii_only=ascii_only))
        value = _folded(args[0].text, to_lower=True, ascii_only=ascii_only)
        return f"{value} {'NOT ' if negate else ''}LIKE {pattern}"

    return translate


def _constant(constants: Constants, place: int) -> str:
    """Return the value of an argument that must be a constant."""
    constant = constants[place] if len(constants) > place else None
    if constant is None or constant.value is None:
        raise FeatureNotSupported("a pattern that is not a constant is not supported in Spark")
    return constant.value


def _spark_pattern(pattern: str) -> str:
    """Convert a LIKE pattern for Spark, which refuses a backslash before an ordinary character.

    `a\\bc%`  ->  `'abc%'`
    """
    shown = without_needless_escapes(pattern)
    if shown is None:
        raise FeatureNotSupported("a pattern that ends with the escape character is not supported")
    return quote(shown)


def _matches(*, ignore_case: bool, negate: bool) -> CollatedTranslator:
    def translate(args: Arguments, constants: Constants, ascii_only: bool) -> str:
        pattern = _constant(constants, 1)
        java = quote(java_regex(pattern, ignore_case=ignore_case, ascii_only=ascii_only))
        return f"{'NOT ' if negate else ''}rlike({args[0].text}, {java})"

    return translate


def _varchar(args: Arguments, constants: Constants) -> str:
    """Coerce to varchar(n): an explicit cast truncates, an implicit one only removes blanks."""
    length, is_explicit = _length_coercion(constants)
    value = args[0].text
    cut = f"substring({value}, 1, {length})"
    if is_explicit:
        return cut
    error = raise_error_sql("22001", f"value too long for type character varying({length})")
    return f"CASE WHEN length(rtrim({value})) <= {length} THEN {cut} WHEN {value} IS NOT NULL THEN {error} END"  # noqa: E501


def _bpchar(args: Arguments, constants: Constants) -> str:
    """Coerce to char(n): pad with blanks to n characters."""
    length, is_explicit = _length_coercion(constants)
    value = args[0].text
    padded = f"rpad({value}, {length}, ' ')"
    if is_explicit:
        return padded
    error = raise_error_sql("22001", f"value too long for type character({length})")
    return f"CASE WHEN length(rtrim({value})) <= {length} THEN {padded} WHEN {value} IS NOT NULL THEN {error} END"  # noqa: E501


def _length_coercion(constants: Constants) -> tuple[int, bool]:
    typmod, explicit = constants[1], constants[2]
    if (
        typmod is None
        or typmod.value is None
        or int(typmod.value) < TYPMOD_HEADER
        or explicit is None
    ):
        raise FeatureNotSupported("a length that is not constant is not supported")
    return int(typmod.value) - TYPMOD_HEADER, explicit.value == "t"


def _is_infinite(value: SqlValue) -> str:
    """Return the SQL condition that a date or timestamp is infinite; NULL for NULL."""
    days, micros = zip(*INFINITE_DATES, strict=True)
    if value.type == "date":
        return f"unix_date({value.text}) IN ({days[0]}, {days[1]})"
    number = f"unix_micros(CAST({value.text} AS TIMESTAMP))"
    return f"{number} IN ({micros[0]}L, (-9223372036854775807L - 1L))"


def _extract(args: Arguments, constants: Constants) -> SqlValue:
    """Translate extract() for cyclic fields (month, hour), which are NULL for an infinite time.
    Other fields (year, epoch) would be infinite then, which no DECIMAL can represent.
    """
    value, field = args[1], _constant(constants, 0)
    known = _FIELDS.get(field)
    if known is None or (value.type == "date" and field in ("hour", "minute")):
        raise FeatureNotSupported(f"extract of {field} is not supported in Spark")
    part = known.format(value.text)
    number = f"CASE WHEN NOT {_is_infinite(value)} THEN CAST({part} AS DECIMAL(4,0)) END"
    return SqlValue(f"({number})", "numeric", "DECIMAL(4,0)")


_FIELDS = {
    "month": "month({0})",
    "day": "day({0})",
    "quarter": "quarter({0})",
    "week": "weekofyear({0})",
    "doy": "dayofyear({0})",
    "dow": "(dayofweek({0}) - 1)",
    "isodow": "(weekday({0}) + 1)",
    "hour": "hour({0})",
    "minute": "minute({0})",
}
_TRUNCATED = frozenset(["second", "minute", "hour", "day", "week", "month", "quarter", "year"])


def _date_trunc(args: Arguments, constants: Constants) -> str:
    value, unit = args[1], _constant(constants, 0)
    if unit not in _TRUNCATED:
        raise FeatureNotSupported(f"date_trunc to {unit} is not supported in Spark")
    truncated = f"CAST(date_trunc('{unit}', {value.text}) AS TIMESTAMP_NTZ)"
    return f"CASE WHEN {_is_infinite(value)} THEN {value.text} ELSE {truncated} END"


def _add_days(sign: str) -> Translator:
    def translate(args: Arguments, constants: Constants) -> str:
        date, count = args
        error = raise_error_sql("22008", "date out of range")
        days = f"(CAST(unix_date({date.text}) AS BIGINT) {sign} {count.text})"
        return (
            f"CASE WHEN {_is_infinite(date)} AND {count.text} IS NOT NULL THEN {date.text}"
            f" WHEN {days} BETWEEN {FIRST_DATE} AND {LAST_DATE}"
            f" THEN date_from_unix_date(CAST({days} AS INT)) WHEN {days} IS NOT NULL THEN {error} END"  # noqa: E501
        )

    return translate


def _days_between(args: Arguments, constants: Constants) -> str:
    a, b = args
    error = raise_error_sql("22008", "cannot subtract infinite dates")
    days = f"unix_date({a.text}) - unix_date({b.text})"
    infinite = f"({_is_infinite(a)} OR {_is_infinite(b)}) AND {a.text} IS NOT NULL"
    return f"CASE WHEN {infinite} AND {b.text} IS NOT NULL THEN {error} ELSE {days} END"


def _timestamp_to_date(args: Arguments, constants: Constants) -> str:
    value = args[0]
    whens = " ".join(
        f"WHEN unix_micros(CAST({value.text} AS TIMESTAMP)) = {_micros(micros)}"
        f" THEN date_from_unix_date({days})"
        for days, micros in INFINITE_DATES
    )
    return f"CASE {whens} ELSE CAST({value.text} AS DATE) END"


def _micros(value: int) -> str:
    return f"{value}L" if value > -(2**63) else "(-9223372036854775807L - 1L)"


def _date_to_timestamp(args: Arguments, constants: Constants) -> str:
    error = raise_error_sql("22008", "date out of range for timestamp")
    return date_as_timestamp(args[0], error)


def _array_element(args: Arguments, constants: Constants) -> str:
    """Translate array_position() of a constant.  Refuse NULL: Spark does not find it."""
    _constant(constants, 1)
    _check_elements(args)
    return f"nullif(array_position({args[0].text}, {args[1].text}), 0)"


def _check_elements(args: Arguments) -> None:
    """Refuse arrays whose elements Spark does not compare like PostgreSQL."""
    for arg in args:
        if arg.spark.startswith("ARRAY<") and not is_comparable(arg):
            raise FeatureNotSupported(f"comparison of elements of {arg.type} is not supported")


def _compared_arrays(test: str) -> Translator:
    """Translate @>, <@ or && of arrays.  For these operators, a NULL element equals nothing."""

    def translate(args: Arguments, constants: Constants) -> str:
        _check_elements(args)
        a, b = args[0].text, args[1].text
        return f"CASE WHEN {a} IS NOT NULL AND {b} IS NOT NULL THEN {test.format(a, b)} END"

    return translate


_CONTAINS = "forall({1}, item_ -> coalesce(exists({0}, other_ -> other_ = item_), FALSE))"
_CONTAINED = "forall({0}, item_ -> coalesce(exists({1}, other_ -> other_ = item_), FALSE))"


#: prosrc -> a function that translates the arguments, given their constants.
TRANSLATORS: dict[str, Translator] = {
    "text_substr": _substring,
    "array_append": _appended,
    "array_prepend": _prepended,
    "textlike": _like(negate=False),
    "textnlike": _like(negate=True),
    "bpcharoctetlen": lambda args, constants: f"octet_length({args[0].text})",
    "varchar": _varchar,
    "bpchar": _bpchar,
    "date_timestamp": _date_to_timestamp,
    "array_position": _array_element,
    "arraycontains": _compared_arrays(_CONTAINS),
    "arraycontained": _compared_arrays(_CONTAINED),
    "arrayoverlap": _compared_arrays(
        "exists({0}, item_ -> coalesce(exists({1}, other_ -> other_ = item_), FALSE))"
    ),
    "timestamp_trunc": _date_trunc,
    "date_pli": _add_days("+"),
    "date_mii": _add_days("-"),
    "date_mi": _days_between,
    "timestamp_date": _timestamp_to_date,
    "timestamptz_date": _timestamp_to_date,
}

#: Like TRANSLATORS, for functions whose result may have a Spark type other than its storage type.
VALUES: dict[str, Callable[[Arguments, Constants], SqlValue]] = {
    **numeric_sql.FUNCTIONS,
    "extract_date": _extract,
    "extract_timestamp": _extract,
}

#: Like TRANSLATORS, for functions that depend on the collation.  The flag says that the collation
#: maps only ASCII letters.
COLLATED: dict[str, CollatedTranslator] = {
    "lower": _case_mapping(to_lower=True),
    "upper": _case_mapping(to_lower=False),
    "texticlike": _ilike(negate=False),
    "texticnlike": _ilike(negate=True),
    "textregexeq": _matches(ignore_case=False, negate=False),
    "textregexne": _matches(ignore_case=False, negate=True),
    "texticregexeq": _matches(ignore_case=True, negate=False),
    "texticregexne": _matches(ignore_case=True, negate=True),
}

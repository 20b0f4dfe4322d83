"""The forms of an expression of a wanted type: operators, functions and casts of PostgreSQL's
tables, and forms with a syntax of their own."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from replctl.types import builtin
from replctl.types.function_kind import FunctionKind, Volatility

from .values import ARRAY_ELEMENTS, TYPES


@dataclass(frozen=True, slots=True)
class Form:
    """A way to write an expression: `template` has {} for each operand, of type `operands[i]`."""

    template: str
    operands: tuple[str, ...]
    result: str


#: Omitted functions: they show internals of the server, or fill the memory for a large argument.
_LEFT_OUT = re.compile(
    r".*_(accum|accum_inv|combine|avg|sum|larger|smaller|send|canonical|subdiff|transfn|statefunc"
    r"|sum|corr|pop|samp|regr.*)|(int\d?\d|float\d)(larger|smaller|send)|in_range|int8(inc|dec).*"
    r"|(bit|bool|bytea|varbit)send|float8_.*|gin_.*|(text|bpchar|array)_(larger|smaller)"
    r"|int[24]_(avg|sum)|int2int4_sum|repeat|lpad|rpad|array_fill|factorial|.*_version|icu_.*"
    r"|pg_encoding_max_length|bit|xml_.*|similar_escape|power|pow|dpow|numeric_power|exp"
    r"|numeric_exp|any_value_transfn|bitshift.*"
)
#: Powers can be huge: they have forms of their own below.
_POWER = "^"

#: Result, and a template in which {type} stands for an operand of a type.
_SPECIAL = r"""
int4    POSITION({text} IN {text})
int4    POSITION({bytea} IN {bytea})
numeric EXTRACT(<field> FROM {timestamp})
numeric EXTRACT(<field> FROM {date})
numeric EXTRACT(<field> FROM {interval})
numeric EXTRACT(<field> FROM {time})
numeric EXTRACT(<field> FROM {timestamptz})
numeric EXTRACT('<field>' FROM {timestamp})
float8  date_part('<field>', {timestamp})
float8  date_part('<field>', {interval})
text    SUBSTRING({text} FROM <small>)
text    SUBSTRING({text} FROM <small> FOR <small>)
text    SUBSTRING({text} FOR <small>)
text    SUBSTRING({text}, <small>, <small>)
bytea   SUBSTRING({bytea} FROM <small> FOR <small>)
text    TRIM({text})
text    TRIM(BOTH {text} FROM {text})
text    TRIM(LEADING 'a ' FROM {text})
text    TRIM(TRAILING FROM {text})
text    TRIM({text}, 'b')
bytea   TRIM(BOTH {bytea} FROM {bytea})
text    OVERLAY({text} PLACING {text} FROM <small>)
text    OVERLAY({text} PLACING {text} FROM <small> FOR <small>)
bytea   OVERLAY({bytea} PLACING {bytea} FROM <small>)
text    repeat({text}, <small>)
text    lpad({text}, <small>)
text    rpad({text}, <small>, {text})
text    upper({text} COLLATE "C")
text    {text} COLLATE "C"
text    {text} COLLATE "POSIX"
text    {text} COLLATE pg_catalog."default"
text    normalize({text})
text    normalize({text}, NFKC)
bool    {text} IS NORMALIZED
bool    {text} IS NFD NORMALIZED
bool    {text} LIKE <like>
bool    {text} NOT LIKE <like>
bool    {text} ILIKE <like>
bool    {text} NOT ILIKE {text}
bool    {text} LIKE {text}
bool    {text} LIKE <like> ESCAPE '#'
bool    {text} LIKE <like> ESCAPE ''
bool    {varchar} LIKE <like>
bool    {bpchar} LIKE <like>
bool    {name} LIKE <like>
bool    {bytea} LIKE '\x6125'::bytea
bool    {text} LIKE ANY (ARRAY[<like>, <like>])
bool    {text} ^@ {text}
bool    {text} SIMILAR TO <similar>
bool    {text} NOT SIMILAR TO <similar>
bool    {text} ~ <regex>
bool    {text} !~ <regex>
bool    {text} ~* <regex>
bool    {bpchar} ~ <regex>
timestamp   {timestamptz} AT TIME ZONE <zone>
timestamptz {timestamp} AT TIME ZONE <zone>
timetz      {timetz} AT TIME ZONE <zone>
timestamptz {timestamp} AT TIME ZONE {interval}
timestamp   date_trunc('<trunc>', {timestamp})
timestamptz date_trunc('<trunc>', {timestamptz}, <zone>)
interval    date_trunc('<trunc>', {interval})
timestamp   date_bin('15 minutes', {timestamp}, {timestamp})
timestamp   {timestamp} + interval <interval>
timestamp   {date} + interval <interval>
timestamptz {timestamptz} - interval <interval>
bool    ({date}, {date}) OVERLAPS ({date}, {interval})
bool    ({timestamp}, {interval}) OVERLAPS ({timestamp}, {timestamp})
float8  {float8} ^ <small>
float8  {float8} ^ 0.5
numeric {numeric} ^ <small>
numeric power({numeric}, 0.5)
numeric factorial(<small>)
float8  exp({float8} / 1000)
numeric exp({int2} / 1000.0)
bit     <small>::bit(8)
bit     {int4}::bit(8)
varbit  {varbit} << <small>
bool    NOT {bool}
bool    {bool} AND {bool}
bool    {bool} OR {bool}
bool    {bool} AND {bool} AND {bool}
bool    {bool} IS TRUE
bool    {bool} IS NOT TRUE
bool    {bool} IS FALSE
bool    {bool} IS NOT FALSE
bool    {bool} IS UNKNOWN
bool    {bool} IS NOT UNKNOWN
bool    ({int4}, {text}) = ({int8}, {text})
bool    ({int4}, {text}) <> ({int4}, {text})
bool    ({date}, {numeric}) < ({timestamp}, {int4})
bool    ROW({int4}, {float8}, {bool}) >= ROW({int2}, {numeric}, {bool})
bool    ({int4}, {text}) IN ((1, 'a'), ({int4}, {text}))
bool    ROW({int4}, {text}) IS NULL
bool    ROW({int4}, {text}) IS NOT NULL
bool    ({int4}, {text}) IS DISTINCT FROM ({int4}, {text})
bool    {int4} BETWEEN {int2} AND {int8}
bool    {numeric} BETWEEN SYMMETRIC {int4} AND {numeric}
bool    {int4} IN (1, 2, {int4})
bool    {int8} IN (1, NULL)
bool    {int4} NOT IN (1, 2.5)
bool    {float4} IN (0.1, 2)
bool    {float4} IN (0.1)
bool    {text} IN ('a', 'abc')
bool    {varchar} IN ('a', 'abc')
bool    {bpchar} IN ('a', 'ab')
bool    {int4} = ANY ('{{1,2,NULL}}')
bool    {int4} > ALL (ARRAY[1, 2])
bool    {int2} <> ALL ({_int4})
bool    {text} >= SOME ({_text})
bool    {bpchar} = {varchar}
bool    {bpchar} = {text}
bool    num_nulls({int4}, {text}) = 1
_int4   ARRAY[]::int[]
_text   string_to_array({text}, ',')
_text   string_to_array({text}, NULL, 'a')
_int4   {_int4} || {int4}
_int4   {int4} || {_int4}
_numeric ARRAY[1, {numeric}, 2.5]
int4    array_length({_text}, 1)
text    encode({bytea}, 'hex')
text    encode({bytea}, 'base64')
text    encode({bytea}, 'escape')
bytea   decode('0aFF', 'hex')
bytea   decode({text}, 'escape')
text    md5({text})
text    split_part({text}, '.', <small>)
text    translate({text}, 'abc', 'x')
text    chr(<small>)
text    {jsonb} ->> 'a'
text    {json} ->> 0
text    {jsonb} #>> '{{a,0}}'
jsonb   {jsonb} -> 'a'
json    {json} -> 'b'
jsonb   {jsonb} #> '{{b,c}}'
jsonb   {jsonb} - 'a'
jsonb   {jsonb} #- '{{a,0}}'
jsonb   jsonb_set({jsonb}, '{{a}}', {jsonb})
bool    {jsonb} ? 'a'
bool    {jsonb} ?| '{{a,b}}'
bool    {jsonb} ?& ARRAY['a', 'b']
bool    {jsonb} @> '{{"a": 1}}'
int4    ({jsonb} -> 'a')::int
"""
#: The same for every type T; T[] is left to ARRAYS.
_GENERIC = r"""
T    CASE WHEN {bool} THEN {T} ELSE {T} END
T    CASE WHEN {bool} THEN {T} WHEN {bool} THEN {T} END
T    CASE {int4} WHEN 1 THEN {T} WHEN {int2} THEN {T} ELSE {T} END
T    COALESCE({T}, {T})
T    COALESCE(NULL, {T}, {T})
T    NULLIF({T}, {T})
T    GREATEST({T}, {T})
T    LEAST({T}, {T}, {T})
bool {T} IS NULL
bool {T} IS NOT NULL
bool {T} ISNULL
bool {T} IS DISTINCT FROM {T}
bool {T} IS NOT DISTINCT FROM {T}
bool {T} IN ({T}, {T})
bool {T} NOT IN ({T}, {T}, {T})
bool {T} BETWEEN {T} AND {T}
bool {T} NOT BETWEEN {T} AND {T}
bool {T} BETWEEN SYMMETRIC {T} AND {T}
bool {T} = {T}
bool {T} <> {T}
bool {T} < {T}
bool {T} != {T}
bool {T} = ANY (ARRAY[{T}, {T}])
bool {T} <> ALL (ARRAY[{T}, {T}])
bool CASE {T} WHEN {T} THEN {bool} ELSE {bool} END
"""
_FOR_ELEMENTS = r"""
_T   ARRAY[{T}, {T}]
_T   ARRAY[{T}, NULL]
bool {T} = ANY ({_T})
bool {T} < ALL ({_T})
bool {_T} && {_T}
bool {_T} @> ARRAY[{T}]
"""
#: Texts that replace <words> in templates.
WORDS = {
    "field": "year month day hour minute second microseconds milliseconds dow isodow doy week"
    " isoyear quarter century decade millennium epoch julian timezone foo".split(),
    "trunc": "year month day hour minute second week quarter milliseconds microseconds decade"
    " century millennium foo".split(),
    "small": "0 1 2 3 5 (-1) (-3) 12 100".split(),
    "zone": ["'UTC'", "'Europe/Berlin'", "'America/New_York'", "'+03'", "'PST'", "'utc+2'",
             "interval '02:30'", "'Nowhere/Land'", "'asia/kolkata'"],
    "interval": ["'1 month'", "'1 day 02:00'", "'-1 year 3 days'", "'00:00:00.5'", "'1' HOUR",
                 "'1-2' YEAR TO MONTH", "'3' DAY", "'infinity'"],
    "like": [r"'a%'", r"'%b%'", r"'_b_'", r"''", r"'%'", r"'a\%c%'", r"'a\_c'", r"'%É%'",
             r"'a#%c%'", r"'abc'", r"'%\\e'", r"'a\'"],
    "similar": [r"'a%'", r"'(a|b)%'", r"'[a-c]+'", r"'_{3}'", r"'%b_'", r"''", r"'a.b.c'"],
    "regex": [r"'^a'", r"'b.*c$'", r"'[a-c]+'", r"'\d'", r"'(ab|c)'", r"''", r"'^\s*$'", r"'é'",
              r"'[[:alpha:]]'", r"'a{2,3}'"],
}  # fmt: skip


@cache
def forms() -> dict[str, dict[str, list[Form]]]:
    """Return the forms by the type of the result and the kind of form."""
    found: dict[str, dict[str, list[Form]]] = {
        name: {"special": [], "operator": [], "function": [], "cast": []} for name in TYPES
    }
    for kind, made in (
        ("special", _special()),
        ("operator", _operators()),
        ("function", _functions()),
        ("cast", _casts()),
    ):
        for form in made:
            if form.result in found and all(operand in found for operand in form.operands):
                found[form.result][kind].append(form)
    return found


def _special() -> Iterator[Form]:
    yield from _written(_SPECIAL, {})
    for type_ in TYPES:
        yield from _written(_GENERIC, {"T": type_})
    for type_ in ARRAY_ELEMENTS:
        yield from _written(_FOR_ELEMENTS, {"T": type_, "_T": f"_{type_}"})


def _written(table: str, names: dict[str, str]) -> Iterator[Form]:
    for line in table.strip().splitlines():
        result, template = line.split(maxsplit=1)
        operands = re.findall(r"(?<!{){(\w+)}", template)
        yield Form(
            re.sub(r"(?<!{){\w+}", "{}", template),
            tuple(names.get(operand, operand) for operand in operands),
            names.get(result, result),
        )


def _operators() -> Iterator[Form]:
    for name, group in builtin.operators().items():
        for item in group:
            if name == _POWER:
                continue
            for types in _concrete((item.left or "", item.right, item.result)):
                left, right, result = types
                template = f"{{}} {name} {{}}" if left else f"{name} {{}}"
                yield Form(template, (left, right) if left else (right,), result)


def _functions() -> Iterator[Form]:
    for name, group in builtin.functions().items():
        if _LEFT_OUT.fullmatch(name):
            continue
        for item in group:
            if (
                item.kind != FunctionKind.FUNCTION
                or item.returns_set
                or item.volatility != Volatility.IMMUTABLE
            ):
                continue
            if item.argument_types[:1] == (item.result,) and name in builtin.types():
                continue  # a length coercion: casts with a modifier call it
            call = f'"{name}"' if builtin.keywords().get(name, "U")[0] in "RTC" else name
            for *types, result in _concrete((*item.argument_types, item.result)):
                yield Form(f"{call}({', '.join(['{}'] * len(types))})", tuple(types), result)


def _casts() -> Iterator[Form]:
    pairs = {(source, target) for source, target in builtin.casts()}
    pairs |= {(name, "text") for name in TYPES} | {("text", name) for name in TYPES}
    for source, target in sorted(pairs):
        if target not in TYPES:
            continue
        for name in type_names(target):
            yield Form(f"{{}}::{name}", (source,), target)
            yield Form(f"CAST({{}} AS {name})", (source,), target)


@cache
def type_names(type_: str) -> list[str]:
    """Return the names of a type, also with modifiers."""
    name = builtin.types()[type_].sql_name
    return [name, *_WITH_MODIFIER.get(type_, [])]


_WITH_MODIFIER = {
    "numeric": ["numeric(10,2)", "numeric(3)", "decimal(4,-2)", "numeric(5,7)"],
    "varchar": ["varchar(2)", "varchar"],
    "bpchar": ["char(3)", "char", "bpchar"],
    "time": ["time(0)"],
    "timetz": ["timetz(3)"],
    "timestamp": ["timestamp(0)", "timestamp(3)"],
    "timestamptz": ["timestamptz(2)"],
    "interval": [
        "interval(2)",
        "interval day to second",
        "interval year to month",
        "interval hour",
    ],
    "bit": ["bit(8)", "bit(3)"],
    "varbit": ["varbit(2)", "varbit"],
    "int4": ["int", "int4"],
    "float8": ["float", "float(53)"],
    "float4": ["float(3)"],
}

_ANY_ELEMENT = frozenset(["anyelement", "anynonarray", "anycompatible", "anycompatiblenonarray"])
_ANY_ARRAY = frozenset(["anyarray", "anycompatiblearray"])
_RANGES = {"int4range": "int4", "numrange": "numeric", "daterange": "date", "tsrange": "timestamp"}


def _concrete(types: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the signatures with concrete types instead of polymorphic ones."""
    if not any(name.startswith("any") for name in types):
        yield types
        return
    choices: list[dict[str, str]] = []
    if {"anyrange", "anycompatiblerange"}.intersection(types):
        choices = [
            dict.fromkeys(("anyrange", "anycompatiblerange"), name)
            | dict.fromkeys(_ANY_ELEMENT, element)
            for name, element in _RANGES.items()
        ]
    elif _ANY_ARRAY.intersection(types) or _ANY_ELEMENT.intersection(types):
        choices = [
            dict.fromkeys(_ANY_ARRAY, f"_{name}") | dict.fromkeys(_ANY_ELEMENT, name)
            for name in ARRAY_ELEMENTS
        ]
    for choice in choices:
        yield tuple(choice.get(name, name) for name in types)


@cache
def counted() -> dict[str, int]:
    """Return the number of forms of each kind, for reports."""
    counts: dict[str, int] = defaultdict(int)
    for kinds in forms().values():
        for kind, group in kinds.items():
            counts[kind] += len(group)
    return dict(counts)

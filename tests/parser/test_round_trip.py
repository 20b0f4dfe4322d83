"""Random expressions are the same after printing and parsing, and random texts never crash the
parser."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from print_expression import print_expression

from replctl.errors import PostgresError
from replctl.parser import ast
from replctl.parser.parse import parse, parse_expression

NAMES = st.one_of(
    st.sampled_from(["a", "select", "Time", 'q"q', "with space", "ä"]),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1).filter(
        lambda name: len(name.encode()) < 64
    ),
)
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
CONSTANTS = st.one_of(
    st.integers(0, 2**31 - 1).map(lambda n: ast.Constant("integer", str(n))),
    st.integers(2**31, 2**70).map(lambda n: ast.Constant("float", str(n))),
    st.sampled_from(["1.5", ".5", "1.", "1e10", "1.5e-3"]).map(
        lambda text: ast.Constant("float", text)
    ),
    TEXTS.map(lambda text: ast.Constant("string", text)),
    st.sampled_from(["b01", "xff", "b"]).map(lambda text: ast.Constant("bit", text)),
    st.sampled_from(["true", "false"]).map(lambda text: ast.Constant("boolean", text)),
    st.just(ast.Constant("null", None)),
)
COLUMNS = st.lists(NAMES, min_size=1, max_size=3).map(lambda names: ast.ColumnRef(tuple(names)))
OPERATORS = st.sampled_from(
    [(name,) for name in ("+", "-", "*", "/", "%", "^", "<", "<=", "<>", "=", "||", "@>", "->")]
    + [("s", "+"), ("a b", "~~")]
)
TYPES = st.builds(
    ast.TypeName,
    st.lists(NAMES, min_size=1, max_size=2).map(tuple),
    st.lists(st.integers(0, 9).map(lambda n: ast.Constant("integer", str(n))), max_size=2).map(
        tuple
    ),
    st.lists(st.sampled_from([-1, 3]), max_size=2).map(tuple),
)


def _larger(inner: st.SearchStrategy[ast.RawExpr]) -> st.SearchStrategy[ast.RawExpr]:
    several = st.lists(inner, min_size=1, max_size=3).map(tuple)
    two = st.tuples(inner, inner)
    whens = st.lists(st.builds(ast.CaseWhen, inner, inner), min_size=1, max_size=2).map(tuple)
    return st.one_of(
        st.builds(ast.AExpr, st.just("op"), OPERATORS, inner, inner),
        st.builds(ast.AExpr, st.just("op"), st.sampled_from([("@",), ("~",)]), st.none(), inner),
        st.builds(ast.AExpr, st.sampled_from(["op_any", "op_all"]), OPERATORS, inner, inner),
        st.builds(
            ast.AExpr, st.sampled_from(["distinct", "not_distinct"]), st.just(("=",)), inner, inner
        ),
        st.builds(ast.AExpr, st.just("in"), st.sampled_from([("=",), ("<>",)]), inner, several),
        st.builds(ast.AExpr, st.just("between"), st.just(("BETWEEN",)), inner, two),
        st.builds(
            ast.AExpr,
            st.just("not_between_symmetric"),
            st.just(("NOT BETWEEN SYMMETRIC",)),
            inner,
            two,
        ),
        st.builds(ast.AExpr, st.just("like"), st.sampled_from([("~~",), ("!~~",)]), inner, inner),
        st.builds(ast.AExpr, st.just("ilike"), st.just(("~~*",)), inner, inner),
        st.builds(ast.BoolExpr, st.just("not"), st.tuples(inner)),
        _junctions(inner),
        st.builds(ast.NullTest, inner, st.booleans()),
        st.builds(ast.BooleanTest, inner, st.sampled_from(["true", "not false", "unknown"])),
        st.builds(ast.TypeCast, inner, TYPES),
        st.builds(ast.CollateClause, inner, st.tuples(NAMES)),
        st.builds(ast.FuncCall, st.tuples(NAMES), several),
        st.builds(lambda name, arg: ast.FuncCall(("f",), (ast.NamedArg(name, arg),)), NAMES, inner),
        st.builds(ast.CoalesceExpr, several),
        st.builds(ast.MinMaxExpr, st.sampled_from(["greatest", "least"]), several),
        st.builds(ast.CaseExpr, st.none() | inner, whens, st.none() | inner),
        st.builds(ast.ArrayExpr, several),
        st.builds(ast.RowExpr, several, st.just(True)),
        st.builds(ast.RowExpr, two, st.just(False)),
    )


def _junctions(inner: st.SearchStrategy[ast.RawExpr]) -> st.SearchStrategy[ast.RawExpr]:
    """Return AND and OR whose first operand is of the other kind.  Otherwise both would become
    one."""

    def is_flat(junction: ast.BoolExpr) -> bool:
        first = junction.args[0]
        return not (isinstance(first, ast.BoolExpr) and first.op == junction.op)

    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.builds(ast.BoolExpr, st.sampled_from(["and", "or"]), several).filter(is_flat)


EXPRESSIONS = st.recursive(st.one_of(CONSTANTS, COLUMNS), _larger, max_leaves=8)


@settings(max_examples=300)
@given(EXPRESSIONS)
def test_what_is_printed_parses_to_the_same(expr: ast.RawExpr) -> None:
    assert parse_expression(print_expression(expr)) == expr


WORDS = (
    "select from where ( ) [ ] , . : :: ; + - < = a b 1 1.5 'x' and or not is null in like"
    " between case when then end create table publication for with as $1 * \" ' /* --"
)


@settings(max_examples=300)
@given(st.lists(st.sampled_from(WORDS.split()), max_size=12).map(" ".join) | TEXTS)
def test_any_text_parses_or_is_an_error_of_postgresql(text: str) -> None:
    position = 0
    try:
        parse(text)
    except PostgresError as error:
        position = error.position
    assert -1 <= position <= len(text)

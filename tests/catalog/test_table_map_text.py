"""table_map as text, and the names of published tables and targets that it maps."""

from __future__ import annotations

import pytest

from replctl.catalog.table_map import TableMap, parse_table_map, shown_pair
from replctl.errors import DuplicateObject, InvalidParameterValue, PostgresError, SqlSyntaxError
from replctl.relation_name import RelationName

_A, _B = RelationName("public", "a"), RelationName("public", "b")
_C = RelationName("gold", "c")


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("", ()),
        ("  \n", ()),
        ("public.a = gold.c", ((_A, _C),)),
        ("a=gold.c", ((_A, _C),)),
        ("a = b", ((_A, ("path", "b")),)),
        (" public . A\t=\nGold.C ,b=a", ((_A, _C), (_B, ("path", "a")))),
        ("public.a = public.a", ((_A, _A),)),
        ('"S. 1"."x""=,y" = "A"."B"', ((("S. 1", 'x"=,y'), ("A", "B")),)),
        ("é.ß_1$ = gold.c", ((("é", "ß_1$"), _C),)),
        (f"a = gold.{'n' * 70}", ((_A, ("gold", "n" * 63)),)),
    ],
)
def test_a_text_is_a_list_of_pairs(
    text: str, pairs: tuple[tuple[RelationName, RelationName], ...]
) -> None:
    found = parse_table_map(text, lambda name: "path")
    assert found.pairs == pairs
    assert parse_table_map(str(found)) == found  # names are quoted, with their schemas


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("a", "syntax error at end of input"),
        ("a =", "syntax error at end of input"),
        ("a = b,", "syntax error at end of input"),
        ("a. = b", 'syntax error at or near "="'),
        (", a = b", 'syntax error at or near ","'),
        ("a = b c = d", 'syntax error at or near "c"'),
        ("a = b; c = d", 'syntax error at or near ";"'),
        ("a -> b", 'syntax error at or near "-"'),
        ("a == b", 'syntax error at or near "="'),
        ("1a = b", 'syntax error at or near "1"'),
        ("'a' = b", 'syntax error at or near "\'"'),
        ('a = "b', 'unterminated quoted identifier at or near ""b"'),
        ('a = ""', 'zero-length delimited identifier at or near """"'),
    ],
)
def test_what_is_no_list_is_refused_with_its_place(text: str, detail: str) -> None:
    with pytest.raises(InvalidParameterValue) as refused:
        parse_table_map(text)
    assert refused.value.message == f'invalid value for parameter "table_map": "{text}"'
    assert refused.value.detail == detail


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("a = b, public.A = c", DuplicateObject,
         'published table "public.a" used more than once in table_map'),
        ("a = gold.c, b = gold.c", DuplicateObject,
         'target table "gold.c" used more than once in table_map'),
        ("d.s.a = b", SqlSyntaxError,
         "improper relation name (too many dotted names): d.s.a"),
        ("a = d.s.b", SqlSyntaxError,
         "improper relation name (too many dotted names): d.s.b"),
    ],
)  # fmt: skip
def test_names_that_are_refused(text: str, kind: type[PostgresError], message: str) -> None:
    with pytest.raises(kind) as refused:
        parse_table_map(text)
    assert refused.value.message == message


@pytest.mark.parametrize(
    ("pairs", "published", "target"),
    [
        ((), _A, _A),
        (((_A, _C),), _A, _C),
        (((_A, _C),), _B, _B),
        (((_A, _B), (_B, _A)), _A, _B),  # they exchange their names
        (((_A, _B), (_B, _A)), _B, _A),
        (((_A, _A),), _A, _A),
    ],
)
def test_the_sides_of_a_map_agree(
    pairs: tuple[tuple[RelationName, RelationName], ...],
    published: RelationName,
    target: RelationName,
) -> None:
    found = TableMap(pairs)
    assert found.target(published) == target
    assert found.published(target) == published
    other = None if published == target else published
    assert found.named(str(target)) == other


def test_a_table_whose_namesake_goes_elsewhere_takes_nothing() -> None:
    assert TableMap(((_A, _C),)).published(_A) is None


def test_two_published_tables_have_not_one_target() -> None:
    found = TableMap(((_A, _B),))
    found.check_targets([_A, _C])
    with pytest.raises(InvalidParameterValue) as refused:
        found.check_targets([_B, _C, _A])
    assert refused.value.message == (
        'published tables "public.a" and "public.b" have the same target "public.b"'
    )


def test_equal_names_are_shown_once() -> None:
    assert shown_pair(_A, _A) == "public.a"
    assert shown_pair(_A, RelationName("Gold", "c")) == 'public.a = "Gold".c'

"""The forms of a relation's qualified name."""

from __future__ import annotations

import pytest

from replctl.record import dataclass
from replctl.relation_name import RelationName
from replctl.types.named_relation import NamedRelation


@dataclass(frozen=True, slots=True)
class _Described(NamedRelation):
    schema: str
    name: str


@pytest.mark.parametrize(
    ("schema", "name", "plain", "quoted"),
    [
        ("public", "t", "public.t", "public.t"),
        ("Sales", "a b", "Sales.a b", '"Sales"."a b"'),
        ("s", "select", "s.select", 's."select"'),
    ],
)
def test_forms_of_the_name(schema: str, name: str, plain: str, quoted: str) -> None:
    relation = _Described(schema, name)
    assert relation.relation_name == RelationName(schema, name)
    assert relation.qualified_name == plain
    assert relation.quoted_name == quoted

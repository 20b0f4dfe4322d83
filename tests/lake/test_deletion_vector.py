"""Deletion vectors have the format that Delta's readers expect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replctl.lake.deletion_vector import serialized

if TYPE_CHECKING:
    pass


def test_a_bitmap_of_one_position() -> None:
    assert serialized([3]).hex() == (
        "d1d339640100000000000000000000003a3000000100000000000000100000000300"
    )

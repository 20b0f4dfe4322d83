"""The form of paths in Delta's log, as Delta 4.4 for Spark 4.2 compared them in a run: a version
adds a file under the first path, and the next version removes it under the second one."""

from __future__ import annotations

import re

import pytest

from replctl.delta_path import UNUSUAL_PATH, canonical_path


@pytest.mark.parametrize(
    ("added", "removed"),
    [
        ("/t/a", "file:/t/a"),
        ("/t/a", "file:///t/a"),
        ("file:///t/a", "file:/t/a"),
        ("FILE:/t/a", "file:/t/a"),
        ("./a", "a"),
        ("x/../a", "a"),
        ("d//a", "d/a"),
        ("file:/t//d/a", "file:/t/d/a"),
        ("%c3%a9", "%C3%A9"),
        ("/t/%41", "file:/t/A"),
        ("/t/A%20b", "file:/t/A%20b"),
        ("/t/a%2Bb=c@d&e,f;g~h!i'j(k)*_l", "file:/t/a+b=c@d&e,f;g~h!i'j(k)*_l"),
        ("/t/a%23b%3Fc", "file:/t/a%23b%3fc"),
        ("/t/a%2541b", "file:/t/a%2541b"),
        ("/t/%C3%A9", "file:/t/é"),
        ("/t/a%3Ab%5Bc%5D%7Bd%7D", "file:/t/a:b%5bc%5d%7bd%7d"),
    ],
)
def test_two_paths_of_one_file(added: str, removed: str) -> None:
    assert canonical_path(added) == canonical_path(removed)


@pytest.mark.parametrize(
    ("added", "removed"),
    [
        ("a", "file:/t/a"),
        ("%41", "A"),
        ("é", "%C3%A9"),
        ("/t/%C3%A9", "file:/t/%C3%A9"),
        ("s3://b/a", "s3a://b/a"),
        ("../a", "a"),
    ],
)
def test_paths_of_two_files(added: str, removed: str) -> None:
    assert canonical_path(added) != canonical_path(removed)


@pytest.mark.parametrize(
    "path",
    ["a", "p=é/a%20b", "p=a:b/c", "a/..b", "file:/t/a", "s3a://b/k/a", "../a", "file:/t/é", "."],
)
def test_a_path_in_this_form_stays(path: str) -> None:
    assert canonical_path(path) == path


@pytest.mark.parametrize(
    "path", ["/t/a", "file:///t/a", "FILE:/t/a", "a//b", "a/./b", "a/..", "%c3"]
)
def test_other_forms_are_noticed(path: str) -> None:
    assert re.search(UNUSUAL_PATH, path)

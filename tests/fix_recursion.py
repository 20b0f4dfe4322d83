"""The recursion limit of the command."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from replctl.recursion_limit import raise_recursion_limit


@pytest.fixture
def deep_recursion() -> Iterator[None]:
    """Let functions recurse as deeply as in the command, until the test ends."""
    limit = sys.getrecursionlimit()
    raise_recursion_limit()
    yield
    sys.setrecursionlimit(limit)

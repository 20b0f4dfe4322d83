"""Makes a statement fail after its commit, and its undo fail too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from replctl.errors import DiskFull, InternalError


@contextmanager
def failed_undo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the statement of the block fail after its commit, and the undo fail as on a full disk."""

    def fail(*_arguments: object, **_named: object) -> None:
        raise DiskFull("the disk is full")

    with monkeypatch.context() as patch:
        patch.setenv("REPLCTL_INJECTION_POINT", "write.before-log:error")
        patch.setattr("replctl.injection_point._visits", Counter())
        patch.setattr("replctl.lake.undo.undo_since", fail)
        with pytest.raises(InternalError, match="injected"):
            yield

"""Statements wait for other transactions."""

from __future__ import annotations

import pytest

from replctl.errors import LockNotAvailable, TransactionInProgress
from replctl.lake.waiting import when_free
from replctl.session import Session


def test_a_statement_does_not_wait_for_a_transaction_that_has_ended(session: Session) -> None:
    """Only the statement's own transaction can block it again after its end."""
    attempts = []

    def blocked() -> None:
        attempts.append(1)
        raise TransactionInProgress({999})

    with pytest.raises(LockNotAvailable):
        when_free(session, blocked)
    assert len(attempts) == 2

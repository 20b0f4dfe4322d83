"""Write and read the mark of replctl's own commits in Delta's `userMetadata`.  A mark says what the
commit means to replctl, and is signed with the catalog's key.

A signature is not enough: a mark is valid only if the catalog recorded its nonce before the write
(commit_log.py).  Text of other writers is never a mark.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from replctl.record import dataclass

_PREFIX = '{"replctl":'
#: Maximum number of characters of a mark.  replctl's marks are far shorter.
_LONGEST = 100_000


@dataclass(frozen=True, slots=True)
class CommitMark:
    """The mark of one of replctl's commits.

    Attributes:
        nonce: the nonce of the intent to write the relation.
        number: 1 for the first commit with this nonce, 2 for the second, and so on.
        xid: the transaction.
        timeline: the cluster's timeline.
        silent: replctl neither decodes nor undoes the commit.
        whole: the commit is the only one of its transaction.
        truncates: the commit empties the table.  The commit log has a separate entry for this.
        changes_keys: images of the commit's updates must be paired by row id.
        undoes: the versions that the commit undoes.
        removes: the names in storage of the columns that the commit removes from the table.
        renames: the columns that the commit renames: their numbers in storage, and new names.
        widens: the numbers in storage of the columns to which the commit gives wider types.
        origin: the origin of replicated changes.
        origin_at: LSN and timestamp at that origin, if they are known.
    """

    nonce: str
    number: int
    xid: int
    timeline: int = 1
    silent: bool = False
    whole: bool = False
    truncates: bool = False
    changes_keys: bool = False
    undoes: tuple[int, ...] = ()
    removes: tuple[str, ...] = ()
    renames: tuple[tuple[int, str], ...] = ()
    widens: tuple[int, ...] = ()
    origin: str | None = None
    origin_at: tuple[Any, ...] | None = None

    @property
    def place(self) -> str:
        """Return nonce and number.  Together they are unique among the commits of a relation."""
        return f"{self.nonce}/{self.number}"


#: Default values; the text omits attributes that have them.
_DEFAULTS = {
    name: value
    for name, value in asdict(CommitMark("", 0, 0)).items()
    if name not in ("nonce", "number", "xid")
}


def signed_text(mark: CommitMark, system_identifier: int, key: bytes, relid: int) -> str:
    """Return the text for `userMetadata` of a commit to a relation."""
    said = {
        name: value
        for name, value in asdict(mark).items()
        if (name, value) not in _DEFAULTS.items()
    }
    body = {"system_identifier": system_identifier, **said}
    body["signature"] = _signature(body, key, relid)
    return json.dumps({"replctl": body}, separators=(",", ":"))


def mark_of(user_metadata: object, key: bytes, relid: int) -> CommitMark | None:
    """Return the mark in a commit's `userMetadata`; None if it is not signed for this relation.

    Other content never raises an error: it is another writer's text.
    """
    if not isinstance(user_metadata, str) or not user_metadata.startswith(_PREFIX):
        return None
    if len(user_metadata) > _LONGEST:
        return None
    try:
        body = json.loads(user_metadata)["replctl"]
        signature = body.pop("signature")
        if not hmac.compare_digest(signature, _signature(body, key, relid)):
            return None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        # Another writer's text, or a forged mark
        return None
    return _mark(body)


def _mark(body: Mapping[str, Any]) -> CommitMark:
    """Return the mark in `body`.  The caller has checked the signature of `body`."""
    known = {field.name for field in fields(CommitMark)}
    said = {name: value for name, value in body.items() if name in known}
    for name in ("undoes", "removes", "widens", "origin_at"):
        if said.get(name) is not None:
            said[name] = tuple(said[name])
    if "renames" in said:
        said["renames"] = tuple((number, name) for number, name in said["renames"])
    return CommitMark(**said)


def _signature(body: Mapping[str, Any], key: bytes, relid: int) -> str:
    text = json.dumps([relid, body], separators=(",", ":"), sort_keys=True)
    return hmac.new(key, text.encode(), "sha256").hexdigest()

"""Access privileges of objects: grantees, privileges and grantors (acl.c, acldefault())."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Literal, TypeAlias

from replctl.record import dataclass

AclKind: TypeAlias = Literal[
    "table", "column", "sequence", "schema", "database", "function", "type"
]  # fmt: skip

PUBLIC = 0


class Privilege(StrEnum):
    """A privilege by its letter in access lists, in display order (ACL_ALL_RIGHTS_STR)."""

    INSERT = "a"
    SELECT = "r"
    UPDATE = "w"
    DELETE = "d"
    TRUNCATE = "D"
    REFERENCES = "x"
    TRIGGER = "t"
    EXECUTE = "X"
    USAGE = "U"
    CREATE = "C"
    TEMPORARY = "T"
    CONNECT = "c"
    SET = "s"
    ALTER_SYSTEM = "A"
    MAINTAIN = "m"

    @property
    def word(self) -> str:
        """Return the privilege as statements name it: `ALTER SYSTEM`."""
        return self.name.replace("_", " ")


def find_privilege(word: str) -> Privilege | None:
    """Return the privilege of that name in lower case; None if there is none."""
    name = "TEMPORARY" if word == "temp" else word.upper().replace(" ", "_")
    return Privilege.__members__.get(name)


#: The letters of the privileges that exist for each kind of object.
ALL_RIGHTS: dict[AclKind, str] = {
    "table": "arwdDxtm",
    "column": "arwx",
    "sequence": "rwU",
    "schema": "UC",
    "database": "CTc",
    "function": "X",
    "type": "U",
}
_SAFE_NAME = re.compile("[A-Za-z0-9_]+")
_PUBLIC_RIGHTS: dict[AclKind, str] = {"database": "Tc", "function": "X", "type": "U"}


@dataclass(frozen=True, slots=True)
class AclItem:
    """The privileges that one role has granted to another; grantee 0 is PUBLIC."""

    grantee: int
    grantor: int
    privileges: str
    options: str = ""  # the privileges that have the grant option

    def shown(self, names: Mapping[int, str]) -> str:
        """Return the text of an item, such as `alice=r*w/postgres`."""
        letters = "".join(
            letter + ("*" if letter in self.options else "")
            for letter in Privilege
            if letter in self.privileges
        )
        grantee = "" if self.grantee == PUBLIC else _role(names[self.grantee])
        return f"{grantee}={letters}/{_role(names[self.grantor])}"


def _role(name: str) -> str:
    """Return a role's name as access lists show it: quoted only if it has special characters
    (putid()).
    """
    escaped = name.replace('"', '""')
    return name if _SAFE_NAME.fullmatch(name) else f'"{escaped}"'


Acl: TypeAlias = tuple[AclItem, ...]


def default_acl(kind: AclKind, owner: int) -> Acl:
    """Return the access list before any GRANT: all privileges for the owner, some for PUBLIC."""
    items = []
    if kind in _PUBLIC_RIGHTS:
        items.append(AclItem(PUBLIC, owner, _PUBLIC_RIGHTS[kind]))
    if kind != "column":
        items.append(AclItem(owner, owner, ALL_RIGHTS[kind]))
    return tuple(items)


def encode_acl(acl: Acl) -> str:
    """Return the stored form of an access list."""
    return json.dumps([[i.grantee, i.grantor, i.privileges, i.options] for i in acl])


def decode_acl(text: str | None) -> Acl | None:
    """Parse the result of `encode_acl`; None stays None."""
    return None if text is None else tuple(AclItem(*item) for item in json.loads(text))


def granted(acl: Acl, grantee: int, grantor: int, letters: str, *, with_option: bool) -> Acl:
    """Return an access list after a grant of `letters`."""
    for i, item in enumerate(acl):
        if (item.grantee, item.grantor) == (grantee, grantor):
            options = _union(item.options, letters) if with_option else item.options
            changed = replace(item, privileges=_union(item.privileges, letters), options=options)
            return (*acl[:i], changed, *acl[i + 1 :])
    return (*acl, AclItem(grantee, grantor, letters, letters if with_option else ""))


def revoked(acl: Acl, grantee: int, grantor: int, letters: str, *, only_option: bool) -> Acl:
    """Return an access list without some privileges, or only without their grant options."""
    items = []
    for item in acl:
        if (item.grantee, item.grantor) == (grantee, grantor):
            kept = item.privileges if only_option else _without(item.privileges, letters)
            item = replace(item, privileges=kept, options=_without(item.options, letters))
        if item.privileges:
            items.append(item)
    return tuple(items)


def merged(acl: Acl, further: Acl) -> Acl:
    """Return the union of two access lists (aclmerge)."""
    for item in further:
        acl = granted(acl, item.grantee, item.grantor, item.privileges, with_option=False)
        if item.options:
            acl = granted(acl, item.grantee, item.grantor, item.options, with_option=True)
    return acl


def sorted_acl(acl: Acl) -> Acl:
    """Sort an access list by grantee and grantor, as pg_default_acl stores lists (aclitemsort)."""
    return tuple(sorted(acl, key=lambda item: (item.grantee, item.grantor)))


def without_role(acl: Acl, role: int) -> Acl:
    """Return an access list that does not mention a role."""
    return tuple(item for item in acl if role not in (item.grantee, item.grantor))


def with_owner(acl: Acl, old: int, new: int) -> Acl:
    """Return an access list in which a new owner replaces the old one (aclnewowner)."""

    def changed(oid: int) -> int:
        return new if oid == old else oid

    return merged(
        (),
        tuple(
            replace(item, grantee=changed(item.grantee), grantor=changed(item.grantor))
            for item in acl
        ),
    )


def letters_for(acl: Acl, roles: Iterable[int]) -> str:
    """Return the letters of all privileges that the list gives to any of these roles, or to
    PUBLIC.
    """
    known = {PUBLIC, *roles}
    return "".join({p for item in acl if item.grantee in known for p in item.privileges})


def options_for(acl: Acl, roles: Iterable[int]) -> str:
    """Return the letters of all privileges that any of these roles may grant to others."""
    known = set(roles)
    return "".join({p for item in acl if item.grantee in known for p in item.options})


def _union(first: str, second: str) -> str:
    return "".join(letter for letter in Privilege if letter in first + second)


def _without(letters: str, gone: str) -> str:
    return "".join(letter for letter in letters if letter not in gone)

"""Write the GRANT and REVOKE statements that turn an initial access list into the actual one
(dumputils.c).
"""

from __future__ import annotations

from collections.abc import Iterator

from replctl.catalog.acl import PUBLIC, Acl, AclItem, AclKind, Privilege, default_acl
from replctl.dump.entry import Entry
from replctl.dump.source import Source
from replctl.types.quote import quote_identifier

#: Privileges of each kind of object, in pg_dump's order (parseAclItem).
_ORDER: dict[AclKind, tuple[Privilege, ...]] = {
    "table": (
        Privilege.SELECT, Privilege.INSERT, Privilege.REFERENCES, Privilege.DELETE,
        Privilege.TRIGGER, Privilege.TRUNCATE, Privilege.MAINTAIN, Privilege.UPDATE,
    ),
    "column": (
        Privilege.SELECT, Privilege.INSERT, Privilege.REFERENCES, Privilege.UPDATE,
    ),
    "sequence": (Privilege.SELECT, Privilege.USAGE, Privilege.UPDATE),
    "schema": (Privilege.CREATE, Privilege.USAGE),
    "function": (Privilege.EXECUTE,),
    "type": (Privilege.USAGE,),
}  # fmt: skip
_TARGETS: dict[AclKind, str] = {"column": "TABLE"}


def acl_entries(
    source: Source,
    kind: AclKind,
    acl: Acl | None,
    owner: int,
    *,
    name: str,
    like: Entry,
    column: str | None = None,
    base: Acl | None = None,
) -> Iterator[Entry]:
    """Yield the entry that creates an access list; nothing if the list is the initial one.

    Args:
        name: the object's name in statements.
        like: the object's entry, whose name, schema and owner the new entry gets.
        column: the column, if the list belongs to one.
        base: the initial list, if it is not the default list of the object's kind.
    """
    if acl is None:
        return
    base = default_acl(kind, owner) if base is None else base
    objects = f"{_TARGETS.get(kind, kind.upper())} {name}"
    statements = acl_statements(source, kind, acl, owner, objects, base=base, column=column)
    label = f"COLUMN {like.name}.{column}" if column else f"{kind.upper()} {like.name}"
    if statements:
        yield Entry("ACL", label, "".join(statements), like.schema, like.owner)


def acl_statements(
    source: Source,
    kind: AclKind,
    acl: Acl,
    owner: int,
    objects: str,
    *,
    base: Acl,
    column: str | None = None,
) -> list[str]:
    """Return the statements that turn the access list `base` into `acl`.

    Args:
        objects: the objects in the statements: `TABLE public.t`, or `TABLES`.
        column: the column, if the list belongs to one.
    """
    statements = [
        _statement(source, kind, item, "REVOKE", item.privileges, objects, column)
        for item in base
        if item not in acl
    ]
    for item in acl:
        if item not in base:
            statements += _grants(source, kind, item, owner, objects, column)
    return statements


def _grants(
    source: Source, kind: AclKind, item: AclItem, owner: int, objects: str, column: str | None
) -> list[str]:
    # For the owner, all privileges include the grant option.
    options = "" if item.grantee == owner else item.options
    plain = "".join(letter for letter in item.privileges if letter not in options)
    statements = []
    for letters, tail in ((plain, ""), (options, " WITH GRANT OPTION")):
        if letters:
            statements.append(
                _statement(source, kind, item, "GRANT", letters, objects, column, tail)
            )
    if item.grantor == owner:
        return statements
    grantor = quote_identifier(source.role_name(item.grantor))
    return [
        f"SET SESSION AUTHORIZATION {grantor};\n",
        *statements,
        "RESET SESSION AUTHORIZATION;\n",
    ]


def _statement(
    source: Source,
    kind: AclKind,
    item: AclItem,
    verb: str,
    letters: str,
    objects: str,
    column: str | None,
    tail: str = "",
) -> str:
    known = _ORDER[kind]
    of_column = "" if column is None else f"({quote_identifier(column)})"
    if set(known) <= set(letters):
        shown = f"ALL{of_column}"
    else:
        shown = ",".join(item.word + of_column for item in known if item in letters)
    preposition = "FROM" if verb == "REVOKE" else "TO"
    is_public = item.grantee == PUBLIC
    grantee = "PUBLIC" if is_public else quote_identifier(source.role_name(item.grantee))
    return f"{verb} {shown} ON {objects} {preposition} {grantee}{tail};\n"

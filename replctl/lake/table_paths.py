"""Locate the files that a table's log names: below the table's directory, or elsewhere."""

from __future__ import annotations

import os
import re
from functools import cached_property
from urllib.parse import unquote

from replctl.delta_path import canonical_path
from replctl.lake.table_folder import TableFolder

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_AUTHORITY = re.compile(r"//([^/]*)")


class TablePaths:
    """Resolves the paths in Delta's logs.  These are URIs, relative to the table or absolute.

    Args:
        location: the table's directory, a path or a URI.
    """

    def __init__(self, location: str) -> None:
        self._folder = TableFolder.of(location)
        self._folders: dict[str, bool] = {}

    def relative(self, uri: str) -> str | None:
        """Return a URI's path relative to the table; None if it is invalid or leads elsewhere."""
        scheme, authority, path = _parts(canonical_path(uri))
        if scheme or authority or path.startswith("/"):
            place = (scheme or "file", authority, path)
            below = (_below(place, root) for root in self._roots)
            found = next((path for path in below if path is not None), "")
        else:
            found = path
        return None if {"", ".", ".."} & set(found.split("/")) or "\0" in found else found

    def has(self, uri: str) -> bool:
        """Return whether the file at a URI exists.

        Raises:
            OSError: the file cannot be examined.
        """
        folder, path = self._place(uri)
        return folder.has(path)

    def is_special(self, uri: str) -> bool:
        """Return whether a URI leads to a directory, pipe or device on this machine."""
        folder, path = self._place(uri)
        return folder.is_special(path)

    def leads_out(self, uri: str) -> bool:
        """Return whether a URI leads out of the table's directory, directly or through links."""
        path = self.relative(uri)
        if path is None:
            return True
        if not self._folder.is_local:
            return False
        folder, _, _name = path.rpartition("/")
        if folder not in self._folders:
            self._folders[folder] = self._is_elsewhere(folder)
        full = f"{self._folder.location}/{path}"
        return self._folders[folder] or (os.path.islink(full) and self._is_elsewhere(path))

    def _place(self, uri: str) -> tuple[TableFolder, str]:
        """Return a folder, and a URI's path relative to it."""
        path = self.relative(uri)
        if path is not None:
            return self._folder, path
        folder, _, name = uri.rpartition("/")
        return TableFolder.of(folder), unquote(name)

    def _is_elsewhere(self, path: str) -> bool:
        real = os.path.realpath(f"{self._folder.location}/{path}")
        return not f"{real}/".startswith(f"{self._real_root}/")

    @cached_property
    def _real_root(self) -> str:
        return os.path.realpath(self._folder.location).rstrip("/")

    @cached_property
    def _roots(self) -> list[tuple[str, str, str]]:
        if self._folder.is_local:
            own = os.path.abspath(self._folder.location)
            return [("file", "", root) for root in (own, self._folder.location, self._real_root)]
        return [_parts(self._folder.location)]


def has_scheme(uri: str) -> bool:
    """Return whether a path has a scheme, as in `file:/t/x`."""
    return _SCHEME.match(uri) is not None


def _parts(uri: str) -> tuple[str, str, str]:
    """Return scheme, authority, and the decoded path of a URI."""
    found = _SCHEME.match(uri)
    scheme = "" if found is None else found[1].lower()
    rest = uri if found is None else uri[found.end() :]
    authority = _AUTHORITY.match(rest)
    if authority is not None:
        rest = rest[authority.end() :]
    scheme = "s3" if scheme in ("s3a", "s3n") else scheme
    return scheme, "" if authority is None else authority[1], unquote(rest)


def _below(place: tuple[str, str, str], root: tuple[str, str, str]) -> str | None:
    """Return the path of a location relative to a root; None if it is not below the root."""
    start = f"{root[2].rstrip('/')}/"
    is_there = place[:2] == root[:2] and place[2].startswith(start)
    return place[2][len(start) :] if is_there else None

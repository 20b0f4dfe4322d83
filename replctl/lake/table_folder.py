"""Read, create and remove the files in the folder of a Delta table, which is local or remote.
pyarrow's file systems access remote storage.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from replctl.absolute_path import absolute_path
from replctl.catalog.home_directory import CATALOG
from replctl.delta_path import UNUSUAL_PATH
from replctl.lake.delta_names import LOG_FOLDER
from replctl.object_store import canonical_location, file_system, is_s3
from replctl.record import dataclass

#: Entries that identify the directory of a table or of a cluster.
_MARKS_OF_OTHERS = (LOG_FOLDER, CATALOG)
_FILE_SCHEME = re.compile(r"^file:(//[^/]*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TableFolder:
    """The folder of a Delta table.  Paths are relative to it, and separated by `/`.

    The methods raise OSError; they raise FileNotFoundError if there is no such file.
    """

    location: str
    is_local: bool

    @staticmethod
    def of(location: str) -> TableFolder:
        """Return the folder of a table at a path or URI."""
        path = _local_path(location)
        if path is not None:
            return TableFolder(path.rstrip("/") or "/", is_local=True)
        return TableFolder(location.rstrip("/"), is_local=False)

    @staticmethod
    def absolute(location: str) -> str:
        """Return a location that does not depend on the current directory: a path without a scheme
        if it is local.  Hadoop would not decode `file:/t/a%20b`.
        """
        path = _local_path(location)
        if path is not None:
            return os.path.normpath(absolute_path(path))
        scheme = urlsplit(location).scheme
        return f"{scheme}{location[len(scheme) :]}"  # Hadoop rejects capitals

    def names(self, path: str) -> list[str]:
        """Return the names of the entries of a folder."""
        if self.is_local:
            return os.listdir(f"{self.location}/{path}")
        from pyarrow import fs

        system, place = self._remote(path)
        return [info.base_name for info in system.get_file_info(fs.FileSelector(place))]

    def read(self, path: str) -> bytes:
        """Return the content of a regular file."""
        if self.is_local:
            with open(f"{self.location}/{path}", "rb", opener=_open_regular) as file:
                return bytes(file.read())
        system, place = self._remote(path)
        with system.open_input_stream(place) as stream:
            return bytes(stream.read())

    def create(
        self, path: str, content: bytes, *, like: str | None = None, replaces: bool = False
    ) -> bool:
        """Create a file in a local folder atomically, and the folders above it.  Return False if
        there already is a file with this name.

        Args:
            like: the file whose permissions the new one gets; None: those that the umask allows.
            replaces: replace a file with this name.
        """
        assert self.is_local
        target = Path(self.location, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_name(f".{target.name}.{uuid4()}.tmp")
        try:
            unfinished.write_bytes(content)
            if like is not None:
                _copy_mode(Path(self.location, like), unfinished)
            if replaces or not target.exists():  # Hadoop would check the new file with it
                target.with_name(f".{target.name}.crc").unlink(missing_ok=True)
            if replaces:
                os.replace(unfinished, target)
                return True
            return _is_named(unfinished, target)
        finally:
            unfinished.unlink(missing_ok=True)

    def copy_mode(self, like: str, path: str) -> None:
        """Give a local file the permissions of another one."""
        _copy_mode(Path(self.location, like), Path(self.location, path))

    def state(self, path: str) -> tuple[int, int, int]:
        """Return the state of a file, which changes if the file is replaced.

        Returns:
            the inode number (on S3 a number from the ETag, on other remote storage 0), the size in
            bytes, and the time of the last change in nanoseconds since 1970.
        """
        if self.is_local:
            found = os.stat(f"{self.location}/{path}")
            return found.st_ino, found.st_size, found.st_mtime_ns
        from pyarrow import fs

        system, place = self._remote(path)
        if is_s3(self.location):  # its times are in seconds: two writers may have the same
            return _object_state(system, place)
        info = system.get_file_info(place)
        if info.type == fs.FileType.NotFound:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return 0, int(info.size or 0), int(info.mtime_ns or 0)

    def read_parquet(
        self, path: str, columns: list[str], added: Collection[str] | None = None
    ) -> list[dict[str, Any]]:
        """Return the rows of a log's Parquet file that have a value in one of the columns.

        Args:
            added: return rows with an `add` only if it has one of these paths, or a path that may
                be another form of one of them (replctl.delta_path); None for all rows.
        """
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile

        try:
            if self.is_local:
                with (
                    open(f"{self.location}/{path}", "rb", opener=_open_regular) as source,
                    ParquetFile(source) as file,
                ):
                    return _rows(file.read(columns=columns), added)
            system, place = self._remote(path)
            with system.open_input_file(place) as source, ParquetFile(source) as file:
                return _rows(file.read(columns=columns), added)
        except (
            ArrowException,
            ValueError,
            OverflowError,
        ) as error:  # for example of text that is not UTF-8
            raise OSError(errno.EIO, f"not a valid Parquet file: {error}", path) from error

    def data_files(self) -> Iterator[tuple[str, float]]:
        """Yield the regular files that may contain a table's rows or changes, each with the time of
        its last change in seconds since 1970.  Omit hidden files, such as Delta's log, and nested
        directories of other tables or clusters.  Do not follow links.
        """
        files = [(path, changed, path.split("/")) for path, changed in self.all_files()]
        others = {
            tuple(parts[:depth])
            for _path, _changed, parts in files
            for depth in range(1, len(parts))
            if parts[depth] in _MARKS_OF_OTHERS
        }
        for path, changed, parts in files:
            is_hidden = any(_is_hidden(part) for part in parts)
            if not is_hidden and not any(
                tuple(parts[:depth]) in others for depth in range(1, len(parts))
            ):
                yield path, changed

    def all_files(self) -> Iterator[tuple[str, float]]:
        """Yield all regular files below the folder, in the form of `data_files`."""
        yield from self.files_in("")

    def files_in(self, path: str) -> Iterator[tuple[str, float]]:
        """Yield the regular files below a subfolder, in the form of `data_files`; none if it does
        not exist.
        """
        if self.is_local:
            if not (path and os.path.islink(f"{self.location}/{path}")):
                yield from self._local_files(f"{path}/" if path else "")
            return
        from pyarrow import fs

        system, root = self._remote("")
        _system, place = self._remote(path)
        selector = fs.FileSelector(place, recursive=True, allow_not_found=True)
        for info in system.get_file_info(selector):
            if info.is_file:
                yield info.path[len(root) :].lstrip("/"), (info.mtime_ns or 0) / 1e9

    def _local_files(self, path: str) -> Iterator[tuple[str, float]]:
        try:
            listed = os.scandir(f"{self.location}/{path}")
        except FileNotFoundError:  # missing, or removed meanwhile
            return
        with listed as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from self._local_files(f"{path}{entry.name}/")
                elif entry.is_file(follow_symlinks=False):
                    try:
                        changed = entry.stat(follow_symlinks=False).st_mtime
                    except FileNotFoundError:  # a temporary file that its writer has renamed
                        continue
                    yield path + entry.name, changed

    def is_empty(self) -> bool:
        """Return whether the folder is empty or missing."""
        if self.is_local:
            try:
                return not os.listdir(self.location)
            except FileNotFoundError:  # missing, unless it is a link that leads nowhere
                return not os.path.lexists(self.location)
        from pyarrow import fs

        system, place = self._remote("")
        found = system.get_file_info(fs.FileSelector(place, allow_not_found=True))
        if all(info.type == fs.FileType.Directory for info in found):
            return not found or next(self.all_files(), None) is None  # marks of empty folders
        return False

    def is_link(self) -> bool:
        """Return whether the folder itself is a symbolic link."""
        return self.is_local and os.path.islink(self.location)

    def canonical(self) -> str:
        """Return the canonical spelling of the location."""
        if self.is_local:
            return os.path.realpath(self.location)
        if is_s3(self.location):
            return canonical_location(self.location)
        parts = urlsplit(self.location)
        return f"{parts.scheme}://{parts.netloc}{parts.path}"

    def parents(self) -> Iterator[TableFolder]:
        """Yield the parent folders, the nearest first."""
        if self.is_local:
            for parent in PurePosixPath(os.path.realpath(self.location)).parents:
                yield TableFolder(str(parent), is_local=True)
            return
        scheme, _, place = self.location.partition("://")
        for parent in list(PurePosixPath(place).parents)[:-1]:  # the last one is "."
            yield TableFolder(f"{scheme}://{parent}", is_local=False)

    def has(self, path: str) -> bool:
        """Return whether a file or folder with this path exists."""
        if self.is_local:
            return os.path.exists(f"{self.location}/{path}")
        from pyarrow import fs

        system, place = self._remote(path)
        return bool(system.get_file_info(place).type != fs.FileType.NotFound)

    def is_special(self, path: str) -> bool:
        """Return whether a path leads to a directory, pipe or device, which has no rows to read."""
        if not self.is_local:
            return False
        try:
            return not stat.S_ISREG(os.stat(f"{self.location}/{path}").st_mode)
        except (OSError, ValueError):  # missing, unreadable, or no valid path
            return False

    def delete(self, path: str, *, is_emptied: bool = False) -> None:
        """Remove a file and the checksum that Hadoop wrote next to it, if they exist.

        The path must lead to a file below the folder.  It must not contain links.

        Args:
            is_emptied: free the file's space immediately, even if a program has the file open.
        """
        if not self.is_local:
            system, place = self._remote(path)
            try:
                system.delete_file(place)
            except FileNotFoundError:  # another program was faster
                return
            return
        folder, _, name = path.rpartition("/")
        # A checksum without its file would belong to the next file with this name
        for each in (f"{folder}/.{name}.crc".lstrip("/"), path):
            try:
                self._unlink(each, is_emptied=is_emptied)
            except FileNotFoundError:  # most files have no checksum
                continue

    def _unlink(self, path: str, *, is_emptied: bool) -> None:
        *folders, name = path.split("/")
        if {"", ".", ".."} & {*folders, name}:
            raise OSError(errno.EINVAL, "not a path below the table", path)
        with ExitStack() as stack:
            descriptor = os.open(self.location, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, descriptor)
            for folder in folders:
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
                descriptor = os.open(folder, flags, dir_fd=descriptor)
                stack.callback(os.close, descriptor)
            if is_emptied:
                file = os.open(name, os.O_WRONLY | os.O_NOFOLLOW, dir_fd=descriptor)
                stack.callback(os.close, file)
                if os.fstat(file).st_nlink == 1:  # otherwise another directory also has the file
                    os.ftruncate(file, 0)
            os.unlink(name, dir_fd=descriptor)

    def remove_empty(self) -> bool:
        """Remove the folder and its subfolders if they are empty.  Object storage has no folders.

        Returns:
            True if the folder no longer exists.
        """
        if not self.is_local:
            return self.is_empty()
        if os.path.islink(self.location) or not os.path.isdir(self.location):
            return not os.path.lexists(self.location)
        for folder, _folders, _files in os.walk(self.location, topdown=False):
            try:
                os.rmdir(folder)
            except OSError as error:  # other files, or a link: the folder stays
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                    raise
        return not os.path.lexists(self.location)

    def _remote(self, path: str) -> tuple[Any, str]:
        return file_system(f"{self.location}/{path}".rstrip("/"))


def _local_path(location: str) -> str | None:
    """Return the path of a local location; None for another location.

    `file:/t/a%20b?c` -> `/t/a b?c`
    """
    scheme = urlsplit(location).scheme
    if scheme == "file":
        return unquote(_FILE_SCHEME.sub("", location, count=1))
    return None if scheme else location


#: The errors of file systems that have no hard links.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


def _is_named(unfinished: Path, target: Path) -> bool:
    """Give a complete file its name.  Return False if another file has this name."""
    try:
        os.link(unfinished, target)
    except FileExistsError:
        return os.path.samefile(unfinished, target)  # NFS may report a success so: link(2)
    except OSError as error:  # FAT, for example, has no hard links
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(target):
            return False
        os.rename(unfinished, target)  # as Hadoop does on all local disks
    return True


def _copy_mode(like: Path, path: Path) -> None:
    mode = stat.S_IMODE(like.stat().st_mode)
    if stat.S_IMODE(path.stat().st_mode) != mode:
        path.chmod(mode)


def _object_state(system: Any, place: str) -> tuple[int, int, int]:
    """Return the state of an object, with one request."""
    with system.open_input_file(place) as file:
        known = {name.lower(): value.decode() for name, value in file.metadata().items()}
        size = file.size()
    tag = hashlib.sha256(known["etag"].encode()).digest()
    changed = datetime.fromisoformat(known["last-modified"])
    return int.from_bytes(tag[:6], "big"), size, int(changed.timestamp()) * 1_000_000_000


def _rows(table: Any, added: Collection[str] | None) -> list[dict[str, Any]]:
    """Return the rows of an Arrow table that TableFolder.read_parquet returns.  Filter before the
    conversion, because a checkpoint has a row for each file of a table.
    """
    from pyarrow import array, compute, string

    kept = None
    for number, name in enumerate(table.column_names):  # a malicious file has duplicate names
        column = table.column(number)
        is_there = compute.is_valid(column)
        if name == "add" and added is not None:
            path = compute.struct_field(column, "path")
            is_there = compute.or_(
                compute.is_in(path, value_set=array(sorted(added), string())),
                compute.fill_null(compute.match_substring_regex(path, UNUSUAL_PATH), False),
            )
        kept = is_there if kept is None else compute.or_(kept, is_there)
    return list((table if kept is None else table.filter(kept)).to_pylist())


def _open_regular(path: str, flags: int) -> int:
    """Open a regular file.  Refuse other files, because reading a pipe might never end."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return descriptor


def _is_hidden(name: str) -> bool:
    """Return whether Delta treats a name as hidden (isHiddenDirectory in DeltaTableUtils).  A
    partition's name, `_a=1`, is not hidden.
    """
    return name.startswith((".", "_")) and name != "_change_data" and "=" not in name

"""The folder of a Delta table, wherever it lies: names, contents and times of its files, and their
removal.  What is not local is reached through pyarrow's file systems."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

from replctl.record import dataclass


@dataclass(frozen=True, slots=True)
class TableFolder:
    """A folder; paths are relative to it, with `/`.

    Its methods raise OSError, FileNotFoundError where there is nothing of that name.
    """

    location: str
    is_local: bool

    @staticmethod
    def of(location: str) -> TableFolder:
        """The folder of a table at a path or URI."""
        parts = urlsplit(location)
        if parts.scheme in ("", "file"):
            path = unquote(parts.path) if parts.scheme else location
            return TableFolder(path.rstrip("/"), is_local=True)
        return TableFolder(location.rstrip("/"), is_local=False)

    def names(self, path: str) -> list[str]:
        """What lies directly in a folder."""
        if self.is_local:
            return os.listdir(f"{self.location}/{path}")
        from pyarrow import fs

        system, place = self._remote(path)
        return [info.base_name for info in system.get_file_info(fs.FileSelector(place))]

    def read(self, path: str) -> bytes:
        """The content of a file."""
        if self.is_local:
            with open(f"{self.location}/{path}", "rb") as file:
                return file.read()
        system, place = self._remote(path)
        with system.open_input_stream(place) as stream:
            return bytes(stream.read())

    def read_parquet(self, path: str, columns: list[str]) -> list[dict[str, Any]]:
        """The rows of a Parquet file."""
        from pyarrow.parquet import ParquetFile

        if self.is_local:
            with ParquetFile(f"{self.location}/{path}") as file:
                return list(file.read(columns=columns).to_pylist())
        system, place = self._remote(path)
        with system.open_input_file(place) as source, ParquetFile(source) as file:
            return list(file.read(columns=columns).to_pylist())

    def data_files(self) -> Iterator[tuple[str, float]]:
        """The files that are a table's rows or changes, with the time of their last change: all but
        what is hidden, as Delta's log is, and Spark's own notes."""
        if self.is_local:
            yield from self._local_files("")
            return
        from pyarrow import fs

        system, place = self._remote("")
        for info in system.get_file_info(fs.FileSelector(place, recursive=True)):
            path = info.path[len(place) :].lstrip("/")
            if info.is_file and not any(_is_hidden(part) for part in path.split("/")):
                yield path, (info.mtime_ns or 0) / 1e9

    def _local_files(self, path: str) -> Iterator[tuple[str, float]]:
        with os.scandir(f"{self.location}/{path}") as entries:
            for entry in entries:
                if _is_hidden(entry.name):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    yield from self._local_files(f"{path}{entry.name}/")
                    continue
                try:
                    changed = entry.stat().st_mtime
                except FileNotFoundError:  # a writer's temporary file, which it has renamed
                    continue
                yield path + entry.name, changed

    def has(self, path: str) -> bool:
        """Whether there is a file of that name."""
        if self.is_local:
            return os.path.exists(f"{self.location}/{path}")
        from pyarrow import fs

        system, place = self._remote(path)
        return bool(system.get_file_info(place).type != fs.FileType.NotFound)

    def delete(self, path: str) -> None:
        """Remove a file, and the check sum that Hadoop has put beside it, if they are there."""
        folder, _, name = path.rpartition("/")
        for each in (path, f"{folder}/.{name}.crc".lstrip("/")):
            if self.is_local:
                try:
                    os.unlink(f"{self.location}/{each}")
                except FileNotFoundError:
                    continue
            elif each == path:
                system, place = self._remote(each)
                try:
                    system.delete_file(place)
                except FileNotFoundError:
                    continue

    def delete_all(self) -> None:
        """Remove the folder with all that is in it, if it is there."""
        if not self.is_local:
            from pyarrow import fs

            system, place = self._remote("")
            if system.get_file_info(place).type != fs.FileType.NotFound:
                system.delete_dir(place)
        elif os.path.lexists(self.location):
            shutil.rmtree(self.location)

    def _remote(self, path: str) -> tuple[Any, str]:
        from pyarrow import fs

        system, place = fs.FileSystem.from_uri(f"{self.location}/{path}".rstrip("/"))
        return system, place


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_")) and name != "_change_data"

"""The parser's tables are in the user's cache as a pickle, which can run code when it is loaded."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from replctl.parser import parse, tables


class Attack:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (f"{os.environ['ATTACKED']}",)


@pytest.mark.parametrize("too_open", ["folder", "file"])
def test_what_others_can_write_is_not_run(
    too_open: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, file = tmp_path / "cache", tmp_path / "cache" / "grammar.pickle"
    monkeypatch.setenv("ATTACKED", str(tmp_path / "attacked"))
    folder.mkdir(0o700)
    file.write_bytes(pickle.dumps(Attack()))
    file.chmod(0o600)
    (folder if too_open == "folder" else file).chmod(0o777)
    assert tables._load(file) is None
    assert not (tmp_path / "attacked").exists()


def test_the_cache_belongs_to_its_user(tmp_path: Path) -> None:
    folder, file = tmp_path / "cache", tmp_path / "cache" / "grammar.pickle"
    folder.mkdir()
    folder.chmod(0o777)
    made = tables._Tables({}, [], {}, {}, [])
    tables._save(made, file)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert tables._load(file) is not None


def test_a_statement_loads_only_the_rows_that_it_passes() -> None:
    made = tables._parser(tables.GRAMMAR_FILES, tables._Callbacks(tables._Builder()))
    text = "CREATE TABLE t (a int PRIMARY KEY)"
    state = made.start(text, "start")
    assert parse._run(state, text)
    rows, callbacks = state.parse_conf.states, state.parse_conf.callbacks
    assert isinstance(rows, tables._Rows)
    assert 0 < len(rows) < len(rows._pickles) / 40
    assert 0 < len(callbacks) < 100

"""Modules of replctl that import each other: only the groups that docs/explanation/architecture.md
names.  Imports for types and imports inside functions count."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(__file__).parent.parent
_ACCEPTED = {
    frozenset(
        f"replctl.expr.{name}"
        for name in (
            "aggregates", "analyze", "column_reference", "function_call", "rows", "sublinks",
            "subscripts", "windows",
        )
    ),
    frozenset(
        f"replctl.parser.ast{name}"
        for name in ("", ".expression", ".query", ".replication", ".table", ".utility")
    ),
    frozenset(("replctl.psql.main", "replctl.psql.spark")),
    frozenset(("replctl.session", "replctl.session_setting")),
}  # fmt: skip


def test_circles_of_imports() -> None:
    modules = {_module(path): path for path in (_ROOT / "replctl").rglob("*.py")}
    imports = {name: set(_imported(path, modules)) - {name} for name, path in modules.items()}
    reached = {name: _reached(name, imports) for name in modules}
    circles = {
        frozenset(other for other in found if name in reached[other])
        for name, found in reached.items()
        if name in found
    }
    assert circles == _ACCEPTED


def _module(path: Path) -> str:
    parts = path.relative_to(_ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(path: Path, modules: dict[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                yield below if below in modules else node.module


def _reached(name: str, imports: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    new = set(imports[name])
    while new:
        found |= new
        new = {other for module in new for other in imports[module]} - found
    return found

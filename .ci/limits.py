#!/usr/bin/env python3
"""Refuse code that has grown too large: files, classes and functions of the package.

    .ci/limits.py [DIRECTORY]

The methods of a class include properties, and the methods that it inherits from classes of the
package.  Grammar builders are left out: they have one method for each rule of the grammar.

Args:
    DIRECTORY: the directory of the repository; default: the repository that has this file.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_LINES_OF_A_FILE = 600
_METHODS_OF_A_CLASS = 25
#: Maximum number of lines of 99 of 100 functions.
_LINES_OF_A_FUNCTION = 42
_PACKAGE = "replctl"
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class _Class:
    line: int
    bases: list[str]
    methods: set[str]


@dataclass
class _Module:
    lines: int
    functions: list[int] = field(default_factory=list)
    classes: dict[str, _Class] = field(default_factory=dict)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)


def complaints(root: Path) -> Iterator[str]:
    """Yield a line for each part of a repository that is too large: `file:line: what`."""
    files = {_module_name(root, path): path for path in sorted((root / _PACKAGE).rglob("*.py"))}
    modules = {name: _read(path.read_text("utf-8")) for name, path in files.items()}
    for name, module in modules.items():
        where = files[name].relative_to(root)
        if module.lines > _LINES_OF_A_FILE:
            yield f"{where}:1: {module.lines} lines (at most {_LINES_OF_A_FILE})"
        for class_name, found in module.classes.items():
            if name.startswith("replctl.parser.") and class_name.endswith("Builder"):
                continue
            count = len(_methods(modules, name, class_name))
            if count > _METHODS_OF_A_CLASS:
                limit = f"(at most {_METHODS_OF_A_CLASS})"
                yield f"{where}:{found.line}: {class_name} has {count} methods {limit}"
    lengths = sorted(length for module in modules.values() for length in module.functions)
    longest = lengths[len(lengths) * 99 // 100] if lengths else 0
    if longest > _LINES_OF_A_FUNCTION:
        limit = f"(at most {_LINES_OF_A_FUNCTION})"
        yield f"{_PACKAGE}: one function of 100 has {longest} lines or more {limit}"


def _module_name(root: Path, path: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _read(text: str) -> _Module:
    module = _Module(text.count("\n"))
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.ImportFrom(module=str(source), names=names):
                for name in names:
                    module.imported[name.asname or name.name] = (source, name.name)
            case ast.ClassDef():
                bases = [ast.unparse(base).partition("[")[0] for base in node.bases]
                methods = {item.name for item in node.body if isinstance(item, _Function)}
                module.classes[node.name] = _Class(node.lineno, bases, methods)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                module.functions.append((node.end_lineno or node.lineno) - node.lineno + 1)
            case _:
                pass
    return module


def _methods(modules: dict[str, _Module], module_name: str, class_name: str) -> set[str]:
    """Return the names of a class's methods, and of methods that it inherits from the package."""
    module = modules.get(module_name)
    if module is None:
        return set()
    if class_name not in module.classes:
        if class_name not in module.imported:
            return set()
        return _methods(modules, *module.imported[class_name])
    found = module.classes[class_name]
    inherited = (_methods(modules, module_name, base) for base in found.bases)
    return found.methods.union(*inherited)


def main(arguments: list[str]) -> int:
    """Print the complaints about a repository.

    Returns:
        1 if there are some, else 0.
    """
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    found = list(complaints(root))
    print("\n".join(found) or "Limits: no complaints")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

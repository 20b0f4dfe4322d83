"""Each folder of replctl has a README, and the files that READMEs name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_ROOT = Path(__file__).parent.parent
_FOLDERS = [
    path.parent
    for path in sorted((_ROOT / "replctl").glob("*/__init__.py"))
]  # fmt: skip
_READMES = sorted(
    [
        *(_ROOT / "replctl").rglob("README.md"),
        *(_ROOT / "tests").glob("README.md"),
        _ROOT / "CONTRIBUTING.md",
    ]
)
_PAGES = sorted(
    [*_ROOT.glob("*.md"), *(_ROOT / "replctl").rglob("README.md"), _ROOT / "benchmarks/README.md"]
)
_LINK = re.compile(r"\]\((?!\w+:)([^)#]+)[^)]*\)")
_PATH = re.compile(r"`([\w./-]+\.(?:py|lark|md|tsv|txt))`")


def _name(path: Path) -> str:
    return str(path.relative_to(_ROOT))


@pytest.mark.parametrize("folder", _FOLDERS, ids=_name)
def test_a_folder_has_a_readme(folder: Path) -> None:
    assert 60 <= len((folder / "README.md").read_text("utf-8").splitlines()) <= 120


@pytest.mark.parametrize("readme", _READMES, ids=_name)
def test_a_readme_names_files_that_are_there(readme: Path) -> None:
    """A path starts at the README's folder, at replctl, or at the root."""
    places = (readme.parent, *readme.parent.glob("*/"), _ROOT / "replctl", _ROOT, _ROOT / "grammar")
    named = _PATH.findall(readme.read_text("utf-8"))
    assert [path for path in named if not any((place / path).exists() for place in places)] == []


@pytest.mark.parametrize("page", _PAGES, ids=_name)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    """.ci/check checks the links of docs/ when it builds the site."""
    links = _LINK.findall(page.read_text("utf-8"))
    assert [path for path in links if not (page.parent / path).exists()] == []


@pytest.mark.parametrize("readme", [p for p in _READMES if p.parent in _FOLDERS], ids=_name)
def test_a_readme_has_all_parts(readme: Path) -> None:
    headings = re.findall(r"^## (.*)$", readme.read_text("utf-8"), re.MULTILINE)
    for part in ("Invariants", "Words", "Where to begin"):
        assert part in headings

"""Complete input with Tab: backslash commands, keywords, and names from the catalog
(tab-complete.c).

The words before the cursor determine the completions: publications after `ALTER PUBLICATION p`,
relations after `FROM t`, databases after `\\c `, options after `\\pset `.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from replctl.catalog import pg_publication, pg_subscription, schema
from replctl.catalog.relation_kind import READABLE
from replctl.catalog.transaction import Catalog
from replctl.errors import PostgresError
from replctl.psql.command import COMMAND_NAMES
from replctl.psql.command_context import CommandContext
from replctl.psql.pset import OPTION_NAMES
from replctl.types import builtin
from replctl.types.quote import quote_identifier

_WORD = re.compile(r'"[^"]*"?|[^\s(),;]+')
_LAST_WORD = re.compile(r'("[^"]*|[^\s(),;"]*)\Z')

#: The kinds of names that may follow a keyword.
_AFTER_KEYWORD = {
    "publication": "publications",
    "subscription": "subscriptions",
    "from": "relations and catalogs",
    "join": "relations and catalogs",
    "into": "relations",
    "update": "relations",
    "table": "relations",
    "only": "relations",
    "truncate": "relations",
    "references": "relations",
    "database": "databases",
    "schema": "schemas",
}
_AFTER_COMMAND = {
    r"\\c(onnect)?": "databases",
    r"\\dRp\+?": "publications",
    r"\\(dRs\+?|sync)": "subscriptions",
    r"\\dn[S+]*": "schemas",
    r"\\(d[tvmisE]*[S+]*|dp|z)": "relations",
    r"\\pset": "printing options",
    r"\\(set|unset|echo)": "variables",
    r"\\(l|list)\+?": "databases",
}


class SqlCompleter(Completer):
    """Completes the word before the cursor.

    Args:
        context: provides the variables, and the session for the look-up of names.
    """

    def __init__(self, context: CommandContext) -> None:
        self._context = context

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        """Yield the completions of the word before the cursor."""
        line = document.current_line_before_cursor
        match = _LAST_WORD.search(line)
        word = match[0] if match is not None else ""
        before = line[: len(line) - len(word)]
        command = re.fullmatch(r"\s*(\\\S*)", line)
        if command is not None:
            names = ["\\" + name for name in COMMAND_NAMES]
            yield from _matching(command[1], names)
            return
        yield from _matching(word, self._candidates(before))
        if not before.lstrip().startswith("\\"):
            yield from self._keywords(word)

    def _candidates(self, before: str) -> Iterable[str]:
        words = _WORD.findall(before)
        if not words:
            return ()
        if words[0].startswith("\\"):
            kinds = (kind for name, kind in _AFTER_COMMAND.items() if re.fullmatch(name, words[0]))
            return self._names(next(kinds, ""))
        return self._names(_AFTER_KEYWORD.get(words[-1].lower(), ""))

    def _names(self, kind: str) -> list[str]:
        match kind:
            case "":
                return []
            case "printing options":
                return list(OPTION_NAMES)
            case "variables":
                listing = self._context.settings.variables.listing()
                return [line.split(" ", 1)[0] for line in listing.splitlines()]
        session = self._context.settings.session
        if session is None:
            return []
        try:
            with session.read() as catalog:
                return [quote_identifier(name) for name in _CATALOG_NAMES[kind](catalog)]
        except PostgresError:  # do not disturb the user if the catalog cannot be read now
            return []

    def _keywords(self, word: str) -> Iterator[Completion]:
        if not word or not word.replace("_", "").isalpha():
            return
        style = self._context.settings.variables.choice("COMP_KEYWORD_CASE")
        is_lower = style == "lower" or (style.startswith("preserve") and word[-1].islower())
        for keyword in builtin.keywords():
            if keyword.startswith(word.lower()):
                text = keyword if is_lower else keyword.upper()
                yield Completion(text, start_position=-len(word))


def _matching(word: str, names: Iterable[str]) -> Iterator[Completion]:
    for name in sorted(set(names)):
        if name.startswith(word) and name != word:
            yield Completion(name, start_position=-len(word))


def _relations(catalog: Catalog) -> list[str]:
    rows = catalog.select(schema.pg_class, schema.pg_class.c.relkind.in_(READABLE))
    return [str(row.relname) for row in rows]


_CATALOG_NAMES: dict[str, Callable[[Catalog], list[str]]] = {
    "databases": lambda catalog: [str(r.datname) for r in catalog.select(schema.pg_database)],
    "publications": lambda catalog: [p.name for p in pg_publication.list_publications(catalog)],
    "subscriptions": lambda catalog: [s.name for s in pg_subscription.list_subscriptions(catalog)],
    "schemas": lambda catalog: [str(r.nspname) for r in catalog.select(schema.pg_namespace)],
    "relations": _relations,
    "relations and catalogs": lambda catalog: [*_relations(catalog), *builtin.system_relations()],
}

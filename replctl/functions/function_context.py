"""The facts that functions of SQL need from the session that calls them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from replctl.catalog.cluster import Cluster
from replctl.catalog.namespace import CatalogEnvironment
from replctl.catalog.pg_sequence import SequenceValues
from replctl.catalog.transaction import Catalog
from replctl.expr import nodes
from replctl.session import Session


@dataclass
class FunctionContext:
    """The facts that functions need from the session that calls them."""

    catalog: Catalog
    environment: CatalogEnvironment
    role_name: str
    session_role_name: str
    sequences: SequenceValues
    cluster: Cluster
    session: Session
    #: The rows, as texts, of calls that were carried out before the query (EVALUATED_BEFORE).
    evaluated: dict[nodes.FuncExpr, list[list[str | None]]] = field(default_factory=dict)


#: A function of the context and of SQLite's values.
Implementation = Callable[..., Any]


def function_context(session: Session, catalog: Catalog) -> FunctionContext:
    """Return what functions of catalog queries ask of a session."""
    return FunctionContext(
        catalog,
        session.environment(catalog),
        session.role_name,
        session.session_user[1],
        session.sequences,
        session.cluster,
        session,
    )

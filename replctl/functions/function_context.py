"""The data of the calling session that SQL functions need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from replctl.catalog.cluster import Cluster
from replctl.catalog.namespace import CatalogEnvironment
from replctl.catalog.nextval import SequenceValues
from replctl.catalog.transaction import Catalog
from replctl.expr import nodes
from replctl.record import dataclass
from replctl.session import Session


@dataclass
class FunctionContext:
    """The data of the calling session that SQL functions need."""

    catalog: Catalog
    environment: CatalogEnvironment
    role_name: str
    session_role_name: str
    sequences: SequenceValues
    cluster: Cluster
    session: Session
    #: The results, as texts, of calls that replctl made before the query (EVALUATED_BEFORE).
    evaluated: dict[nodes.FuncExpr, list[list[str | None]]] = field(default_factory=dict)
    #: OIDs of the tables that Spark reads for the query.
    read_tables: set[int] = field(default_factory=set)
    #: The transaction number of the statement, once a function has assigned it.
    xid: int | None = None


#: An implementation: a function of the context and of SQLite's values.
Implementation = Callable[..., Any]


def function_context(session: Session, catalog: Catalog) -> FunctionContext:
    """Return the context of a session for the functions in a query of the catalog."""
    return FunctionContext(
        catalog,
        session.environment(catalog),
        session.role_name,
        session.session_user[1],
        session.sequences,
        session.cluster,
        session,
    )

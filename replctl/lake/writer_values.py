"""Replace facts about the role that applies changes in the expressions of a target: an apply worker
acts as the owner of the table, or of the subscription (run_as_owner).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from replctl.catalog.pg_authid import role_names
from replctl.catalog.transaction import Catalog
from replctl.expr import nodes
from replctl.functions.function_context import function_context
from replctl.functions.session_value import fact_value
from replctl.lake.target import with_expressions
from replctl.session import Session
from replctl.spark import Target


def with_writer_values(session: Session, catalog: Catalog, target: Target, role: int) -> Target:
    """Return a target in whose defaults and CHECK constraints constants replace CURRENT_USER,
    SESSION_USER and similar expressions.

    Args:
        session: a session with the role of the subscription's owner, which is SESSION_USER.
        role: OID of the role that writes the table, which is CURRENT_USER.

    Raises:
        UndefinedObject: there is no such setting.
    """
    context = replace(
        function_context(session, catalog),
        role_name=role_names(catalog).get(role, ""),
        session_role_name=session.role_name,
    )
    known = partial(fact_value, context)
    return with_expressions(target, lambda expr: nodes.transform(expr, known))

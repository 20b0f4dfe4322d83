"""Prepare the expressions of a target for the role that applies changes.  An apply worker acts as
the owner of the table, or of the subscription (run_as_owner).  It has the settings of the
subscription's owner.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from replctl.catalog.pg_authid import role_names
from replctl.catalog.transaction import Catalog
from replctl.expr import nodes
from replctl.functions.function_context import function_context
from replctl.functions.session_value import fact_value
from replctl.functions.settings_form import computable
from replctl.lake.target import with_expressions
from replctl.session import Session
from replctl.spark import Target


def with_writer_values(session: Session, catalog: Catalog, target: Target, role: int) -> Target:
    """Return a target whose defaults, CHECK constraints and generated columns can be computed: by
    the settings of the session, without user-defined types, and with constants instead of
    CURRENT_USER, SESSION_USER and similar expressions.  Defaults of sent columns are not needed.

    Args:
        session: a session with the role and the settings of the subscription's owner, which is
            SESSION_USER.
        role: OID of the role that writes the table, which is CURRENT_USER.

    Raises:
        FeatureNotSupported: an expression depends on a setting in an unsupported way (0A000).
        UndefinedObject: there is no such setting.
    """
    context = replace(
        function_context(session, catalog),
        role_name=role_names(catalog).get(role, ""),
        session_role_name=session.role_name,
    )
    environment = session.environment(catalog)

    def computed(expr: nodes.Expr) -> nodes.Expr:
        plain = computable(session, environment, expr)
        result: nodes.Expr = nodes.transform(plain, partial(fact_value, context))
        return result

    columns = tuple(c if c.sent is None else replace(c, default=None) for c in target.columns)
    return with_expressions(replace(target, columns=columns), computed)

"""Find the result columns of a statement without running it, to answer a Describe message
(exec_describe_statement_message in postgres.c).
"""

from __future__ import annotations

from replctl.expr.nodes import typmod
from replctl.parser import ast
from replctl.query.analyze_query import QueryAnalyzer
from replctl.query.returning import returning_of
from replctl.query.write import modified_relation
from replctl.session import Session
from replctl.types.guc import find_setting


def describe(session: Session, statement: ast.Statement) -> list[tuple[str, str]]:
    """Return the name and type of each result column; nothing if the statement returns no rows.

    Raises:
        PostgresError: a query is wrong.
    """
    match statement:
        case ast.SelectStmt():
            with session.read() as catalog:
                environment = session.environment(catalog)
                query = QueryAnalyzer(environment, session.transaction_start).query(statement)
                return [
                    (column.name, environment.format_type(column.type, column.typmod))
                    for column in query.columns
                ]
        case ast.Insert() | ast.Update() | ast.Delete() if statement.returning:
            with session.read() as catalog:
                environment = session.environment(catalog)
                analyzer = QueryAnalyzer(environment, session.transaction_start)
                relation = modified_relation(analyzer, statement.relation)
                return [
                    (output.name, environment.format_type(output.expr.type, typmod(output.expr)))
                    for output in returning_of(analyzer, relation, statement)
                ]
        case ast.Explain():
            return [("QUERY PLAN", "text")]
        case ast.VariableShow(name="all"):
            return [(name, "text") for name in ("name", "setting", "description")]
        case ast.VariableShow():
            return [(find_setting(statement.name).name, "text")]
        case _:
            return []

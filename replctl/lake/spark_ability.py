"""Check that the Spark of a session can write a table without damage to its log."""

from __future__ import annotations

from replctl.catalog.pg_class import Relation
from replctl.errors import ObjectNotInPrerequisiteState
from replctl.lake.catalog_name import check_name
from replctl.lake.delta_rules import check_uniform
from replctl.object_store import is_s3
from replctl.session import Session
from replctl.types.guc import SINGLE_WRITER
from replctl.types.quote import quote_identifier

_STORE = "io.delta.storage.S3DynamoDBLogStore"
#: Delta's default log store for S3.  It prevents conflicts only between writers of the same Spark.
_SINGLE_DRIVER = "S3SingleDriverLogStore"


def check_spark_can_write(session: Session, relation: Relation) -> None:
    """Check that Spark meets a table's requirements for writers.

    Raises:
        ObjectNotInPrerequisiteState: Spark lacks the library of a format, or the name by which the
            table was adopted leads elsewhere.  Or the table is on S3, and nothing prevents another
            Spark from committing at the same time (55000).
    """
    check_name(session, relation)
    check_uniform(relation, lambda name: session.engine().has_class(name))
    storage = relation.storage
    if storage is None or not is_s3(storage.location) or session.setting(SINGLE_WRITER) == "on":
        return
    scheme = storage.location.partition("://")[0]
    names = ("spark.delta.logStore.class", f"spark.delta.logStore.{scheme}.impl")
    stores = [store for name in names if (store := session.engine().property(name)) is not None]
    if stores and not any(_SINGLE_DRIVER in store for store in stores):
        return
    database = session.cluster.database_name(session.database_oid)
    raise ObjectNotInPrerequisiteState(
        f'cannot write table "{relation.name}": Delta does not exclude other writers on S3',
        detail=f'If two Spark applications commit to "{storage.location}" at once, one commit is'
        " lost.",
        hint=f"If no other program writes the table, use SET {SINGLE_WRITER} = on, or, for all"
        f" sessions, ALTER DATABASE {quote_identifier(database)} SET {SINGLE_WRITER} = on."
        " Otherwise start Spark with Delta's store in DynamoDB: --conf"
        f" spark.delta.logStore.{scheme}.impl"
        f"={_STORE}.",
        table=relation.relation_name,
    )

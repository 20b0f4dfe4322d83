"""Run jobs on DataFrames and Delta tables. Only this folder imports pyspark.

`open_engine` returns the connection to Spark; `jobs` has the functions that use it.  This package
also exports functions that need no session: they translate expressions, and write SQL that reads
relations.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

from replctl.spark.catalog_table import CatalogTable as CatalogTable
from replctl.spark.comparison_sql import equality_operands as equality_operands
from replctl.spark.data_type import NO_COLUMN as NO_COLUMN
from replctl.spark.data_type import literal as literal
from replctl.spark.data_type import quote_name as quote_name
from replctl.spark.data_type import storage_type as storage_type
from replctl.spark.data_type import stored_sql as stored_sql
from replctl.spark.data_type import table_name as table_name
from replctl.spark.delta_table import TABLE_PROPERTIES as TABLE_PROPERTIES
from replctl.spark.delta_table import column_sql as column_sql
from replctl.spark.delta_table import scan as scan
from replctl.spark.initial_copy import copied_sql as copied_sql
from replctl.spark.installation import check_pyspark
from replctl.spark.java_start import archive_classes as archive_classes
from replctl.spark.key_path import LeafChange as LeafChange
from replctl.spark.key_path import WritePath as WritePath
from replctl.spark.key_path import estimated_path as estimated_path
from replctl.spark.local_feed import VersionFiles as VersionFiles
from replctl.spark.local_feed import feed_columns as feed_columns
from replctl.spark.local_feed import update_columns as update_columns
from replctl.spark.local_scan import DataFile as DataFile
from replctl.spark.local_scan import LocalRow as LocalRow
from replctl.spark.local_scan import MatchedFile as MatchedFile
from replctl.spark.local_scan import matched_files as matched_files
from replctl.spark.local_scan import rows_of_files as rows_of_files
from replctl.spark.local_write import WrittenFile as WrittenFile
from replctl.spark.local_write import write_file as write_file
from replctl.spark.maven import bring_jars as bring_jars
from replctl.spark.normal_form import grouping_form as grouping_form
from replctl.spark.normal_form import is_shown_by_form as is_shown_by_form
from replctl.spark.order_by import sort_key as sort_key
from replctl.spark.outcome import Outcome as Outcome
from replctl.spark.outcome import Problem as Problem
from replctl.spark.partition_sql import accepts_sql as accepts_sql
from replctl.spark.python_calls import uses_python as uses_python
from replctl.spark.received_row import has_equal_texts as has_equal_texts
from replctl.spark.server import Server as Server
from replctl.spark.server import ServerConf as ServerConf
from replctl.spark.server import attach_server as attach_server
from replctl.spark.server import detach as detach
from replctl.spark.server import find_server as find_server
from replctl.spark.server import start_server as start_server
from replctl.spark.server import stop_server as stop_server
from replctl.spark.server import temporary_server as temporary_server
from replctl.spark.set_function import set_function_sql as set_function_sql
from replctl.spark.set_function import zipped_sets_sql as zipped_sets_sql
from replctl.spark.shared_feed import SharedFeeds as SharedFeeds
from replctl.spark.spark_conf import SparkConf as SparkConf
from replctl.spark.spark_query import Query
from replctl.spark.spark_query import reading as reading
from replctl.spark.spark_query import union_text as union_text
from replctl.spark.sql_value import SqlValue as SqlValue
from replctl.spark.staged import Staged as Staged
from replctl.spark.staged import StagedColumn as StagedColumn
from replctl.spark.staging import LocalRows as LocalRows
from replctl.spark.staging import late_view as late_view
from replctl.spark.stored_input import needs_input as needs_input
from replctl.spark.table_comparison import DIFFERENCE_KINDS as DIFFERENCE_KINDS
from replctl.spark.table_comparison import Comparison as Comparison
from replctl.spark.table_comparison import RowDifference as RowDifference
from replctl.spark.table_comparison import Sides as Sides
from replctl.spark.translation import to_sql as to_sql
from replctl.spark.translation import untranslatable as untranslatable
from replctl.spark.values import EXCLUDED as EXCLUDED
from replctl.spark.values import NEXT_VALUE as NEXT_VALUE
from replctl.spark.values import NO_LAYOUT as NO_LAYOUT
from replctl.spark.values import OPTIMIZED_FILE_SIZE as OPTIMIZED_FILE_SIZE
from replctl.spark.values import ChangedFiles as ChangedFiles
from replctl.spark.values import ChangeSource as ChangeSource
from replctl.spark.values import CommitNote as CommitNote
from replctl.spark.values import CopySource as CopySource
from replctl.spark.values import DomainTest as DomainTest
from replctl.spark.values import EnumType as EnumType
from replctl.spark.values import FeedVersion as FeedVersion
from replctl.spark.values import FileLayout as FileLayout
from replctl.spark.values import ForeignChanges as ForeignChanges
from replctl.spark.values import Leaf as Leaf
from replctl.spark.values import Mending as Mending
from replctl.spark.values import PartitionRule as PartitionRule
from replctl.spark.values import PartitionZone as PartitionZone
from replctl.spark.values import Reference as Reference
from replctl.spark.values import RowField as RowField
from replctl.spark.values import RowType as RowType
from replctl.spark.values import SentColumn as SentColumn
from replctl.spark.values import StoredExpr as StoredExpr
from replctl.spark.values import TableColumn as TableColumn
from replctl.spark.values import TableSource as TableSource
from replctl.spark.values import Target as Target
from replctl.spark.values import TargetColumn as TargetColumn
from replctl.spark.values import UniqueKey as UniqueKey

#: The name outside of this package, where `query.tree` has a class Query, too.
SparkQuery: TypeAlias = Query

if TYPE_CHECKING:
    from replctl.spark import jobs as jobs
    from replctl.spark.engine import Engine as Engine
else:

    def __getattr__(name):
        """Import `jobs` at its first use.  Statements that only change definitions run no jobs, nor
        does a sync without changes.
        """
        if name != "jobs":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import replctl.spark.jobs as module

        return module


def open_engine(conf: SparkConf) -> Engine:
    """Return the engine of this process for `conf`.  The first call starts Spark or connects to it.
    The first call after the loss of the engine does the same.

    Raises:
        PostgresError: there is no Java, no Delta, or no server at the address.
    """
    with _opening:  # two threads must share one engine
        if has_lost_spark(conf):
            _opened.pop(conf).stop()
        if conf not in _opened:
            check_pyspark()
            from replctl.spark.engine import Engine

            _opened[conf] = Engine(conf)
        return _opened[conf]


def has_lost_spark(conf: SparkConf) -> bool:
    """Return whether this process had an engine for `conf`, but its JVM has ended or its Connect
    server no longer responds."""
    return conf in _opened and _opened[conf].is_lost


def is_open(conf: SparkConf) -> bool:
    """Return whether this process has an engine for `conf` already."""
    return conf in _opened


def cancel_jobs() -> None:
    """Cancel the Spark jobs of all threads of this process."""
    for engine in list(_opened.values()):
        engine.cancel()


_opening = Lock()
_opened: dict[SparkConf, Engine] = {}

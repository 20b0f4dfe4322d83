"""The functions that run jobs in Spark.  Their first argument is the engine.  A few functions only
inspect an outcome, or read and write files of small tables, and need no engine.
"""

from __future__ import annotations

from replctl.spark.catalog_table import find_table as find_table
from replctl.spark.catalog_table import has_namespace as has_namespace
from replctl.spark.catalog_table import register_table as register_table
from replctl.spark.catalog_table import unregister_table as unregister_table
from replctl.spark.decoded_changes import count_actions as count_actions
from replctl.spark.decoded_changes import decoded as decoded
from replctl.spark.decoded_changes import first_action as first_action
from replctl.spark.decoded_changes import listed_changes as listed_changes
from replctl.spark.delta_table import add_columns as add_columns
from replctl.spark.delta_table import cluster as cluster
from replctl.spark.delta_table import create_table as create_table
from replctl.spark.delta_table import drop_columns as drop_columns
from replctl.spark.delta_table import has_rows as has_rows
from replctl.spark.delta_table import move_column as move_column
from replctl.spark.delta_table import optimize as optimize
from replctl.spark.delta_table import purge as purge
from replctl.spark.delta_table import rename_column as rename_column
from replctl.spark.delta_table import restore as restore
from replctl.spark.delta_table import rewrite_columns as rewrite_columns
from replctl.spark.delta_table import rewrite_rows as rewrite_rows
from replctl.spark.delta_table import rewrite_schema as rewrite_schema
from replctl.spark.delta_table import set_properties as set_properties
from replctl.spark.delta_table import truncate as truncate
from replctl.spark.delta_table import unset_properties as unset_properties
from replctl.spark.delta_table import widen_column as widen_column
from replctl.spark.foreign_key_sql import first_broken_reference as first_broken_reference
from replctl.spark.foreign_key_sql import first_orphan as first_orphan
from replctl.spark.key_path import write_path as write_path
from replctl.spark.local_change import changed as changed
from replctl.spark.local_change import inserted as inserted
from replctl.spark.local_change import inserted_values as inserted_values
from replctl.spark.local_change import unconflicting as unconflicting
from replctl.spark.local_feed import feed_rows as feed_rows
from replctl.spark.local_feed import updated_rows as updated_rows
from replctl.spark.local_rewrite import computed as computed
from replctl.spark.local_rewrite import rows_in_order as rows_in_order
from replctl.spark.local_write import write_rows as write_rows
from replctl.spark.merge import key_predicate as key_predicate
from replctl.spark.merge import leaf_changes as leaf_changes
from replctl.spark.merge import replace_leaf as replace_leaf
from replctl.spark.merge import replaced_keys as replaced_keys
from replctl.spark.merge import write_leaf as write_leaf
from replctl.spark.reconcile import count_deleted as count_deleted
from replctl.spark.reconcile import count_unpublished as count_unpublished
from replctl.spark.reconcile import difference as difference
from replctl.spark.reconcile import reconciled as reconciled
from replctl.spark.reconcile import renewed_difference as renewed_difference
from replctl.spark.replicated_change import converted as converted
from replctl.spark.replicated_change import copied as copied
from replctl.spark.replicated_change import failing_conversion as failing_conversion
from replctl.spark.replicated_change import moving_positions as moving_positions
from replctl.spark.replicated_change import outcome as outcome
from replctl.spark.replicated_change import summary as summary
from replctl.spark.revert import revert as revert
from replctl.spark.staging import count_rows as count_rows
from replctl.spark.table_comparison import compare as compare
from replctl.spark.uniqueness import first_collision as first_collision
from replctl.spark.uniqueness import first_problem as first_problem
from replctl.spark.upsert import affects_twice as affects_twice
from replctl.spark.upsert import conflicting as conflicting
from replctl.spark.upsert import moves_to_proposed as moves_to_proposed
from replctl.spark.upsert import upserted as upserted

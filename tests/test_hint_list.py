"""For each of replctl's own HINTs, a test follows the advice: HINTS names the test.

A HINT is one of replctl's own if its module is in PLACES.  A new HINT needs an entry in HINTS, with
a test that follows it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

_TESTS = Path(__file__).parent
_CODE = _TESTS.parent / "replctl"

#: Folders and modules whose HINTs are replctl's own.
PLACES = (
    "lake", "replication", "spark", "launcher.py", "apply_worker.py", "verify.py", "open_node.py",
    "catalog/wal_availability.py", "commands/table_location.py", "commands/constraint.py",
    "commands/delta_property.py", "commands/file_layout.py", "commands/native_type.py",
    "commands/subscription_options.py",
    "commands/subscription_table.py", "commands/subscription_map.py", "catalog/table_map.py",
    "commands/follow_schema.py", "commands/inherit.py",
    "commands/alter_table.py", "catalog/cluster_identity.py",
    "catalog/identify.py", "catalog/catalog_file.py", "catalog/open_cluster.py",
    "catalog/home_directory.py", "catalog/pg_control.py", "catalog/promotion.py",
    "catalog/cluster.py", "catalog/standby.py", "catalog/primary.py",
)  # fmt: skip

#: HINTs that no test follows: PostgreSQL's own, HINTs about the state of the machine, and HINTs of
#: other errors.
POSTGRESQL, MACHINE, PASSED_ON = "PostgreSQL's", "the machine's", "another's"

_COLUMNS = (
    "subscription/test_owners_columns.py::test_copies_end_equal_without_help_or_by_their_hints"
)
_PROMOTION = "catalog/test_promotion.py::test_"
_COPIED = "lake/test_copied.py::test_"
_COMMANDS = "test_own_command.py::test_"
_HINTS = "commands/test_hints.py::test_hints_of"
_LOCATION = f"{_HINTS}_tables_with_a_location"
_NAMES = "commands/test_catalog_name.py::test_"
_REGISTERED = f"{_NAMES}tables_are_registered_in_the_catalogs_of_spark"
_FOLLOWED = "subscription/test_hints_followed.py::"
_AGAIN = f"{_FOLLOWED}test_subscriptions_that_are_made_again"
_DISABLED = f"{_FOLLOWED}test_one_statement_is_enough_where_the_error_disables_the_subscription"
_RECONCILE = f"{_FOLLOWED}test_hints_of_a_reconcile"
_RULES = "subscription/test_delta_rules_of_targets.py::test_"
_CONNECTOR = "spark/test_errors.py::test_a_server_without_the_connector_for_s3"
_TARGET = "subscription/test_replaced_target.py::test_the_hint_makes_the_rows_equal_again"

#: Each HINT, with {} for values, or the expression that makes it; and the test that follows it.
HINTS: dict[str, str] = {
    "Add a primary key to the table.": "commands/test_refused.py::"
    "test_a_volatile_update_without_a_key_is_sent_as_a_whole",
    # -- subscriptions
    "Add options=-ctimezone=UTC to the connection string of the subscription.": "subscription/"
    "test_settings_of_owner.py::test_the_zone_of_the_publisher",
    "Give each of them a target of its own in table_map.": "commands/test_table_map_option.py::"
    "test_the_hint_of_two_tables_with_one_target",
    "Use DROP/CREATE SUBSCRIPTION.": "commands/test_table_map_option.py::"
    "test_the_hint_of_a_synchronized_table",
    "Add create_tables = true to the options.": "commands/test_create_tables.py::"
    "test_the_hint_of_table_options",
    "refresh_hint(subscription, table)": _DISABLED,
    "refresh_hint(subscription, name, option)": _DISABLED,
    "refresh_hint(subscription, relation.relation_name, 'delete = none')": f"{_FOLLOWED}"
    "test_copies_that_remove_rows_of_another_subscription",
    "refresh_hint(subscription, relation.relation_name)": "subscription/test_resync.py::"
    "test_too_many_rows_are_not_deleted_without_being_asked",
    'Run "{}": its error has the statement that reconciles the tables.': f"{_COMMANDS}"
    "a_subscription_whose_slot_is_lost",
    "publication_refresh(subscription, 'copy_data = reconcile')": "lake/test_forked_log.py::"
    "test_tables_that_the_backup_does_not_publish_leave_the_subscription",
    "refresh_all_hint(subscription, tables)": "lake/test_forked_log.py::"
    "test_a_publisher_that_was_put_back_stops_the_subscription",
    "self._refresh(catalog, relation) or error.hint": _TARGET,
    "unique_key_hint(self._subscription, published)": "subscription/test_broken_keys.py::"
    "test_the_hint_ends_with_equal_rows",
    "identity_hint(self._subscription, published, error.unpublished)": "subscription/"
    "test_missing_identity.py::test_the_hint_ends_with_equal_rows",
    "widening_hint(self._subscription, target, *column)": f"{_FOLLOWED}"
    "test_values_that_the_owner_has_widened",
    "_statement(subscription, relation, 'delete = none')": _RECONCILE,
    "_statement(subscription, relation, f'delete = {choice.value}')": "subscription/"
    "test_reconcile.py::test_the_statement_says_which_rows_are_deleted",
    "Use DROP SUBSCRIPTION, then CREATE SUBSCRIPTION ... WITH (copy_data = reconcile).": _AGAIN,
    "Synchronize the subscription first.": _AGAIN,
    "Finish the synchronization with \\sync, then repeat the command.": (
        "subscription/test_resync.py::test_a_table_that_catches_up_is_reconciled_too"
    ),
    "Delete all of these rows except one at the publisher, then synchronize again.": "subscription/"
    "test_reconcile.py::test_keys_that_are_there_twice",
    "Add copy_data = reconcile to the options.": f"{_HINTS}_options_of_a_subscription",
    "Available values: {}.": f"{_HINTS}_options_of_a_subscription",
    "Run: {}": "subscription/test_verify.py::"
    "test_a_table_that_is_not_synchronized_cannot_be_compared",
    "Publications and subscriptions form a loop: origin = none keeps replicated changes from being"
    " sent on.": "subscription/test_rep_changes.py::test_a_loop_of_subscriptions_is_named",
    'You might need to increase "max_slot_wal_keep_size".': POSTGRESQL,
    "Synchronize its subscription first.": "lake/test_slot_retention.py::"
    "test_vacuum_warns_before_and_frees_what_a_lost_slot_held",
    "Synchronize the subscription of the slot, or ask the table's owner to extend its"
    " retention.": "lake/test_slot_retention.py::"
    "test_a_slot_is_warned_before_the_retention_of_its_owner_removes_what_it_needs",
    "Use SELECT pg_drop_replication_slot({}), then SELECT pg_create_logical_replication_slot({},"
    " {}): changes before the new slot are lost.": "lake/"
    "test_lost_slot.py::test_the_hint_is_for_who_reads_the_slot",
    "At the primary, use SELECT pg_drop_replication_slot({}), then SELECT"
    " pg_create_physical_replication_slot({}).": f"{_COMMANDS}a_standby_whose_slot_is_lost",
    "At the primary, use SELECT pg_create_physical_replication_slot({}).": f"{_COMMANDS}"
    "a_standby_whose_slot_is_dropped",
    # -- tables
    "restore_hint(catalog, relation)": f"{_COMMANDS}a_standby_whose_primary_was_moved",
    "restore_hint(catalog, place.relation)": "lake/test_version_chain.py",
    "Restore the directory from a backup, or use DROP TABLE {}.": "lake/"
    "test_copied.py::test_a_backup_reports_tables_that_do_not_fit_the_catalog",
    "_read_hint(table)": f"{_COPIED}the_hint_of_a_backup_of_a_cleaned_log",
    "Remove it before a program can write it again.": f"{_COPIED}an_original_that_cannot_be_written"
    "_is_given_up",
    "Restore its file from a backup.": f"{_HINTS}_a_log_with_a_hole",
    "The file is complete. Ask the table's owner to rewrite it with the types of the table's"
    " schema. Until then, read only the other columns.": "lake/test_table_error.py::"
    "test_a_file_with_a_type_that_spark_does_not_convert",
    "Ask the table's owner to write NULL instead, in Spark: SET spark.sql.ansi.enabled = false;"
    " UPDATE {} SET {} = NULL WHERE {} IS NULL": "lake/test_empty_partition.py::"
    "test_empty_values_at_adoption",
    "Restore the file from a backup.": "lake/test_table_error.py::test_a_file_that_cannot_be_read",
    "Restore the file from a backup. Or remove the file and its rows from Delta's log, in"
    ' Python: deltalake.DeltaTable("{}").repair()': "lake/test_table_error.py::"
    "test_a_file_that_is_gone",
    "Delete all rows with this key in the other program.": "subscription/"
    "test_concurrent_writer.py::test_rollback_of_a_key_that_others_have_also_inserted",
    "_TRUST": "lake/test_table_paths.py::test_foreign_files_are_refused",
    "trust_hint(catalog, relation)": f"{_FOLLOWED}test_a_shallow_clone_at_a_source",
    'If the catalog was restored from a backup, run "{}". To treat the commits as another'
    " writer's, use SELECT replctl_accept_commits({}).": "lake/"
    "test_commit_mark.py::test_a_mark_of_an_unknown_nonce_stops_its_table",
    "Use GRANT {} TO {}.": f"{_HINTS}_roles_that_may_not_read_files",
    "If only this cluster writes it from now on, use SELECT replctl_adopt_again({}).": "catalog/"
    "test_identify.py::test_a_copy_becomes_a_cluster_of_its_own",
    "A new table needs a directory of its own: choose one that is empty or does not"
    " exist.": _LOCATION,
    "_HINT": _LOCATION,
    "Write USING delta before {}.": _LOCATION,
    "To keep this Delta table and forget the name, use ALTER TABLE {} RESET ({}). To adopt the"
    " table that has the name now, use DROP TABLE {}, then CREATE TABLE {} USING delta TABLE"
    " {}.": f"{_NAMES}a_name_that_leads_elsewhere_stops_its_table",
    "Give each table a name of its own, after it is made: ALTER TABLE {} SET ({} ="
    " 'SCHEMA.NAME').": "commands/test_create_tables.py::"
    "test_one_name_in_spark_for_several_tables_is_refused",
    "Choose another name: ALTER TABLE {} SET ({} = 'SCHEMA.NAME').": _REGISTERED,
    'Leave column "{}" out: the table inherits it.': "commands/test_native_column.py::"
    "test_a_conflict_of_inherited_types_shows_delta_types",
    "To resolve the conflict, specify a default explicitly.": POSTGRESQL,
    "A child table column cannot be generated unless its parent column is.": POSTGRESQL,
    "Make it in Spark: CREATE SCHEMA {}.": _REGISTERED,
    "Use DROP TABLE {} in Spark, which leaves the files.": f"{_NAMES}a_name_that_stays_in_spark",
    "Write USING delta LOCATION.": f"{_NAMES}names_that_lead_to_no_delta_table",
    "Its owner can make it a Delta table in Spark: CONVERT TO DELTA"
    " {}.": f"{_NAMES}names_that_lead_to_no_delta_table",
    "Start Spark with the catalog that has the table, such as --conf"
    " spark.sql.catalogImplementation=hive for a Hive metastore.": "spark/test_hive_catalog.py::"
    "test_tables_of_a_hive_metastore",
    "Its owner can write a Delta table that Iceberg's readers can also read (UniForm): CREATE"
    " TABLE ... USING delta TBLPROPERTIES ('delta.enableIcebergCompatV2' = 'true',"
    " 'delta.universalFormat.enabledFormats' = 'iceberg').": MACHINE,  # Delta's library for Iceberg
    "Use CREATE TABLE ... (PRIMARY KEY (...) NOT ENFORCED) USING delta"
    " LOCATION.": f"{_HINTS}_keys_and_properties",
    "Use ALTER TABLE {} SET ({} = false).": f"{_HINTS}_keys_and_properties",
    "_HINTS.get(name.lower())": "commands/test_file_layout.py::test_the_hint_of_a_property",
    "Set {} to the same value, too.": "commands/test_file_layout.py::test_the_hint_of_a_retention",
    "_other_layout(columns) if parameter == PARTITION_BY else None": "commands/"
    "test_file_layout.py::test_the_hint_of_a_type_that_cannot_partition",
    "Also set {} = -1.": "commands/test_file_layout.py::"
    "test_the_hint_of_a_column_without_statistics",
    "Make a new table with this option, and copy the rows.": "commands/test_storage.py::"
    "test_a_table_without_deletion_vectors",
    "f\"When the cause is gone, use {' '.join(writes)}\" if writes else None": "subscription/"
    "test_part_written.py::test_what_cannot_be_undone_is_undone_later",
    "To allow such changes, its owner can use Spark: ALTER TABLE {} SET TBLPROPERTIES ({} ="
    " 'false').": f"{_RULES}append_only_tables_take_new_rows",
    "If no other program writes the table, use SET {} = on, or, for all sessions, ALTER DATABASE"
    " {} SET {} = on. Otherwise start Spark with Delta's store in DynamoDB: --conf"
    " spark.delta.logStore.{}.impl={}.": "object_storage/test_s3_tables.py::"
    "test_writes_need_somebody_who_vouches",
    "_connector_hint(attached_clusters())": _CONNECTOR,
    "If nobody needs the format, the table's owner can use Spark: ALTER TABLE {} UNSET"
    " TBLPROPERTIES ({}).": f"{_RULES}other_formats_are_refused_before_the_commit",
    "If the session that wrote the values used UTC, adopt the table with WITH ({} = 'UTC'), or use"
    " ALTER TABLE {} SET ({} = 'UTC'). Otherwise use the session's time zone instead of 'UTC'.": ""
    "lake/test_partition_zone.py::test_values_that_need_a_zone_later",
    "_partition_hint(root, leaf)": "lake/test_target_leaf.py::test_constraints_that_use_it",
    "_adding_hint(relation, left_out[0], tree)": "subscription/test_foreign_partitions.py::"
    "test_values_of_such_a_column_are_not_lost",
    "_partition_hint(root, own)": f"{_RULES}partitions_with_identity_columns",
    "Delta would store NULL instead of this text. Use NULL, or another text.": f"{_RULES}"
    "rules_hold_for_statements_copies_and_changes",
    "Spark would fill the text with blanks. Use rpad(value, {}).": f"{_RULES}"
    "lengths_of_texts_hold_before_the_write",
    'Truncate table "{}" at the same time, or use TRUNCATE ... CASCADE.': POSTGRESQL,
    "To enable {} the table, set REPLICA IDENTITY using ALTER TABLE.": POSTGRESQL,
    "See server log for query details.": POSTGRESQL,
    'Allow replctl and its Spark to write the files in "{}".': "lake/test_table_error.py::"
    "test_what_cannot_be_written_is_told_with_its_cause",
    "End the transaction, then repeat it.": "lake/test_unfinished_batch.py::"
    "test_a_block_that_has_locked_the_table_does_not_wait_for_itself",
    "cause.hint or _help(subscription, member, cause, 'repeat the statement')": "subscription/"
    "test_part_written.py::test_an_unfinished_batch_stops_no_other_writer",
    "error.hint or _help(subscription, members[0], error, f'run \"{sync}\"')": "subscription/"
    "test_part_written.py::test_an_unfinished_batch_stops_no_other_writer",
    "waiting.hint": PASSED_ON,
    "error.hint": PASSED_ON,
    "hint": PASSED_ON,
    "self.hint(subscription)": PASSED_ON,
    "self.repair(subscription, is_own)": _COLUMNS,
    "repair.hint_for_slot(slot_name)": "lake/test_column_fault.py::"
    "test_a_slot_is_read_again_after_its_hint",
    "Use {}": _COLUMNS,
    "_hint(relation, columns, {column.name for column in remote.columns}, top.quoted_name)": ""
    f"{_COLUMNS}",
    "_hint(catalog, relation, column, sent)": "subscription/test_native_columns.py::"
    "test_a_type_that_the_owner_changes_is_taken_over_by_the_hints",
    "To replicate the table without this column, give it a column list in its publication:"
    " ({}).": "commands/test_native_column.py::test_the_hint_of_a_field_name",
    "To use the column, adopt the table again: DROP TABLE {}, which leaves the files, then CREATE"
    " TABLE {} USING delta LOCATION {}.": "commands/test_native_column.py::"
    "test_a_column_that_is_left_out_is_not_added_again",
    "Use {}; ALTER SUBSCRIPTION {} REFRESH TABLE {};": "subscription/test_follow_schema.py::"
    "test_what_cannot_be_followed_stops",
    "restoring_hint(session, catalog, relation, column) or error.hint": _COLUMNS,
    "' '.join(filter(None, [added, error.hint]))": "subscription/test_owners_columns.py::"
    "test_columns_that_are_replaced_in_several_syncs",
    # -- clusters
    "Start the program again.": "catalog/test_catalog_file.py::"
    "test_a_catalog_that_is_replaced_under_a_process_is_noticed",
    "Stop all programs. Restore {} together with its own {} and {}. If the backup lacks these"
    ' two, remove "{}" and "{}", and run "{}".': "catalog/test_catalog_file.py::"
    "test_a_catalog_next_to_a_later_wal_is_refused",
    "Name a directory for the cluster: --home DIRECTORY, or REPLCTL_HOME.": "psql/test_machine.py::"
    "test_a_user_without_home_names_a_directory",
    "Name another directory, or rename it.": "psql/test_machine.py::"
    "test_a_home_whose_name_is_not_utf_8",
    "Until this is corrected, only status and queries of catalogs work.": "psql/"
    "test_unwritable_home.py::test_a_read_only_home_can_be_read",
    'If you want to create a new cluster, either remove or empty the directory "{}" or choose'
    " another one.": POSTGRESQL,
    "WAL control functions cannot be executed during recovery.": POSTGRESQL,
    "Recovery control functions can only be executed during recovery.": POSTGRESQL,
    "Start the program again, with the version of replctl that upgraded the catalog.": (
        "catalog/test_upgrade.py::"
        "test_a_program_that_has_it_open_does_not_write_an_upgraded_catalog"
    ),
    "Connect to the new primary: {}": f"{_PROMOTION}the_old_primary_is_fenced_off",
    "Connect to the new primary.": f"{_PROMOTION}the_old_primary_notices_the_new_one_s_commits",
    'To complete the promotion, run "{}".': f"{_PROMOTION}"
    "an_interrupted_promotion_continues_under_another_name",
    "follow_hint(standby.path, promoted_to)": f"{_PROMOTION}one_standby_of_several_is_promoted",
    "follow_hint(standby.path, control.promoted_to or '')": f"{_PROMOTION}"
    "one_standby_of_several_is_promoted",
    'To keep the state of the standby, stop the primary and run "{}". To follow the primary,'
    ' remove "{}" and run "{}".': "catalog/test_forked_primary.py::"
    "test_the_hint_of_a_restored_primary",
    "End these processes, then promote again.": f"{_PROMOTION}promotion_waits_for_writers",
    "None": PASSED_ON,
    'Stop all programs that use the cluster, copy its directory with "cp -r", and run "{}" to use'
    " the copy instead.": "lake/test_copied.py::test_a_backup_of_a_home_that_cannot_be_written",
    "Back up its primary.": "lake/test_copied.py::test_a_copy_of_a_standby_stays_a_standby",
    "Restore their storage at these paths, and promote again. Or promote without these tables:"
    " --without-tables. You can then only drop them.": "catalog/test_promotion.py::"
    "test_promotion_without_the_primary_s_tables",
    "Name the directory of the publisher's cluster: host=DIRECTORY. If it was moved, use ALTER"
    " SUBSCRIPTION ... CONNECTION.": "test_open_node.py::test_a_directory_without_a_cluster",
    "Write the parameters of the service into the connection string: host and dbname.": (
        "test_open_node.py::test_a_service"
    ),
    "_identify_hint(path)": f"{_COMMANDS}a_copy_becomes_a_cluster_of_its_own_by_its_hint",
    "_replaced_hint(path)": "catalog/test_identify.py::"
    "test_a_backup_of_a_primary_that_was_replaced_later",
    'Replace the link with a copy of its target ("cp -rL" makes such copies).': f"{_COPIED}"
    "links_out_of_a_copy_are_refused",
    "Copy the cluster without hard links.": f"{_COPIED}"
    "a_catalog_that_is_the_original_s_file_is_refused",
    "Stop these programs first.": f"{_COPIED}who_is_in_use_is_not_identified",
    'Copy its primary "{}" instead.': f"{_COMMANDS}a_copied_standby_is_no_cluster",
    # -- Spark
    "Try again: replctl starts another one, and completes or undoes unfinished work.": "psql/"
    "test_spark_server.py::test_a_watch_outlives_its_server",
    "_unreachable_hint(attached_clusters())": "psql/test_spark_server.py::"
    "test_a_server_that_cannot_be_reached",
    "Try again: the next statement has a new session.": "spark/test_session_pool.py::"
    "test_a_session_that_the_server_has_ended",
    "Add the server's token to its address: sc://HOST:PORT/;token=...": "psql/"
    "test_spark_server.py::test_a_server_that_cannot_be_reached",
    "Check free disk space.": "crash/test_full_disk.py::"
    "test_a_full_disk_leaves_nothing_of_copy_and_apply",
    "Give Spark more memory: --conf spark.driver.memory=4g.": MACHINE,
    'Start it again with "{}".': "psql/test_spark_server.py::"
    "test_a_server_is_started_once_and_found",
    'Use "{}" there.': "spark/test_server_files.py::"
    "test_a_server_of_another_container_is_left_alone",
    "Start the server with {}={}.": "spark/test_spark_settings.py::"
    "test_a_server_with_another_setting_is_refused",
    "Start the server without {}.": "spark/test_spark_settings.py::"
    "test_a_server_with_another_setting_is_refused",
    "Start the server with {}.": "spark/test_spark_settings.py::"
    "test_a_server_without_delta_is_refused",
    "Run: pip install 'pyspark[connect]~={}.0'": MACHINE,
    "Remove its directory from PYTHONPATH, or install the right one: pip install"
    " 'pyspark[connect]~={}.0'": "spark/test_installation.py::test_one_that_pythonpath_names",
    "Add a line for {} to /etc/passwd. Or add it to a copy of that file, and let nss_wrapper use"
    " the copy: LD_PRELOAD=libnss_wrapper.so NSS_WRAPPER_PASSWD=FILE"
    " NSS_WRAPPER_GROUP=/etc/group.": MACHINE,
    "Set XDG_CACHE_HOME to a directory that this user can write, or that has the jars from"
    ' "replctl spark prepare".': MACHINE,
    "Set {} or spark.local.dir to a directory that this user can write.": "spark/test_scratch.py::"
    "test_directories_for_shuffles_that_cannot_be_used",
    "_NETWORK_HINT": MACHINE,
    "Put the cluster's directory on a file system that is not mounted noexec, or name another"
    " directory for temporary files: --conf"
    " spark.driver.extraJavaOptions=-Djava.io.tmpdir=DIRECTORY.": MACHINE,
    "_TRUST_HINT": MACHINE,
    "start_hint(code)": MACHINE,
    "Try again when the host answers. Spark's properties name the storage and its settings:"
    " --conf spark.hadoop.NAME=VALUE.": MACHINE,
    "Install a JDK, set JAVA_HOME to one, or install replctl with its own: pip install"
    " 'replctl[java]'.": MACHINE,
}


def literal(
    node: ast.expr, filled: str = "{}", constants: Mapping[str, object] | None = None
) -> str | None:
    """Return a text of the code; None if it is computed.

    Args:
        filled: stands for a value that an f-string fills in.
        constants: values by name; an f-string shows the texts and numbers among them.
    """
    known = constants or {}
    match node:
        case ast.Constant(str() as value):
            return value
        case ast.JoinedStr(values):
            return "".join(
                str(part.value)
                if isinstance(part, ast.Constant)
                else _constant(part, known) or filled
                for part in values
            )
    return None


def _constant(part: ast.expr, constants: Mapping[str, object]) -> str | None:
    match part:
        case ast.FormattedValue(ast.Name(name), -1, None):
            value = constants.get(name)
            return str(value) if isinstance(value, str | int) else None
    return None


def nodes_with_hints() -> Iterator[tuple[Path, ast.AST]]:
    """Yield the syntax nodes of the modules in PLACES."""
    for place in PLACES:
        path = _CODE / place
        for module in [path] if path.is_file() else sorted(path.rglob("*.py")):
            for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
                yield module, node


def _found() -> Iterator[tuple[str, str]]:
    """Return the HINTs of the code, each with its place."""
    for module, node in nodes_with_hints():
        values: list[ast.expr] = []
        if isinstance(node, ast.Call):
            values = [k.value for k in node.keywords if k.arg == "hint"]
        elif isinstance(node, ast.Assign):
            targets = [t for t in node.targets if isinstance(t, ast.Attribute)]
            values = [node.value for target in targets if target.attr == "hint"]
        for value in values:
            shown = literal(value)
            text = ast.unparse(value) if shown is None else shown
            yield text, f"{module.relative_to(_CODE)}:{value.lineno}"


def test_every_hint_is_in_the_list() -> None:
    missing = [f"{place}: {text}" for text, place in _found() if text not in HINTS]
    assert missing == []


def test_the_list_has_no_other_hints() -> None:
    assert HINTS.keys() - {text for text, _place in _found()} == set()


_TRIED = sorted(test for test in set(HINTS.values()) if "/" in test)


@pytest.mark.parametrize("test", _TRIED)
def test_what_tries_a_hint_is_there(test: str) -> None:
    module, _, name = test.partition("::")
    text = (_TESTS / module).read_text(encoding="utf-8")
    assert not name or f"def {name}(" in text

"""A rule that a reader searches for is in the file with that name, and not only imported there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

_PACKAGE = Path(__file__).parent.parent / "replctl"


@pytest.mark.parametrize(
    ("question", "file", "definition"),
    [
        ("the row filter validated", "replication/row_filter", "check_row_filter"),
        ("UPDATE turned into INSERT", "replication/update_transformation", "UPDATE_TRANSFORMATION"),
        ("a Delta commit matched to an LSN", "lake/commit_log", "enter_versions"),
        ("a conflict worded", "lake/conflict_message", "violation"),
        ("the key path chosen for reading", "spark/key_path", "existing_rows"),
        ("the key path chosen for writing", "spark/key_path", "write_path"),
        ("partitions overlap", "commands/partition_bound", "check_new_bound"),
        ('`relation "x" does not exist`', "does_not_exist", "no_relation"),
        ("a connection string parsed", "conninfo", "parse_conninfo"),
        ("what is tried again", "lake/retry", "repeated"),
        ("Java started", "spark/java_start", "gateway"),
        ("MERGE written", "spark/merge", "write_leaf"),
        ("disable_on_error obeyed", "disable_on_error", "note_error"),
        ("a slot invalidated", "catalog/wal_availability", "invalidate_slot"),
        ("ORDER BY NULLS FIRST for Spark", "spark/order_by", "sort_key"),
        ("numeric division's scale", "adt/numeric_scale", "division_scale"),
        ("VACUUM respects slots", "catalog/vacuum_horizon", "oldest_needed_version"),
        ("pg_get_expr() as a function", "query/pg_get_expr", "pg_get_expr"),
        ("wal_level obeyed", "catalog/wal_level", "check_for_decoding"),
        ("locks of tables taken", "relation_lock", "lock_relations"),
        ("a range of the log", "replication/log_range", "LogRange"),
        ("values read as text", "expr/value_text", "input_value"),
        ("`\\dRp+` drawn", "psql/describe_replication", "describe_publications"),
        ("SKIP handled", "replication/apply", "apply_changes"),
        ("a regex translated", "spark/java_regex", "java_regex"),
        (
            "what publications publish of a table",
            "replication/published_relation",
            "PublicationSet",
        ),
        ("SELECT privilege checked", "query/permission", "check_query"),
        ("RLS applied", "query/row_policy", "condition_query"),
        ("completion", "psql/completion", "SqlCompleter"),
        ("CASCADE", "commands/dependency", "drop_objects"),
        ("int8 in text form", "types/integer", "parse_integer"),
        ("metrics", "psql/metrics", "Metrics"),
        ("slot sync of a standby", "catalog/slotsync", "synchronize_slots"),
        ("sync --explain", "explain", "explain_sync"),
        ("what is tried later", "retry_schedule", "RetrySchedule"),
        ("statement_timeout obeyed", "statement_timeout", "statement_timeout"),
        ("how a relation's name is printed", "types/named_relation", "NamedRelation"),
        ("the letters of pg_class", "catalog/relation_kind", "RelKind"),
        ("the letters of pg_type", "types/type_kind", "TypeKind"),
        ("the letters of pg_proc", "types/function_kind", "Volatility"),
        ("the index of ON CONFLICT", "query/arbiter", "arbiter"),
        ("passwords hashed", "catalog/scram", "scram_verifier"),
        ("a lost file told from a broken table", "lake/table_error", "named"),
        ("a line of COPY split", "query/copy_parse", "FieldReader"),
        ("ON COMMIT of temporary tables", "commands/temporary", "check_on_commit"),
        ("files removed by VACUUM", "lake/delta_vacuum", "vacuum_table"),
        ("a cluster backed up", "lake/backup", "back_up"),
        ("exit codes", "psql/exit_code", "ExitCode"),
        ("char(n) padded", "types/character", "bpchar"),
        ("retention overtakes a slot", "lake/retention_outlook", "outlook"),
        ("search_path resolved", "catalog/namespace", "SearchPath"),
        ("collations assigned", "expr/collate", "assign_collations"),
        ("follow_schema obeyed", "commands/follow_schema", "follow_schema"),
        ("memory limited", "memory_limit", "memory_limit"),
        ("nextval() in an INSERT", "query/sequence_values", "with_sequence_values"),
        ("a commit made by replctl itself", "lake/own_commit", "commit_info"),
        ("a table replaced by its owner", "lake/version_chain", "replaced"),
        ("free space checked", "lake/free_space", "check_space"),
        ("states i d f s r", "replication/tablesync", "synchronize"),
        ("the server's log file", "catalog/server_log", "ServerLog"),
    ],
)
def test_found_by_name(question: str, file: str, definition: str) -> None:
    names = set()
    for node in ast.parse((_PACKAGE / f"{file}.py").read_text("utf-8")).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case _:
                pass
    assert definition in names, f"where is {question}?"

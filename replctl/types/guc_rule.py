"""Decide which values of settings replctl accepts.

Each of PostgreSQL's settings is of one of these kinds, as `tests/types/test_guc_rule.py` checks:

- `OBEYED`: replctl supports all its values.
- `harmless_because`: by PostgreSQL's documentation, no statement's result depends on it.
- `SUPPORTED`: replctl supports some of its values, and refuses others.
"""

from __future__ import annotations

from replctl.errors import FeatureNotSupported

#: Settings with full effect: each of PostgreSQL's values works, or a check in guc_check refuses it.
OBEYED = frozenset(
    """
    allow_alter_system application_name bytea_output client_min_messages config_file data_directory
    datestyle deadlock_timeout default_table_access_method default_text_search_config
    default_transaction_read_only extra_float_digits hba_file hot_standby_feedback ident_file
    in_hot_standby intervalstyle lc_messages lc_monetary lc_numeric lc_time lock_timeout
    max_logical_replication_workers
    max_parallel_apply_workers_per_subscription max_replication_slots max_slot_wal_keep_size
    max_sync_workers_per_subscription max_wal_senders max_wal_size primary_conninfo
    primary_slot_name replctl.max_batch_changes
    replctl.max_query_memory replctl.small_table_rows replctl.vacuum_retention row_security
    scram_iterations search_path statement_timeout sync_replication_slots
    synchronized_standby_slots temp_tablespaces timezone transaction_read_only wal_keep_size
    wal_level wal_segment_size
    """.split()
)

_NAMES_OF_UTC = ("UTC", "Etc/UTC", "GMT", "Etc/GMT")

#: Supported values of settings that change results; an empty text is a value, too.
SUPPORTED: dict[str, tuple[str, ...]] = {
    "allow_system_table_mods": ("off",),
    "array_nulls": ("on",),
    "backslash_quote": ("safe_encoding", "on"),  # equivalent, because every encoding is safe
    "client_encoding": ("UTF8", "SQL_ASCII"),  # SQL_ASCII converts nothing
    "createrole_self_grant": ("",),
    "default_tablespace": ("", "pg_default"),
    "default_transaction_isolation": ("read committed", "read uncommitted"),
    "default_with_oids": ("off",),
    "exit_on_error": ("off",),
    "hot_standby": ("on",),
    "idle_in_transaction_session_timeout": ("0",),
    "idle_session_timeout": ("0",),
    "local_preload_libraries": ("",),
    "log_timezone": _NAMES_OF_UTC,
    "password_encryption": ("scram-sha-256",),
    "quote_all_identifiers": ("off",),
    "recovery_min_apply_delay": ("0",),
    "restrict_nonsystem_relation_kind": ("", "foreign-table"),  # there are no foreign tables
    "session_preload_libraries": ("",),
    "session_replication_role": ("origin", "local"),
    "shared_preload_libraries": ("",),
    "standard_conforming_strings": ("on",),
    "synchronous_standby_names": ("",),
    "timezone_abbreviations": ("Default",),
    "track_commit_timestamp": ("off",),
    "transaction_isolation": ("read committed", "read uncommitted"),
    "transaction_timeout": ("0",),
    "transform_null_equals": ("off",),
    "xmlbinary": ("base64",),
    "xmloption": ("content",),
}

#: Beginnings of categories in pg_settings, and statements of PostgreSQL's documentation about them.
_CATEGORIES = {
    "Autovacuum": "when dead rows are removed",
    "Connections and Authentication / Connection Settings": "how many clients a server takes",
    "Connections and Authentication / SSL": "how a connection is encrypted",
    "Connections and Authentication / TCP Settings": "how a lost connection is noticed",
    "File Locations": "where the server's files are",
    "Lock Management": "the size of the table of locks",
    "Preset Options": "cannot be changed",
    "Query Tuning": "which plan is chosen",
    "Replication": "when changes are sent",
    "Reporting and Logging": "what the server's log has",
    "Resource Usage": "memory, files and processes",
    "Statistics": "what is counted",
    "Write-Ahead Log": "when the log is written, kept and archived",
}

#: Settings of other categories that do not change results.
_HARMLESS = {
    "allow_in_place_tablespaces": "for tests of tablespaces, which replctl has not",
    "authentication_timeout": "how long a connection may take to log in",
    "backtrace_functions": "what the server's log has",
    "check_function_bodies": "replctl looks at a function's body when the function is called",
    "data_sync_retry": "when a server gives up writing to a disk",
    "default_toast_compression": "how values are stored",
    "default_transaction_deferrable": "only for SERIALIZABLE transactions",
    "dynamic_library_path": "where modules in C are",
    "escape_string_warning": "only with standard_conforming_strings off",
    "event_triggers": "there are none",
    "gin_fuzzy_search_limit": "only for GIN indexes",
    "gin_pending_list_limit": "only for GIN indexes",
    "gss_accept_delegation": "for Kerberos",
    "icu_validation_level": "only for collations of ICU",
    "jit_provider": "how expressions are compiled",
    "krb_caseins_users": "for Kerberos",
    "krb_server_keyfile": "for Kerberos",
    "lo_compat_privileges": "only for large objects",
    "recovery_init_sync_method": "how files reach the disk after a crash",
    "restart_after_crash": "what a server does after a crash",
    "synchronize_seqscans": "the order of rows without ORDER BY",
    "transaction_deferrable": "only for SERIALIZABLE transactions",
    "vacuum_failsafe_age": "when dead rows are removed",
    "vacuum_freeze_min_age": "when dead rows are removed",
    "vacuum_freeze_table_age": "when dead rows are removed",
    "vacuum_multixact_failsafe_age": "when dead rows are removed",
    "vacuum_multixact_freeze_min_age": "when dead rows are removed",
    "vacuum_multixact_freeze_table_age": "when dead rows are removed",
}
_DEVELOPER = "Developer Options"


def harmless_because(key: str, category: str) -> str | None:
    """Return the reason why no result depends on a setting; None if a result depends on it.

    Args:
        key: the setting's name in lower case.
        category: the setting's category in pg_settings.
    """
    if key in OBEYED or key in SUPPORTED:
        return None
    if category == _DEVELOPER:
        return "for developers of PostgreSQL"
    found = next((why for start, why in _CATEGORIES.items() if category.startswith(start)), None)
    return _HARMLESS.get(key) or found


def check_supported(name: str, value: str) -> None:
    """Refuse an unsupported value that would change results.

    Args:
        name: the setting's name in PostgreSQL's spelling.
        value: the stored form of the value.

    Raises:
        FeatureNotSupported: replctl does not support it (0A000).
    """
    if name == "seed":
        raise FeatureNotSupported('setting "seed" is not supported')
    supported = SUPPORTED.get(name.lower())
    if supported is None or value in supported:
        return
    shown = ", ".join(f'"{text}"' for text in supported)
    raise FeatureNotSupported(
        f'value "{value}" of parameter "{name}" is not supported',
        hint=f"Supported values: {shown}.",
    )

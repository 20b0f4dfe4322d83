"""Each setting follows one rule: replctl obeys it, or it changes no result, or replctl refuses the
values that would change a result."""

from __future__ import annotations

import pytest

from replctl.errors import FeatureNotSupported
from replctl.types.guc import UNLISTED, Setting, find_setting, read_value, settings
from replctl.types.guc_rule import OBEYED, SUPPORTED, harmless_because

#: Values that would change results, and that replctl therefore refuses.
REFUSED = {
    "allow_system_table_mods": "on",
    "array_nulls": "off",
    "backslash_quote": "off",
    "client_encoding": "latin1",
    "createrole_self_grant": "set",
    "default_tablespace": "pg_global",
    "default_transaction_isolation": "serializable",
    "default_with_oids": "on",
    "exit_on_error": "on",
    "password_encryption": "md5",
    "quote_all_identifiers": "on",
    "restrict_nonsystem_relation_kind": "view",
    "session_replication_role": "replica",
    "standard_conforming_strings": "off",
    "timezone_abbreviations": "Australia",
    "transaction_isolation": "repeatable read",
    "transform_null_equals": "on",
    "xmlbinary": "hex",
    "xmloption": "document",
}


@pytest.mark.parametrize("setting", settings().values(), ids=lambda setting: setting.key)
def test_each_setting_has_one_rule(setting: Setting) -> None:
    reason = harmless_because(setting.key, setting.category)
    found = [setting.key in OBEYED, setting.key in SUPPORTED, reason is not None]
    assert sum(found) == 1, setting.key


def test_rules_name_settings() -> None:
    assert set(OBEYED) | set(SUPPORTED) <= set(settings()) | set(UNLISTED)


@pytest.mark.parametrize("key", SUPPORTED)
def test_the_default_is_supported(key: str) -> None:
    setting = find_setting(key)
    assert read_value(setting, setting.boot_value) in SUPPORTED[key]


@pytest.mark.parametrize(("key", "value"), REFUSED.items())
def test_other_values_are_refused(key: str, value: str) -> None:
    setting = find_setting(key)
    with pytest.raises(FeatureNotSupported) as caught:
        read_value(setting, value)
    assert caught.value.message.endswith(f'of parameter "{setting.name}" is not supported')
    assert str(caught.value.hint).startswith("Supported values: ")


def test_settings_of_others_are_anybodys() -> None:
    assert read_value(find_setting("my.setting"), "x") == "x"

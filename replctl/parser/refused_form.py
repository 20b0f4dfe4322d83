"""Name the forms of PostgreSQL's statements that replctl refuses (grammar/unsupported.lark)."""

from __future__ import annotations

#: The beginning of the names of the rules for refused forms.
REFUSED = "no_"
#: The messages of rules whose names do not say it all, and PostgreSQL's own messages.
_MESSAGES = {
    "no_alter_type__drop_value": "dropping an enum value is not implemented",
    "no_column_type_references": "types of columns, as in table.column%TYPE, are not supported",
    "no_elements_if_not_exists": "CREATE SCHEMA IF NOT EXISTS cannot include schema elements",
    "no_foreign_table_options": "options of foreign tables are not supported",
    "no_operator_class_parameters": "parameters of operator classes are not supported",
    "no_sql_standard_function_bodies": "function bodies without quotes are not supported",
    "no_support_functions": "support functions are not supported",
    "no_transforms": "transforms are not supported",
    "no_typed_tables": "typed tables are not supported",
    "no_window_frame_expressions": "expressions as bounds of window frames are not supported",
}
_PRIVILEGES = "no_privileges_on_"
#: The beginning of the names of rules for functions whose names have underscores.
_FUNCTION = "no_json_"


def refusal_message(rule: str) -> str:
    """Return the error message for a statement with a refused form.

    >>> refusal_message("no_alter_operator__set_schema")
    'ALTER OPERATOR ... SET SCHEMA is not supported'
    >>> refusal_message("no_privileges_on_large_objects")
    'privileges on large objects are not supported'
    >>> refusal_message("no_json_value")
    'JSON_VALUE is not supported'
    """
    if rule in _MESSAGES:
        return _MESSAGES[rule]
    if rule.startswith(_PRIVILEGES):
        objects = rule.removeprefix(_PRIVILEGES).replace("_", " ")
        return f"privileges on {objects} are not supported"
    name = rule.removeprefix(REFUSED).upper()
    if not rule.startswith(_FUNCTION):
        name = name.replace("__", " ... ").replace("_", " ")
    return f"{name} is not supported"

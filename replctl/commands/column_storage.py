"""STORAGE and COMPRESSION of columns: the values that a type allows (tablecmds.c)."""

from __future__ import annotations

from replctl.errors import FeatureNotSupported, InvalidParameterValue
from replctl.expr.environment import Environment

_STORAGE = {"plain": "p", "external": "e", "extended": "x", "main": "m", "default": ""}
_COMPRESSION = {"pglz": "p", "lz4": "l"}


def storage_of(environment: Environment, type_name: str, word: str) -> str:
    """Return pg_attribute.attstorage for SET STORAGE (GetAttributeStorage); '' for the storage that
    is the default of the type.

    Raises:
        InvalidParameterValue: PostgreSQL has no such storage.
        FeatureNotSupported: the type only allows the storage PLAIN.
    """
    letter = _STORAGE.get(word.lower())
    if letter is None:
        raise InvalidParameterValue(f'invalid storage type "{word}"')
    own = environment.type(type_name).storage
    if letter not in ("", "p") and own == "p":
        shown = environment.format_type(type_name)
        raise FeatureNotSupported(f"column data type {shown} can only have storage PLAIN")
    return "" if letter == own else letter


def compression_of(environment: Environment, type_name: str, word: str) -> str:
    """Return pg_attribute.attcompression for SET COMPRESSION (GetAttributeCompression).

    Raises:
        InvalidParameterValue: there is no such compression method.
        FeatureNotSupported: values of the type cannot be compressed.
    """
    if word == "default":
        return ""
    if environment.type(type_name).storage == "p":
        shown = environment.format_type(type_name)
        raise FeatureNotSupported(f"column data type {shown} does not support compression")
    if word not in _COMPRESSION:
        raise InvalidParameterValue(f'invalid compression method "{word}"')
    return _COMPRESSION[word]

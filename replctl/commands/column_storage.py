"""STORAGE and COMPRESSION of columns: the values that a type allows (tablecmds.c)."""

from __future__ import annotations

from replctl.errors import FeatureNotSupported, InvalidParameterValue
from replctl.expr.environment import Environment
from replctl.types.type_kind import ToastCompression, TypeStorage


def storage_of(environment: Environment, type_name: str, word: str) -> TypeStorage | None:
    """Return the storage of SET STORAGE (GetAttributeStorage); None for the type's default.

    Raises:
        InvalidParameterValue: PostgreSQL has no such storage.
        FeatureNotSupported: the type only allows the storage PLAIN.
    """
    own = environment.type(type_name).storage
    if word.lower() == "default":
        return None
    storage = TypeStorage.__members__.get(word.upper())
    if storage is None:
        raise InvalidParameterValue(f'invalid storage type "{word}"')
    if storage != TypeStorage.PLAIN and own == TypeStorage.PLAIN:
        shown = environment.format_type(type_name)
        raise FeatureNotSupported(f"column data type {shown} can only have storage PLAIN")
    return None if storage == own else storage


def compression_of(environment: Environment, type_name: str, word: str) -> ToastCompression | None:
    """Return the compression of SET COMPRESSION (GetAttributeCompression); None for the default.

    Raises:
        InvalidParameterValue: there is no such compression method.
        FeatureNotSupported: values of the type cannot be compressed.
    """
    if word == "default":
        return None
    if environment.type(type_name).storage == TypeStorage.PLAIN:
        shown = environment.format_type(type_name)
        raise FeatureNotSupported(f"column data type {shown} does not support compression")
    compression = ToastCompression.__members__.get(word.upper()) if word.islower() else None
    if compression is None:
        raise InvalidParameterValue(f'invalid compression method "{word}"')
    return compression

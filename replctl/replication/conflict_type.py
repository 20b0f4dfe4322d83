"""Define the kinds of conflicts."""

from __future__ import annotations

from enum import Enum


class ConflictType(Enum):
    """Kinds of conflicts, as PostgreSQL 18 counts them (conflict.c)."""

    INSERT_EXISTS = "insert_exists"
    UPDATE_ORIGIN_DIFFERS = "update_origin_differs"
    UPDATE_EXISTS = "update_exists"
    UPDATE_MISSING = "update_missing"
    DELETE_ORIGIN_DIFFERS = "delete_origin_differs"
    DELETE_MISSING = "delete_missing"
    MULTIPLE_UNIQUE_CONFLICTS = "multiple_unique_conflicts"

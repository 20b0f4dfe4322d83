"""Compute and check SCRAM-SHA-256 verifiers of passwords (RFC 5802, scram-common.c)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets

_BASE64 = r"([A-Za-z0-9+/]+={0,2})"
_VERIFIER = re.compile(rf"SCRAM-SHA-256\$([1-9][0-9]{{0,8}}):{_BASE64}\${_BASE64}:{_BASE64}")


def scram_verifier(password: str, iterations: int) -> str:
    """Return a password's verifier, `SCRAM-SHA-256$4096:salt$StoredKey:ServerKey`.  If `password`
    already is a verifier, return it unchanged (scram_build_secret).
    """
    if _VERIFIER.fullmatch(password):
        return password
    salt = secrets.token_bytes(16)
    salted = _salted(password, salt, iterations)
    server_key = hmac.digest(salted, b"Server Key", "sha256")
    parts = (salt, _stored_key(salted), server_key)
    shown_salt, stored_key, shown_key = (base64.b64encode(part).decode() for part in parts)
    return f"SCRAM-SHA-256${iterations}:{shown_salt}${stored_key}:{shown_key}"


def is_password(password: str, verifier: str) -> bool:
    """Return whether a verifier belongs to a password (scram_verify_plain_password)."""
    found = _VERIFIER.fullmatch(verifier)
    if found is None:
        return False
    iterations, salt, stored_key, _server_key = found.groups()
    salted = _salted(password, base64.b64decode(salt), int(iterations))
    return hmac.compare_digest(_stored_key(salted), base64.b64decode(stored_key))


def _salted(password: str, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)


def _stored_key(salted: bytes) -> bytes:
    return hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()

"""libpq's connection strings: `key = value` pairs and postgresql:// URIs.

PostgreSQL's documentation, section "Connection Strings".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote

from replctl.errors import SqlSyntaxError

_BLANKS = " \t\n\v\f\r"  # isspace() in the C locale

#: Keywords of libpq (PQconninfoOptions); others are an error.
KEYWORDS = frozenset(
    """service user password passfile connect_timeout dbname host hostaddr port client_encoding
    options application_name fallback_application_name keepalives keepalives_idle
    keepalives_interval keepalives_count tcp_user_timeout sslmode sslnegotiation sslcompression
    sslcert sslkey sslcertmode sslpassword sslrootcert sslcrl sslcrldir sslsni requirepeer
    require_auth ssl_min_protocol_version ssl_max_protocol_version gssencmode krbsrvname gsslib
    gssdelegation replication target_session_attrs load_balance_hosts channel_binding requiressl
    tty""".split()
)


def parse_conninfo(text: str) -> dict[str, str]:
    """Parse a connection string.

    `host=localhost dbname='a b'` -> {'host': 'localhost', 'dbname': 'a b'}

    Raises:
        SqlSyntaxError: the text is not a connection string; the message is libpq's (42601).
    """
    if text.startswith(("postgresql://", "postgres://")):
        return _parse_uri(text)
    return _parse_pairs(text)


def command_line_settings(options: str) -> dict[str, str]:
    """Return the settings in the parameter `options`, which is a server's command line.

    `-c row_security=off --lock_timeout=5s`  ->  {"row_security": "off", "lock_timeout": "5s"}

    Raises:
        SqlSyntaxError: `options` contains something other than settings.
    """
    words = re.findall(r"(?:\\.|[^\s\\])+", options)
    words = [re.sub(r"\\(.)", r"\1", word) for word in words]
    result: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        flag = "--" if word.startswith("--") else "-c"
        text = next(rest, "") if word == "-c" else word.removeprefix(flag)
        name, is_given, value = text.partition("=")
        if not word.startswith(flag) or not name:
            raise SqlSyntaxError(
                f"invalid command-line argument for server process: {word}",
                hint='Try "postgres --help" for more information.',
            )
        if not is_given:
            raise SqlSyntaxError(f"{flag}{' ' * (flag == '-c')}{name} requires a value")
        result[name.replace("-", "_")] = value
    return result


#: Environment variables that libpq sends as settings.
_ENVIRONMENT = {
    "PGAPPNAME": "application_name",
    "PGCLIENTENCODING": "client_encoding",
    "PGDATESTYLE": "datestyle",
    "PGGEQO": "geqo",
    "PGTZ": "timezone",
}


def client_settings(
    environment: Mapping[str, str], parameters: Mapping[str, str]
) -> dict[str, str]:
    """Return the settings that a client requests when it connects (pqBuildStartupPacket3).

    Args:
        environment: the environment of the process.
        parameters: parameters of a connection string, which override the environment.

    Raises:
        SqlSyntaxError: `options` contains something other than settings (42601).
    """
    given = parameters.get("options", environment.get("PGOPTIONS", ""))
    result = command_line_settings(given)
    for variable, name in _ENVIRONMENT.items():
        value = parameters.get(name, environment.get(variable, "default"))
        if value.lower() != "default" and (name, value.lower()) != ("client_encoding", "auto"):
            result[name] = value
    return result


def application_name(text: str, fallback: str) -> str:
    """Return the application name in a connection string, or the fallback, for the publisher."""
    return parse_conninfo(text).get("application_name", fallback)


def connection_target(text: str) -> tuple[tuple[str, str], ...]:
    """Return the parameters of a connection string except the application's name, as a key."""
    parameters = parse_conninfo(text)
    return tuple(sorted(item for item in parameters.items() if item[0] != "application_name"))


def _parse_pairs(text: str) -> dict[str, str]:
    result: dict[str, str] = {}
    position, length = 0, len(text)
    while True:
        while position < length and text[position] in _BLANKS:
            position += 1
        if position == length:
            return result
        start = position
        while position < length and text[position] != "=" and text[position] not in _BLANKS:
            position += 1
        name = text[start:position]
        while position < length and text[position] in _BLANKS:
            position += 1
        if position == length or text[position] != "=":
            raise _invalid(f'missing "=" after "{name}" in connection info string')
        position += 1
        while position < length and text[position] in _BLANKS:
            position += 1
        value, position = _value(text, position)
        _add(result, name, value)


def _value(text: str, position: int) -> tuple[str, int]:
    """Return a value, which may have backslash escapes and single quotes, and its end."""
    is_quoted = position < len(text) and text[position] == "'"
    position += is_quoted
    value: list[str] = []
    while position < len(text):
        char = text[position]
        if is_quoted and char == "'":
            return "".join(value), position + 1
        if not is_quoted and char in _BLANKS:
            return "".join(value), position
        if char == "\\":
            position += 1
            char = text[position : position + 1]
        value.append(char)
        position += 1
    if is_quoted:
        raise _invalid("unterminated quoted string in connection info string")
    return "".join(value), position


def _parse_uri(text: str) -> dict[str, str]:
    result: dict[str, str] = {}
    rest = text.split("://", 1)[1]
    rest, _, parameters = rest.partition("?")
    authority, _, database = rest.partition("/")
    credentials, at, hosts = authority.rpartition("@")
    if at:
        user, colon, password = credentials.partition(":")
        if user:
            _add(result, "user", _decoded(user))
        if colon:
            _add(result, "password", _decoded(password))
    names, ports = [], []
    for host in hosts.split(",") if hosts else []:
        if host.startswith("["):
            name, port = _bracketed(host, text)
        else:
            name, _, port = host.partition(":")
        names.append(_decoded(name))
        ports.append(port)
    if any(names):
        _add(result, "host", ",".join(names))
    if any(ports):
        _add(result, "port", ",".join(ports))
    if database:
        _add(result, "dbname", _decoded(database))
    for pair in parameters.split("&") if parameters else []:
        name, equals, value = pair.partition("=")
        if not equals:
            raise _invalid(f'missing key/value separator "=" in URI query parameter: "{name}"')
        if _decoded(name) not in KEYWORDS and _decoded(name) != "ssl":
            raise _invalid(f'invalid URI query parameter: "{_decoded(name)}"')
        _add(result, _decoded(name), _decoded(value))
    return result


def _bracketed(host: str, uri: str) -> tuple[str, str]:
    """Split an address in brackets from its port: (`[::1]:5432`, ``) -> (`::1`, `5432`)."""
    name, bracket, rest = host[1:].partition("]")
    if not bracket:
        raise _invalid(
            'end of string reached when looking for matching "]" in IPv6 host address in URI:'
            f' "{uri}"'
        )
    if not name:
        raise _invalid(f'IPv6 host address may not be empty in URI: "{uri}"')
    if rest and rest[0] != ":":
        raise _invalid(
            f'unexpected character "{rest[0]}" at position {uri.index(host) + len(name) + 3} in URI'
            f' (expected ":" or "/"): "{uri}"'
        )
    return name, rest[1:]


def _decoded(text: str) -> str:
    position = text.find("%")
    while position >= 0:
        digits = text[position + 1 : position + 3]
        if len(digits) < 2 or any(char not in "0123456789abcdefABCDEF" for char in digits):
            raise _invalid(f'invalid percent-encoded token: "{text}"')
        if digits == "00":
            raise _invalid(f'forbidden value %00 in percent-encoded value: "{text}"')
        position = text.find("%", position + 1)
    return unquote(text)


def _add(result: dict[str, str], name: str, value: str) -> None:
    if name not in KEYWORDS:
        raise _invalid(f'invalid connection option "{name}"')
    result[name] = value


def _invalid(message: str) -> SqlSyntaxError:
    return SqlSyntaxError(f"invalid connection string syntax: {message}\n")


_LOCAL_HOSTS = ("", "localhost", "127.0.0.1", "::1")


def host_of(parameters: Mapping[str, str]) -> str:
    """Return the host, its address or the directory in connection parameters."""
    return parameters.get("hostaddr") or parameters.get("host", "")


def leads_to_own_cluster(parameters: Mapping[str, str]) -> bool:
    """Return whether connection parameters lead to a database of the cluster that uses them."""
    is_local = host_of(parameters) in _LOCAL_HOSTS
    return is_local and "port" not in parameters and "service" not in parameters


def quote_value(value: str) -> str:
    r"""Quote a value for a connection string: `it's` -> `'it\'s'`."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"

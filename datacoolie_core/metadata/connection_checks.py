"""Rules of one connection: its type and format, how it signs in, its secrets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from datacoolie_core.errors import nearest
from datacoolie_core.metadata.date_folders import DatePatternError, date_pattern
from datacoolie_core.metadata.hint_types import HintTypeError, dialect_name
from datacoolie_core.metadata.models import FORMAT_TYPES, Connection
from datacoolie_core.metadata.names import name_problem
from datacoolie_core.metadata.open_keys import check_open_keys
from datacoolie_core.metadata.problems import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_VARIABLE = re.compile(r"\$\{[A-Za-z_]\w*\}")
_PLACES = ("base_path", "base_url", "host", "url", "database", "catalog")
DATABASE_AUTH = {
    "password": (),
    "service_principal": ("username", "password", "tenant_id"),
    "managed_identity": (),
    "access_token": ("token",),
}
API_AUTH = {
    "bearer": ("auth_token",),
    "basic": ("username", "password"),
    "api_key": ("api_key_value",),
    "oauth2_client_credentials": ("token_url", "client_id", "client_secret"),
    "aws_sigv4": (),
}
"""What each kind of signing in needs in ``configure``."""


def check_connection(connection: Connection) -> Iterator[Finding]:
    """Yield what is wrong within one connection."""
    problem = name_problem(connection.name)
    if problem is not None:
        yield Finding("name", problem)
    for check in _CHECKS:
        yield from check(connection)
    yield from check_open_keys(
        connection.configure,
        "configure",
        known=_KNOWN.get(connection.connection_type, ()),
        own_keys=False,
    )


def _format(connection: Connection) -> Iterator[Finding]:
    kind, form = connection.connection_type, connection.format
    if kind == "streaming":
        yield Finding("connection_type", "streaming connections can't be used: no format has them")
    elif form in FORMAT_TYPES and FORMAT_TYPES[form] != kind:
        fitting = ", ".join(name for name, home in FORMAT_TYPES.items() if home == kind)
        given = f"'{form}' does not" if "format" in connection.model_fields_set else "no format"
        message = f"connection_type {kind} goes with format {fitting}; {given}"
        yield Finding(
            "format", f"{message} fit" if given.endswith("not") else f"{message} is given"
        )


def _sign_in(connection: Connection) -> Iterator[Finding]:
    if connection.connection_type == "database":
        yield from _auth(connection, DATABASE_AUTH, "password")
        host, kind = _value(connection, "host"), _value(connection, "auth_type") or "password"
        fabric = str(host or "").lower().rstrip(".").endswith(".fabric.microsoft.com")
        if kind == "password" and fabric:
            message = "a Fabric host does not take passwords; set auth_type service_principal"
            yield Finding("configure.auth_type", message)
    elif connection.connection_type == "api":
        if not _value(connection, "base_url"):
            yield Finding("configure.base_url", "it is required")
        yield from _auth(connection, API_AUTH, None)


def _auth(
    connection: Connection, kinds: dict[str, tuple[str, ...]], default: str | None
) -> Iterator[Finding]:
    kind = _value(connection, "auth_type") or default
    if kind is None:
        return
    if kind not in kinds:
        message = f"expected one of {', '.join(kinds)}, got '{kind}'"
        yield Finding("configure.auth_type", message, nearest(str(kind), kinds))
        return
    for key in kinds[kind]:
        if not _value(connection, key):
            yield Finding(f"configure.{key}", f"auth_type {kind} needs it")


def _value(connection: Connection, key: str) -> Any:
    return getattr(connection.configure, key, None)


def _dated_folders(connection: Connection) -> Iterator[Finding]:
    pattern = connection.configure.date_folder_partitions
    if connection.connection_type != "file" or not pattern:
        return
    try:
        date_pattern(pattern)
    except DatePatternError as error:
        yield Finding("configure.date_folder_partitions", str(error))


def _secrets(connection: Connection) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for source, fields in (connection.secrets_ref or {}).items():
        for name in fields:
            field = f"secrets_ref.{source or chr(39) * 2}"
            if name in seen:
                message = f"'{name}' is also listed under '{seen[name]}'; one source resolves it"
                yield Finding(field, message)
            elif not isinstance(_value(connection, name), str):
                message = f"'{name}' is no text field of configure; its value is the secret's key"
                extras = connection.configure.model_extra or {}
                yield Finding(field, message, nearest(name, extras))
            seen[name] = source


def _variables(connection: Connection) -> Iterator[Finding]:
    for key in _PLACES:
        value = _value(connection, key)
        found = _VARIABLE.search(value) if isinstance(value, str) else None
        if found is not None:
            name = found[0].strip("${}")
            message = (
                f"'{found[0]}' is not replaced; write {name} here "
                f'and secrets_ref {{"env:": ["{key}"]}} to read the variable'
            )
            yield Finding(f"configure.{key}", message)


def _dialects(connection: Connection) -> Iterator[Finding]:
    for key in ("database_type", "schema_hint_type_system"):
        value = _value(connection, key)
        try:
            if value:
                dialect_name(value)
        except HintTypeError as error:
            yield Finding(f"configure.{key}", str(error), error.suggestion)


_CHECKS: tuple[Callable[[Connection], Iterator[Finding]], ...] = (
    _format,
    _sign_in,
    _secrets,
    _variables,
    _dialects,
    _dated_folders,
)

_KNOWN: dict[str, tuple[str, ...]] = {
    "lakehouse": (
        "athena_output_location",
        "generate_manifest",
        "register_symlink_table",
        "symlink_database_prefix",
        "catalog",
        "database",
    ),
    "database": (
        "host",
        "port",
        "username",
        "password",
        "driver",
        "url",
        "auth_type",
        "database",
        "tenant_id",
        "token",
        "database_read_engine",
        "encrypt",
    ),
    "api": (
        "base_url",
        "timeout",
        "default_headers",
        "auth_type",
        "auth_token",
        "username",
        "password",
        "api_key_header",
        "api_key_value",
        "token_url",
        "client_id",
        "client_secret",
        "scope",
        "token_auth_method",
        "token_request_body_format",
        "token_request_extras",
        "aws_region",
        "aws_service",
        "aws_access_key_id",
        "aws_secret_access_key",
        "aws_session_token",
        "watermark_to_param_timezone",
    ),
}
"""Keys of ``configure`` that the format knows beyond those of the model."""

"""Preparation, once per dataflow and before any retry: its SQL, its secrets, its places."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from datacoolie_core import secrets, storage
from datacoolie_core.errors import DataCoolieError, PreparationError
from datacoolie_core.metadata.identity import table_path
from datacoolie_core.plan.query import load_query

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacoolie_core.metadata.models import Connection, Dataflow, Destination
    from datacoolie_core.run.context import RunContext


@dataclass(frozen=True)
class Prepared:
    """A dataflow that is ready to run; each attempt reads it and none changes it.

    Attributes:
        original: As in the metadata; this is what records and events carry.
        dataflow: With secrets in place.
        query: The SQL text, from the metadata or its file; None without a query.
        uri: The destination's location, absolute.
        storage_options: For the destination's object store; never printed.
        max_watermark: Values above it do not move the watermark; None has no limit.
    """

    original: Dataflow
    dataflow: Dataflow = field(repr=False)
    query: str | None
    uri: str
    storage_options: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    max_watermark: datetime | None = None


def prepare(dataflow: Dataflow, context: RunContext) -> Prepared:
    """Return the dataflow ready to run.

    Raises:
        PreparationError: For a SQL file, a secret or a location that can't be resolved.
    """
    try:
        query = load_query(
            dataflow,
            project_dir=context.project_dir,
            sql_roots=tuple(context.sql_paths),
            artifact_root=context.artifact_root,
        )
        source = dataflow.source.model_copy(
            update={"connection": _with_secrets(dataflow.source.connection, context)}
        )
    except PreparationError as error:
        error.dataflow = error.dataflow or dataflow.dataflow_id
        raise
    except DataCoolieError as error:
        raise _unprepared(error, dataflow) from error
    destination, uri = prepare_destination(dataflow, context)
    return Prepared(
        original=dataflow,
        dataflow=dataflow.model_copy(update={"source": source, "destination": destination}),
        query=query,
        uri=uri,
        storage_options=dict(destination.connection.configure.storage_options),
        max_watermark=_parse_limit(dataflow, context.now()),
    )


def prepare_destination(dataflow: Dataflow, context: RunContext) -> tuple[Destination, str]:
    """Return a dataflow's destination with its secrets in place, and its absolute location.

    Raises:
        PreparationError: For a secret or a location that can't be resolved.
    """
    try:
        connection = _with_secrets(dataflow.destination.connection, context)
    except DataCoolieError as error:
        raise _unprepared(error, dataflow) from error
    destination = dataflow.destination.model_copy(update={"connection": connection})
    path = table_path(destination)
    if path is None:
        raise PreparationError(
            "the destination's connection has no base_path",
            dataflow=dataflow.dataflow_id,
            place=f"connection '{connection.name}'",
            remedy="Set configure.base_path.",
        )
    return destination, storage.resolve(path, context.project_dir)


def _unprepared(error: DataCoolieError, dataflow: Dataflow) -> PreparationError:
    return PreparationError(
        error.message,
        dataflow=dataflow.dataflow_id,
        place=error.place,
        remedy=error.remedy,
        code=error.code,
    )


def check_preparation(dataflow: Dataflow, context: RunContext) -> None:
    """Check what of the preparation needs no secret: the SQL file, ``max_watermark``.

    Raises:
        PreparationError: It would fail.
    """
    load_query(
        dataflow,
        project_dir=context.project_dir,
        sql_roots=tuple(context.sql_paths),
        artifact_root=context.artifact_root,
    )
    _parse_limit(dataflow, context.now())


def _with_secrets(connection: Connection, context: RunContext) -> Connection:
    written = connection.configure.model_dump(exclude_unset=True)
    if not connection.secrets_ref:
        context.redaction.learn_from(written)
        return connection
    values = secrets.resolve(
        written,
        connection.secrets_ref,
        connection=connection.name,
        resolvers=context.resolvers,
    )
    for value in values.values():
        context.redaction.learn(value.reveal())
    context.redaction.learn_from({k: v for k, v in written.items() if k not in values})
    return connection.model_copy(
        update={"configure": connection.configure.model_copy(update=dict(values))}
    )


_LIMIT = re.compile(r"^now(?:\s*\+\s*(\d+)\s*(d|h|min))?$")
_UNITS = {"d": "days", "h": "hours", "min": "minutes"}


def _parse_limit(dataflow: Dataflow, now: datetime) -> datetime | None:
    """Return ``max_watermark`` as an instant: ``now``, ``now + 1d``, or an ISO timestamp."""
    text = dataflow.source.configure.datacoolie.max_watermark
    if text is None:
        return None
    if match := _LIMIT.match(text.strip()):
        amount, unit = match.groups()
        return now + timedelta(**{_UNITS[unit]: int(amount)}) if amount else now
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise PreparationError(
            f"max_watermark {text!r} is neither 'now', 'now + 1d' nor a timestamp",
            dataflow=dataflow.dataflow_id,
            place="source.configure.datacoolie.max_watermark",
            remedy="Write for example: max_watermark: now + 1d.",
        ) from None

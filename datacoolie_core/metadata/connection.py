"""Connections: the places that data comes from or goes to."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from datacoolie_core.metadata.base import Model, OpenModel
from datacoolie_core.metadata.coercions import (
    Anything,
    AsObject,
    BlankIsNone,
    Lowered,
    Names,
    TrimmedName,
    has_unit,
    object_or_none,
    to_secrets_ref,
)
from datacoolie_core.metadata.identity import fill_id

ConnectionType = Literal["file", "lakehouse", "database", "api", "function", "streaming"]
Format = Literal[
    "delta", "iceberg", "parquet", "csv", "json", "jsonl", "avro", "excel", "sql", "api", "function"
]

FORMAT_TYPES: dict[str, ConnectionType] = {
    **dict.fromkeys(("parquet", "csv", "json", "jsonl", "avro", "excel"), "file"),
    **dict.fromkeys(("delta", "iceberg"), "lakehouse"),
    "sql": "database",
    "api": "api",
    "function": "function",
}
"""Which connection type each format belongs to."""


class Backward(Model):
    """Look-back: how far a run's lower bound moves down below the stored watermark."""

    days: int | None = Field(default=None, ge=0)
    """Days."""
    hours: int | None = Field(default=None, ge=0)
    """Hours."""
    months: int | None = Field(default=None, ge=0)
    """Calendar months; a day that the month lacks becomes its last."""
    years: int | None = Field(default=None, ge=0)
    """Calendar years."""
    closing_day: int | None = Field(default=None, ge=1, le=31)
    """Up to this day of the month, read from the first of the previous month on; later, from the
    first of this month.
    """


class LookBack(OpenModel):
    """Where a look-back can be set: nested, or as flat keys."""

    backward: Annotated[Backward | None, BeforeValidator(has_unit)] = None
    """How far below the stored watermark a run reads again; wins over the flat keys."""
    backward_days: int | None = Field(default=None, ge=0)
    """As ``backward.days``."""
    backward_hours: int | None = Field(default=None, ge=0)
    """As ``backward.hours``."""
    backward_months: int | None = Field(default=None, ge=0)
    """As ``backward.months``."""
    backward_years: int | None = Field(default=None, ge=0)
    """As ``backward.years``."""
    backward_closing_day: int | None = Field(default=None, ge=1, le=31)
    """As ``backward.closing_day``."""

    def look_back(self) -> Backward | None:
        """Return the look-back of this place: the nested mapping over the flat keys."""
        nested = self.backward or Backward()
        parts: dict[str, Any] = {}
        for unit in ("days", "hours", "months", "years", "closing_day"):
            amount = getattr(nested, unit)
            amount = getattr(self, f"backward_{unit}") if amount is None else amount
            if amount is not None:
                parts[unit] = amount
        return Backward.model_construct(**parts) if parts else None


class ConnectionConfigure(LookBack):
    """``configure`` of a connection; keys of the layer below are kept as they are."""

    base_path: str | None = None
    """The root folder; a table is at base_path/schema_name/table. Relative to the project root."""
    read_options: Anything = Field(default_factory=dict)
    """How files are read; a source's own keys win."""
    write_options: Anything = Field(default_factory=dict)
    """How tables are written; a destination's own keys win."""
    merge_options: Anything = Field(default_factory=dict)
    """How tables are merged; a destination's own keys win."""
    storage_options: Annotated[dict[str, str], AsObject] = Field(default_factory=dict)
    """Options of the object store, as Delta takes them."""
    use_schema_hint: bool = True
    """False switches all schema hints of sources here off."""
    schema_hint_type_system: str | None = None
    """Whose type names the hints use; else that of database_type, else spark_sql."""
    use_hive_partitioning: bool = False
    """Read key=value folders too, their keys as columns."""
    date_folder_partitions: str | None = None
    """Dated folders, such as {year}/{month}/{day}; one placeholder a level."""
    database_type: Annotated[str | None, Lowered] = None
    """postgresql, mysql, mssql, oracle or sqlite."""


class Connection(Model):
    """A place that data comes from or goes to."""

    name: TrimmedName
    """What dataflows call it."""
    connection_id: str = ""
    """Its identity; derived from the name if not given."""
    workspace_id: str | None = None
    """The tenant, for providers that serve several."""
    connection_type: ConnectionType = "file"
    """Derived from the format if not given."""
    format: Annotated[Format, Lowered] = "parquet"
    """What is stored there."""
    catalog: Annotated[str | None, BlankIsNone] = None
    """First part of qualified table names."""
    database: Annotated[str | None, BlankIsNone] = None
    """Second part of qualified table names."""
    configure: Annotated[ConnectionConfigure, AsObject] = Field(default_factory=ConnectionConfigure)
    """What this type of connection needs."""
    secrets_ref: Annotated[dict[str, Names] | None, BeforeValidator(to_secrets_ref)] = None
    """Source → fields of configure that hold keys of secrets."""
    is_active: bool = True
    """False skips every dataflow that uses it."""

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        filled = dict(cast("dict[str, Any]", data))
        fill_id(filled, "connection_id")
        _lift_qualifiers(filled)
        if filled.get("connection_type") is None:
            text = filled.get("format")
            kind = FORMAT_TYPES.get(text.strip().lower()) if isinstance(text, str) else None
            filled["connection_type"] = kind or "file"
        return filled


def _lift_qualifiers(data: dict[str, Any]) -> None:
    configure = object_or_none(data.get("configure"))
    if not configure:
        return
    secret = _secret_fields(data)
    for key in ("catalog", "database"):
        if not data.get(key) and isinstance(configure.get(key), str) and key not in secret:
            data[key] = configure[key]


def _secret_fields(data: dict[str, Any]) -> set[Any]:
    try:
        fields = to_secrets_ref(data.get("secrets_ref"))
    except PydanticCustomError:
        return set()
    if not isinstance(fields, dict):
        return set()
    listed = cast("dict[str, tuple[Any, ...]]", fields)
    return {name for names in listed.values() for name in names if isinstance(name, str)}

"""The metadata format as one strict model: every provider and schema comes from here.

The fields are those of the open DataCoolie metadata format, version 0.2. A model holds names,
types and coercions; rules that span fields are in ``checks``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

from pydantic import (
    AliasChoices,
    BeforeValidator,
    Field,
    ValidationInfo,
    model_validator,
)
from pydantic_core import PydanticCustomError

from datacoolie_core.errors import Problem
from datacoolie_core.metadata.base import Model, OpenModel
from datacoolie_core.metadata.coercions import (
    Anything,
    AsObject,
    BlankIsNone,
    Listed,
    Lowered,
    Names,
    TrimmedName,
    has_unit,
    to_columns,
    to_object,
    to_secrets_ref,
)
from datacoolie_core.metadata.identity import id_from_name
from datacoolie_core.metadata.options import DataflowOptions, DestinationOptions, SourceOptions
from datacoolie_core.metadata.transform import (
    AdditionalColumn,
    HashColumn,
    MaskingRule,
    SchemaHint,
    Transform,
    TransformConfigure,
    ValueRule,
)

__all__ = [
    "FORMAT_TYPES",
    "AdditionalColumn",
    "Backward",
    "Connection",
    "ConnectionConfigure",
    "ConnectionType",
    "Dataflow",
    "DataflowConfigure",
    "Destination",
    "DestinationConfigure",
    "Format",
    "HashColumn",
    "InvalidDataflow",
    "LoadType",
    "MaskingRule",
    "Metadata",
    "PartitionColumn",
    "SchemaHint",
    "SchemaHintGroup",
    "Source",
    "SourceConfigure",
    "Transform",
    "TransformConfigure",
    "ValueRule",
]

ConnectionType = Literal["file", "lakehouse", "database", "api", "function", "streaming"]
Format = Literal[
    "delta", "iceberg", "parquet", "csv", "json", "jsonl", "avro", "excel", "sql", "api", "function"
]
LoadType = Literal["append", "overwrite", "full_load", "merge_upsert", "merge_overwrite", "scd2"]

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
    hours: int | None = Field(default=None, ge=0)
    months: int | None = Field(default=None, ge=0)
    years: int | None = Field(default=None, ge=0)
    closing_day: int | None = Field(default=None, ge=1, le=31)


class _LookBack(OpenModel):
    backward: Annotated[Backward | None, BeforeValidator(has_unit)] = None
    backward_days: int | None = Field(default=None, ge=0)
    backward_hours: int | None = Field(default=None, ge=0)
    backward_months: int | None = Field(default=None, ge=0)
    backward_years: int | None = Field(default=None, ge=0)
    backward_closing_day: int | None = Field(default=None, ge=1, le=31)

    def look_back(self) -> Backward | None:
        """Return the look-back of this place: the nested mapping over the flat keys."""
        nested = self.backward or Backward()
        parts: dict[str, int] = {}
        for unit in Backward.model_fields:
            amount = getattr(nested, unit)
            amount = getattr(self, f"backward_{unit}") if amount is None else amount
            if amount is not None:
                parts[unit] = amount
        return Backward.model_construct(**parts) if parts else None


class ConnectionConfigure(_LookBack):
    """``configure`` of a connection; keys of the layer below are kept as they are."""

    base_path: str | None = None
    read_options: Anything = Field(default_factory=dict)
    write_options: Anything = Field(default_factory=dict)
    merge_options: Anything = Field(default_factory=dict)
    storage_options: Annotated[dict[str, str], AsObject] = Field(default_factory=dict)
    use_schema_hint: bool = True
    schema_hint_type_system: str | None = None
    use_hive_partitioning: bool = False
    date_folder_partitions: str | None = None
    database_type: Annotated[str | None, Lowered] = None


class Connection(Model):
    """A place that data comes from or goes to."""

    name: TrimmedName
    connection_id: str = ""
    workspace_id: str | None = None
    connection_type: ConnectionType = "file"
    format: Annotated[Format, Lowered] = "parquet"
    catalog: Annotated[str | None, BlankIsNone] = None
    database: Annotated[str | None, BlankIsNone] = None
    configure: Annotated[ConnectionConfigure, AsObject] = Field(default_factory=ConnectionConfigure)
    secrets_ref: Annotated[dict[str, Names] | None, BeforeValidator(to_secrets_ref)] = None
    is_active: bool = True
    extensions: Anything = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        filled = dict(cast("dict[str, Any]", data))
        _fill_id(filled, "connection_id")
        _lift_qualifiers(filled)
        if filled.get("connection_type") is None:
            text = filled.get("format")
            kind = FORMAT_TYPES.get(text.strip().lower()) if isinstance(text, str) else None
            filled["connection_type"] = kind or "file"
        return filled


class SchemaHintGroup(Model):
    """Schema hints that all dataflows share which read one table."""

    connection_name: str | None = None
    connection_id: str | None = None
    table_name: TrimmedName
    schema_name: Annotated[str | None, BlankIsNone] = None
    hints: Annotated[tuple[SchemaHint, ...], Listed] = ()
    extensions: Anything = Field(default_factory=dict)


def _find_connection(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, str):
        return value
    find = (info.context or {}).get("find_connection")
    if find is None:
        raise PydanticCustomError(
            "unknown_connection", "no connection '{name}'", {"name": value, "known": []}
        )
    return find(value)


ResolvedConnection = Annotated[
    Connection,
    BeforeValidator(_find_connection),
    Field(validation_alias=AliasChoices("connection", "connection_name")),
]


class SourceConfigure(_LookBack):
    """``configure`` of a source."""

    read_options: Anything = Field(default_factory=dict)
    datacoolie: Annotated[SourceOptions, AsObject] = Field(default_factory=SourceOptions)


class Source(Model):
    """What a dataflow reads."""

    connection: ResolvedConnection
    schema_name: Annotated[str | None, BlankIsNone] = None
    table: Annotated[str | None, BlankIsNone] = None
    query: Annotated[str | None, BlankIsNone] = None
    python_function: Annotated[str | None, BlankIsNone] = None
    watermark_columns: Names = ()
    filter_expression: Annotated[str | None, BlankIsNone] = None
    configure: Annotated[SourceConfigure, AsObject] = Field(default_factory=SourceConfigure)
    extensions: Anything = Field(default_factory=dict)

    def look_back(self) -> Backward | None:
        """Return the look-back that applies: the source's own wholly replaces the connection's."""
        return self.configure.look_back() or self.connection.configure.look_back()


class PartitionColumn(Model):
    """A partition column of a destination, computed if it has an expression."""

    column: TrimmedName
    expression: Annotated[str | None, BlankIsNone] = None


class DestinationConfigure(OpenModel):
    """``configure`` of a destination."""

    write_options: Anything = Field(default_factory=dict)
    merge_options: Anything = Field(default_factory=dict)
    scd2_effective_column: Annotated[str | None, BlankIsNone] = None
    replace_by_watermark: bool = False
    datacoolie: Annotated[DestinationOptions, AsObject] = Field(default_factory=DestinationOptions)


class Destination(Model):
    """What a dataflow writes, and how."""

    connection: ResolvedConnection
    table: TrimmedName
    schema_name: Annotated[str | None, BlankIsNone] = None
    load_type: Annotated[LoadType, Lowered] = "append"
    merge_keys: Names = ()
    partition_columns: Annotated[tuple[PartitionColumn, ...], BeforeValidator(to_columns)] = ()
    configure: Annotated[DestinationConfigure, AsObject] = Field(
        default_factory=DestinationConfigure
    )
    extensions: Anything = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _lift_partition_columns(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        given = cast("dict[str, Any]", data)
        configure = _object_or_none(given.get("configure"))
        if not configure or "partition_columns" not in configure or given.get("partition_columns"):
            return given
        rest = {key: value for key, value in configure.items() if key != "partition_columns"}
        return {**given, "partition_columns": configure["partition_columns"], "configure": rest}


class DataflowConfigure(OpenModel):
    """``configure`` of a dataflow."""

    datacoolie: Annotated[DataflowOptions, AsObject] = Field(default_factory=DataflowOptions)


class Dataflow(Model):
    """One load: a source, transforms, a destination."""

    name: Annotated[str | None, BlankIsNone] = None
    dataflow_id: str = ""
    workspace_id: str | None = None
    description: str | None = None
    stage: Annotated[str | None, BlankIsNone] = None
    group_number: int | None = None
    execution_order: int | None = None
    processing_mode: Annotated[Literal["batch", "microbatch", "streaming"], Lowered] = "batch"
    is_active: bool = True
    source: Annotated[Source, AsObject]
    destination: Annotated[Destination, AsObject]
    transform: Annotated[Transform, AsObject] = Field(default_factory=Transform)
    configure: Annotated[DataflowConfigure, AsObject] = Field(default_factory=DataflowConfigure)
    extensions: Anything = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        filled = dict(cast("dict[str, Any]", data))
        _fill_id(filled, "dataflow_id")
        return filled

    @property
    def options(self) -> DataflowOptions:
        """Our own keys of this dataflow."""
        return self.configure.datacoolie

    @property
    def label(self) -> str:
        """How people name it: ``stage/name``, the name, or the id."""
        if not self.name:
            return self.dataflow_id
        return f"{self.stage}/{self.name}" if self.stage else self.name


class InvalidDataflow(Model):
    """A dataflow that can't be loaded, kept apart so that the others can run.

    A file that can't be read at all stands here too, under the file's name.
    """

    label: str
    dataflow_id: str
    stage: str | None = None
    problems: tuple[Problem, ...] = ()


class Metadata(Model):
    """A validated scope: everything that a provider loaded, inactive entries too.

    ``schema_hints`` of shared groups are already attached to the dataflows that use them.
    """

    connections: tuple[Connection, ...] = ()
    dataflows: tuple[Dataflow, ...] = ()
    invalid: tuple[InvalidDataflow, ...] = ()
    warnings: tuple[Problem, ...] = ()


def _fill_id(data: dict[str, Any], key: str) -> None:
    given, name = data.get(key), data.get("name")
    blank = given is None or (isinstance(given, str) and not given.strip())
    if blank and isinstance(name, str) and name.strip():
        data[key] = id_from_name(name)


def _lift_qualifiers(data: dict[str, Any]) -> None:
    configure = _object_or_none(data.get("configure"))
    if not configure:
        return
    secret = {name for names in (_secret_fields(data)) for name in names}
    for key in ("catalog", "database"):
        if not data.get(key) and isinstance(configure.get(key), str) and key not in secret:
            data[key] = configure[key]


def _secret_fields(data: dict[str, Any]) -> list[tuple[Any, ...]]:
    try:
        fields = to_secrets_ref(data.get("secrets_ref"))
    except PydanticCustomError:
        return []
    return list(fields.values()) if isinstance(fields, dict) else []


def _object_or_none(value: Any) -> dict[str, Any] | None:
    try:
        parsed = to_object(value)
    except PydanticCustomError:
        return None
    return cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else None

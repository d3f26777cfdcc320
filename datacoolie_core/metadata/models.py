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
    object_or_none,
    to_columns,
)
from datacoolie_core.metadata.connection import (
    FORMAT_TYPES,
    Backward,
    Connection,
    ConnectionConfigure,
    ConnectionType,
    Format,
    LookBack,
)
from datacoolie_core.metadata.identity import fill_id
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

LoadType = Literal["append", "overwrite", "full_load", "merge_upsert", "merge_overwrite", "scd2"]


class SchemaHintGroup(Model):
    """Schema hints that all dataflows share which read one table."""

    connection_name: str | None = None
    connection_id: str | None = None
    table_name: TrimmedName
    schema_name: Annotated[str | None, BlankIsNone] = None
    hints: Annotated[tuple[SchemaHint, ...], Listed] = ()


def _find_connection(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, str):
        return value
    context = cast("dict[str, Any] | None", info.context)
    find = context.get("find_connection") if context else None
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


class SourceConfigure(LookBack):
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

    @model_validator(mode="before")
    @classmethod
    def _lift_partition_columns(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        given = cast("dict[str, Any]", data)
        configure = object_or_none(given.get("configure"))
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

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        filled = dict(cast("dict[str, Any]", data))
        fill_id(filled, "dataflow_id")
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

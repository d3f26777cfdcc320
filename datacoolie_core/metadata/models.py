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
    """The connection whose table it is."""
    connection_id: str | None = None
    """The same by id."""
    table_name: TrimmedName
    """The table; case does not matter."""
    schema_name: Annotated[str | None, BlankIsNone] = None
    """Its schema; case does not matter."""
    hints: Annotated[tuple[SchemaHint, ...], Listed] = ()
    """The hints."""


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
    """How files are read; wins over the connection's."""
    datacoolie: Annotated[SourceOptions, AsObject] = Field(default_factory=SourceOptions)
    """Our own keys."""


class Source(Model):
    """What a dataflow reads."""

    connection: ResolvedConnection
    """Where it is: the name of a connection, or one written here."""
    schema_name: Annotated[str | None, BlankIsNone] = None
    """Folder or schema of the table."""
    table: Annotated[str | None, BlankIsNone] = None
    """The table, file or folder; none reads the base path itself."""
    query: Annotated[str | None, BlankIsNone] = None
    """SQL text, or the path of a SQL file."""
    python_function: Annotated[str | None, BlankIsNone] = None
    """The dotted path of a function that returns the rows."""
    watermark_columns: Names = ()
    """Columns whose highest values are remembered."""
    filter_expression: Annotated[str | None, BlankIsNone] = None
    """SQL condition on the rows that are read."""
    configure: Annotated[SourceConfigure, AsObject] = Field(default_factory=SourceConfigure)
    """Options of this source."""

    def look_back(self) -> Backward | None:
        """Return the look-back that applies: the source's own wholly replaces the connection's."""
        return self.configure.look_back() or self.connection.configure.look_back()


class PartitionColumn(Model):
    """A partition column of a destination, computed if it has an expression."""

    column: TrimmedName
    """The column."""
    expression: Annotated[str | None, BlankIsNone] = None
    """SQL that computes it."""


class DestinationConfigure(OpenModel):
    """``configure`` of a destination."""

    write_options: Anything = Field(default_factory=dict)
    """How the table is written; wins over the connection's."""
    merge_options: Anything = Field(default_factory=dict)
    """How it is merged; wins over the connection's."""
    compact_options: Anything = Field(default_factory=dict)
    """How maintenance compacts it: target_size, zorder_columns."""
    cleanup_options: Anything = Field(default_factory=dict)
    """How maintenance cleans it up: retention_hours, remove_orphan_files, checkpoint, log_cleanup."""
    scd2_effective_column: Annotated[str | None, BlankIsNone] = None
    """SQL for the instant from which a version is valid."""
    replace_by_watermark: bool = False
    """Whether merge_overwrite replaces what was read again, in place of the rows of its keys."""
    datacoolie: Annotated[DestinationOptions, AsObject] = Field(default_factory=DestinationOptions)
    """Our own keys."""


class Destination(Model):
    """What a dataflow writes, and how."""

    connection: ResolvedConnection
    """Where it is: the name of a connection, or one written here."""
    table: TrimmedName
    """The table."""
    schema_name: Annotated[str | None, BlankIsNone] = None
    """Folder or schema of the table."""
    load_type: Annotated[LoadType, Lowered] = "append"
    """How rows are written; full_load is overwrite."""
    merge_keys: Names = ()
    """Columns that tell rows apart."""
    partition_columns: Annotated[tuple[PartitionColumn, ...], BeforeValidator(to_columns)] = ()
    """Columns that the table is partitioned by."""
    configure: Annotated[DestinationConfigure, AsObject] = Field(
        default_factory=DestinationConfigure
    )
    """Options of this destination."""

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
    """Our own keys."""


class Dataflow(Model):
    """One load: a source, transforms, a destination."""

    name: Annotated[str | None, BlankIsNone] = None
    """Its name; a dataflow needs one, or an id."""
    dataflow_id: str = ""
    """Its identity: state is kept under it. Derived from the name if not given."""
    workspace_id: str | None = None
    """The tenant, for providers that serve several."""
    description: str | None = None
    """For people."""
    stage: Annotated[str | None, BlankIsNone] = None
    """A name to select by, such as bronze; stages have no order."""
    group_number: int | None = None
    """Dataflows of a group run in the order of execution_order; 0 is a group."""
    execution_order: int | None = None
    """Its place in the group; 0 if not given."""
    processing_mode: Annotated[Literal["batch", "microbatch", "streaming"], Lowered] = "batch"
    """Only batch can be run."""
    is_active: bool = True
    """False skips it."""
    source: Annotated[Source, AsObject]
    """What is read."""
    destination: Annotated[Destination, AsObject]
    """What is written, and how."""
    transform: Annotated[Transform, AsObject] = Field(default_factory=Transform)
    """What happens in between."""
    configure: Annotated[DataflowConfigure, AsObject] = Field(default_factory=DataflowConfigure)
    """Options of this dataflow."""

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
    """How people name it, or the file."""
    dataflow_id: str
    """Its id, derived where it has none."""
    stage: str | None = None
    """Its stage, if it says one."""
    problems: tuple[Problem, ...] = ()
    """What is wrong."""


class Metadata(Model):
    """A validated scope: everything that a provider loaded, inactive entries too.

    ``schema_hints`` of shared groups are already attached to the dataflows that use them.
    """

    connections: tuple[Connection, ...] = ()
    """All valid connections."""
    dataflows: tuple[Dataflow, ...] = ()
    """All valid dataflows."""
    invalid: tuple[InvalidDataflow, ...] = ()
    """What was kept apart."""
    warnings: tuple[Problem, ...] = ()
    """What does not stop a run."""
    origins: dict[str, str] = Field(default_factory=dict)
    """Dataflow id → the file (or other source) that it was read from."""
    environment: str | None = None
    """Whose overlays are laid over it."""

"""What a dataflow looks like in Dagster: one class to subclass, one asset spec a dataflow."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dagster as dg

from datacoolie_core.metadata.identity import table_path
from datacoolie_core.metadata.models import Source
from datacoolie_core.plan.columns import clean_name
from datacoolie_core.plan.selection import skip_reason
from datacoolie_dagster.column_lineage import column_lineage
from datacoolie_dagster.names import key_parts, safe_name, safe_tag, source_key_parts

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Dataflow, Destination
    from datacoolie_core.plan.lineage import ExternalSource

_EDGE_ROWS = 200
_NOT_IN_CODE = (
    "description",
    "is_active",
    "stage",
    "group_number",
    "execution_order",
    "extensions",
)


@dataclass(frozen=True)
class UpstreamAsset:
    """Why a dataflow waits for an asset.

    Attributes:
        key: The asset.
        origin: ``order``, ``declared``, ``lineage``, or ``source`` for one that no dataflow writes.
        detail: What says so: a table, a path, a bucket.
    """

    key: dg.AssetKey
    origin: str
    detail: str = ""


@dataclass(frozen=True)
class DataflowTranslatorData:
    """All that a translator may want to know about a dataflow.

    Attributes:
        dataflow: The dataflow, as in the metadata.
        upstream: What it waits for, and why.
        deps: The same as Dagster dependencies, with partition mappings.
        partitions_def: Its replay chunks.
        automation_condition: From its ``automation`` option.
        shard: Which of the jobs takes it, where ``job_num`` jobs share the metadata.
        reads: The one asset that it reads, for column lineage; None if there are several.
    """

    dataflow: Dataflow
    upstream: Sequence[UpstreamAsset] = ()
    deps: Sequence[dg.AssetDep] = ()
    partitions_def: dg.PartitionsDefinition | None = None
    automation_condition: Any = None
    shard: int = 0
    reads: dg.AssetKey | None = None


@dataclass(frozen=True)
class SourceTranslatorData:
    """A source that no dataflow writes.

    Attributes:
        external: What it is: its connection, and the parts that name it.
        readers: The dataflows that read it.
    """

    external: ExternalSource
    readers: Sequence[Dataflow] = ()


class DagsterDataCoolieTranslator:
    """Turns dataflows into asset specs; subclass it to change any of it.

    A subclass usually takes the spec as it is and replaces attributes::

        class MyTranslator(DagsterDataCoolieTranslator):
            def get_asset_spec(self, data):
                spec = super().get_asset_spec(data)
                return spec.replace_attributes(group_name="lake")

    The key may be changed too: what depends on the dataflow follows it.
    """

    def get_asset_spec(self, data: DataflowTranslatorData) -> dg.AssetSpec:
        """Return the asset of a dataflow.

        Args:
            data: The dataflow and its place in the graph.
        """
        dataflow = data.dataflow
        return dg.AssetSpec(
            key=dg.AssetKey(key_parts(dataflow)),
            deps=data.deps,
            description=describe(dataflow),
            metadata=definition_metadata(data),
            group_name=group_name(dataflow.stage),
            code_version=code_version(dataflow),
            owners=list(dataflow.options.owners),
            tags=definition_tags(data),
            kinds={dataflow.destination.connection.format, "polars"},
            partitions_def=data.partitions_def,
            automation_condition=data.automation_condition,
        )

    def get_source_asset_spec(self, data: SourceTranslatorData) -> dg.AssetSpec:
        """Return the external asset of a source that no dataflow writes.

        Args:
            data: The source.
        """
        external = data.external
        connection, names = external.connection, external.key[1:]
        base = connection.configure.base_path
        parts = [base.rstrip("/"), *names] if base else []
        return dg.AssetSpec(
            key=dg.AssetKey(source_key_parts(external.key)),
            description=(
                f"A source that no dataflow writes: {external.kind} `{'/'.join(names)}` "
                f"of connection `{connection.name}`."
            ),
            group_name=safe_name(connection.name, connection.name),
            kinds={connection.format},
            metadata={"dagster/uri": "/".join(parts)} if parts else {},
        )


def group_name(stage: str | None) -> str | None:
    """Return the asset group of a stage; None is Dagster's default group."""
    return safe_name(stage, stage) if stage else None


def code_version(dataflow: Dataflow) -> str:
    """Return a hash of what decides which rows a dataflow writes."""
    document = dataflow.model_dump(mode="json", exclude=set(_NOT_IN_CODE))
    options = document["configure"]["datacoolie"]
    for name in ("owners", "tags", "cron", "automation", "freshness", "checks", "granularity"):
        options.pop(name, None)
    text = json.dumps(document, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def definition_tags(data: DataflowTranslatorData) -> dict[str, str]:
    """Return the tags of a dataflow: the user's, and those that selections use."""
    dataflow = data.dataflow
    tags = {_tag_key(name): safe_tag(value) for name, value in dataflow.options.tags.items()}
    tags["datacoolie/dataflow_id"] = safe_tag(dataflow.dataflow_id)
    if dataflow.group_number is not None:
        tags["datacoolie/group"] = str(dataflow.group_number)
        tags["datacoolie/order"] = str(dataflow.execution_order or 0)
    tags["datacoolie/shard"] = str(data.shard)
    return tags


def _tag_key(name: str) -> str:
    space, slash, rest = name.rpartition("/")
    return f"{safe_tag(space)}/{safe_tag(rest)}" if slash and space else safe_tag(rest)


def describe(dataflow: Dataflow) -> str:
    """Return a dataflow's description as Markdown: its own text, then what it does."""
    source, destination = dataflow.source, dataflow.destination
    lines = [
        ("Reads", _end(source)),
        ("Writes", f"{_end(destination)}, load type `{destination.load_type}`"),
        ("Merge keys", _names(destination.merge_keys)),
        ("Watermark", _names(source.watermark_columns)),
        ("Partitioned by", _names([one.column for one in destination.partition_columns])),
        ("Query", f"`{source.query}`" if source.query and "\n" not in source.query else ""),
    ]
    table = "\n".join(f"- **{label}:** {text}" for label, text in lines if text)
    reason = skip_reason(dataflow)
    inactive = f"**It is not loaded: {reason}.**\n\n" if reason else ""
    own = f"{dataflow.description.strip()}\n\n" if dataflow.description else ""
    return f"{inactive}{own}{table}"


def _names(columns: Sequence[str]) -> str:
    return ", ".join(f"`{column}`" for column in columns)


def _end(end: Source | Destination) -> str:
    connection = end.connection
    if isinstance(end, Source) and end.query:
        what = "a query"
    elif isinstance(end, Source) and end.python_function:
        what = f"`{end.python_function}`"
    else:
        what = f"`{table_path(end) or end.table or connection.name}`"
    return f"{what} ({connection.format}, connection `{connection.name}`)"


def definition_metadata(data: DataflowTranslatorData) -> dict[str, Any]:
    """Return what the metadata says of a dataflow's table, and of what it waits for."""
    dataflow = data.dataflow
    source, destination = dataflow.source, dataflow.destination
    found: dict[str, Any] = {
        "datacoolie/dataflow_id": dataflow.dataflow_id,
        "datacoolie/load_type": destination.load_type,
        **_uri_metadata(destination),
    }
    if name := table_name(destination):
        found["dagster/table_name"] = name
    for label, names in (
        ("merge_keys", destination.merge_keys),
        ("watermark_columns", source.watermark_columns),
        ("partition_columns", tuple(one.column for one in destination.partition_columns)),
    ):
        if names:
            found[f"datacoolie/{label}"] = ", ".join(names)
    if columns := hinted_columns(dataflow):
        found["dagster/column_schema"] = dg.TableSchema(columns=columns)
        lineage = column_lineage(dataflow, data.reads, [column.name for column in columns])
        if lineage is not None:
            found["dagster/column_lineage"] = lineage
    if dataflow.options.automation and data.automation_condition is None:
        found["datacoolie/automation"] = (
            f"{dataflow.options.automation} is not attached: Dagster would ask for the last "
            "partition, and that is a replay. Schedule the job "
            f"{group_name(dataflow.stage) or 'default'}_incremental instead."
        )
    if data.upstream:
        found["datacoolie/edges"] = edge_table(data.upstream)
    return found


def table_name(end: Source | Destination) -> str | None:
    """Return the dotted name of a table, in lower case as Dagster compares it.

    A table without a catalog starts with its connection, so that no two tables share a name.
    """
    connection = end.connection
    if not end.table:
        return None
    start = (connection.catalog or connection.name, connection.database)
    return ".".join(part for part in (*start, end.schema_name, end.table) if part).lower()


def _uri_metadata(end: Source | Destination) -> Mapping[str, str]:
    path = table_path(end)
    return {"dagster/uri": path} if path else {}


def hinted_columns(dataflow: Dataflow) -> list[dg.TableColumn]:
    """Return the columns whose type the schema hints say, by their names in the destination."""
    transform = dataflow.transform
    renamed = {old.lower(): new for old, new in transform.rename_columns.items()}
    kept = {name.lower() for name in transform.select_columns}
    dropped = {name.lower() for name in transform.drop_columns}
    columns: list[dg.TableColumn] = []
    for hint in sorted(transform.schema_hints, key=lambda one: one.ordinal_position):
        name = hint.column_name.lower()
        if hint.is_active and name not in dropped and (not kept or name in kept):
            kind = hint.data_type
            if hint.precision is not None:
                kind = f"{kind}({hint.precision},{hint.scale or 0})"
            target = renamed.get(name, hint.column_name)
            mode = transform.configure.column_name_mode
            columns.append(dg.TableColumn(clean_name(target, mode), kind))
    return columns


def edge_table(upstream: Sequence[UpstreamAsset]) -> dg.TableMetadataValue:
    """Return what a dataflow waits for as a table: the asset, where that comes from, why."""
    shown = [
        dg.TableRecord(
            {"upstream": one.key.to_user_string(), "origin": one.origin, "detail": one.detail}
        )
        for one in upstream[:_EDGE_ROWS]
    ]
    if len(upstream) > _EDGE_ROWS:
        rest = f"and {len(upstream) - _EDGE_ROWS} more"
        shown.append(dg.TableRecord({"upstream": rest, "origin": "", "detail": ""}))
    columns = [dg.TableColumn(name) for name in ("upstream", "origin", "detail")]
    return dg.MetadataValue.table(shown, schema=dg.TableSchema(columns=columns))

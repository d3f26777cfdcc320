"""Asset checks: whether the newest load had to put rows into quarantine."""

# no `from __future__ import annotations`: Dagster reads the annotations of checks
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from datacoolie_dagster.project import Loaded, Project
from datacoolie_dagster.results import BAD_VALUES

CHECK = "no_rows_in_quarantine"
_REJECTED = "datacoolie/rows_rejected"
_RECENT = 200
"""Events that are looked through for those of the newest load: a replay has one a partition."""
_SAMPLED = 10
_WARN, _ERROR = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR


def build_quarantine_checks(
    project: Project, *, blocking: bool = False
) -> list[dg.AssetChecksDefinition]:
    """Return a check for each dataflow with ``on_cast_error: quarantine``.

    It passes if the newest load has put no row into quarantine. Otherwise it warns, with counts by
    column and reason and some of the rows, in which masked columns do not show.

    Args:
        project: The metadata and its assets.
        blocking: Whether it fails instead of warning, so that what depends on the asset is not
            loaded in the same run.
    """
    wanted = (
        one for one in project.loaded.values() if one.dataflow.options.on_cast_error == "quarantine"
    )
    return [_check(one, blocking=blocking) for one in wanted]


def _check(loaded: Loaded, *, blocking: bool) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=loaded.key,
        name=CHECK,
        blocking=blocking,
        description="The newest load has put no row into quarantine.",
    )
    def no_rows_in_quarantine(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        loads = newest_load(context.instance, loaded.key)
        # Dagster lets a warning of a blocking check pass
        return _result(loads, severity=_ERROR if blocking else _WARN)

    return no_rows_in_quarantine


def newest_load(
    instance: dg.DagsterInstance, key: dg.AssetKey
) -> list[Mapping[str, dg.MetadataValue[Any]]]:
    """Return the metadata of an asset's newest load: one entry, or one a partition.

    Args:
        instance: Holds the events.
        key: The asset.
    """
    found: dict[str | None, Mapping[str, dg.MetadataValue[Any]]] = {}
    run_id: str | None = None
    for record in instance.fetch_materializations(key, limit=_RECENT).records:
        event = record.asset_materialization
        # marks of partitions that a load covers carry no counts
        if event is None or _REJECTED not in event.metadata:
            continue
        run_id = run_id or record.run_id
        if record.run_id != run_id:
            break
        # a chunk is recorded when it is durable, and once more when its step ends
        found.setdefault(event.partition, event.metadata)
    return list(found.values())


def _result(
    loads: Sequence[Mapping[str, dg.MetadataValue[Any]]], severity: dg.AssetCheckSeverity
) -> dg.AssetCheckResult:
    rows = sum(int(one[_REJECTED].value or 0) for one in loads)
    if not rows:
        said = "no row was quarantined" if loads else "nothing was loaded yet"
        return dg.AssetCheckResult(
            passed=True, description=said, metadata={"datacoolie/rows_rejected": 0}
        )
    told = [one[BAD_VALUES].value for one in loads if BAD_VALUES in one]
    return dg.AssetCheckResult(
        passed=False,
        severity=severity,
        description=f"{rows} {'row is' if rows == 1 else 'rows are'} in quarantine",
        metadata={
            "datacoolie/rows_rejected": rows,
            "datacoolie/bad_values": _counted(told),
            "datacoolie/sample": _sample(told),
        },
    )


def _counted(told: Sequence[Any]) -> dg.MetadataValue[Any]:
    counts: dict[tuple[str, str], int] = {}
    for one in told:
        for column, reasons in one["columns"].items():
            for reason, count in reasons.items():
                counts[column, reason] = counts.get((column, reason), 0) + count
    return dg.MetadataValue.table(
        [
            dg.TableRecord({"column": column, "reason": reason, "values": count})
            for (column, reason), count in sorted(counts.items(), key=_most_first)
        ],
        dg.TableSchema(
            [
                dg.TableColumn("column"),
                dg.TableColumn("reason"),
                dg.TableColumn("values", "int"),
            ]
        ),
    )


def _most_first(counted: tuple[tuple[str, str], int]) -> tuple[int, tuple[str, str]]:
    return -counted[1], counted[0]


def _sample(told: Sequence[Any]) -> dg.MetadataValue[Any]:
    rows = [row for one in told for row in one["sample"]][:_SAMPLED]
    names = ("column", "value", "reason", "source_file", "row")
    return dg.MetadataValue.table(
        [dg.TableRecord({name: row.get(name) for name in names}) for row in rows],
        dg.TableSchema([dg.TableColumn(name) for name in names]),
    )

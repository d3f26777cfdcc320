"""Which source columns a destination's columns come from, as far as the metadata says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import dagster as dg

from datacoolie_core.plan.columns import NameMode, clean_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from datacoolie_core.metadata.models import Dataflow


def column_lineage(
    dataflow: Dataflow, upstream: dg.AssetKey | None, columns: Iterable[str]
) -> dg.TableColumnLineage | None:
    """Return where columns come from; None if nothing says it, as for a query.

    Args:
        dataflow: Its transforms decide.
        upstream: The one asset that it reads.
        columns: Names in the destination. Those that a load writes by itself, ``__…``, come from
            nowhere.
    """
    source = dataflow.source
    if upstream is None or source.query or source.python_function:
        return None
    origins = _Origins(dataflow)
    found = {
        column: [
            dg.TableColumnDep(asset_key=upstream, column_name=name) for name in origins.of(column)
        ]
        for column in columns
        if not column.startswith("__")
    }
    return dg.TableColumnLineage({name: deps for name, deps in found.items() if deps})


class _Origins:
    def __init__(self, dataflow: Dataflow) -> None:
        transform = dataflow.transform
        self._mode: NameMode = transform.configure.column_name_mode
        named = [hint.column_name for hint in transform.schema_hints]
        named += [*transform.select_columns, *dataflow.source.watermark_columns]
        self._plain: Mapping[str, str] = {
            **{self._clean(name): name for name in named},
            **{self._clean(new): old for old, new in transform.rename_columns.items()},
        }
        self._computed: dict[str, list[str]] = {}
        for one in transform.additional_columns:
            self._computed[self._clean(one.column)] = list(_columns_in(one.expression))
        for one in transform.hash_columns:
            self._computed[self._clean(one.target_column)] = list(one.columns)
        for one in dataflow.destination.partition_columns:
            if one.expression:
                self._computed[self._clean(one.column)] = list(_columns_in(one.expression))

    def _clean(self, name: str) -> str:
        return clean_name(name, self._mode)

    def of(self, column: str, seen: frozenset[str] = frozenset()) -> list[str]:
        """Return the source columns of a destination's column, each once."""
        if column not in self._computed or column in seen:
            return [self._plain.get(column, column)]
        inside = self._computed[column]
        found = (one for name in inside for one in self.of(self._clean(name), seen | {column}))
        return list(dict.fromkeys(found))


def _columns_in(expression: str) -> Iterator[str]:
    """Yield the columns that a SQL expression names; none if it can't be read here."""
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        tree: Any = parse_one(expression)
    except SqlglotError:
        return
    yield from dict.fromkeys(column.name for column in tree.find_all(exp.Column))

"""``WatermarkManager``: the state of dataflows, for people who correct it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.plan.columns import DATE_FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.plan.windows import Scalar
    from datacoolie_core.run.context import RunContext
    from datacoolie_core.run.import_watermarks import Found, Imported
    from datacoolie_core.run.watermark_values import Kind
    from datacoolie_core.run.watermarks import Shown
    from datacoolie_core.state.record import StateRecord
    from datacoolie_core.state.stores import StateStore


class WatermarkManager:
    """Shows, sets, resets and imports watermarks.

    :attr:`DataCoolieDriver.watermarks` makes one. Given to another driver, its store is used.

    Args:
        store: Where the state is kept.
        context: Gives what an operation needs.
    """

    def __init__(self, store: StateStore, context: Callable[[], RunContext] | None = None) -> None:
        self.store = store
        self._make = context

    def show(self, dataflow: Dataflow) -> Shown:
        """Return what store and destination say of a dataflow."""
        from datacoolie_core.run.watermarks import show

        return show(dataflow, self._context())

    def set(self, dataflow: Dataflow, values: Mapping[str, Scalar]) -> StateRecord:
        """Make a dataflow go on from these values.

        Raises:
            BusyError: The dataflow is running.
            WatermarkError: It has no such watermark column.
        """
        from datacoolie_core.run.watermarks import set_watermark

        return set_watermark(dataflow, values, self._context())

    def reset(self, dataflow: Dataflow, *, keep_rows: bool = False) -> StateRecord:
        """Make a dataflow's next load read its source from the beginning.

        Args:
            dataflow: The dataflow.
            keep_rows: What an append has loaded stays; otherwise the next load replaces it.

        Raises:
            BusyError: The dataflow is running.
            WatermarkError: Replacing the table would take the rows of other dataflows.
        """
        from datacoolie_core.run.watermarks import reset_watermark

        return reset_watermark(dataflow, self._context(), keep_rows=keep_rows)

    def take_over(
        self,
        found: Sequence[Found],
        dataflows: Sequence[Dataflow],
        *,
        dry_run: bool = False,
        force: bool = False,
    ) -> list[Imported]:
        """Import watermarks of the DataCoolie framework (docs/watermarks.md)."""
        from datacoolie_core.run.import_watermarks import import_watermarks

        return import_watermarks(found, dataflows, self._context(), dry_run=dry_run, force=force)

    def parse(
        self,
        text: str,
        column: str,
        dataflow: Dataflow,
        kind: Kind | None = None,
    ) -> Scalar:
        """Return a value that somebody wrote, in the type of its column.

        Raises:
            WatermarkError: The text is no value of the type, or nothing says the type.
        """
        if column == DATE_FOLDER:
            return text
        from datacoolie_core.run.watermark_values import typed_value

        shown = self.show(dataflow).effective
        present: Mapping[str, Scalar] = shown.watermark if shown else {}
        return typed_value(text, column, dataflow, present, self._context(), kind)

    def _context(self) -> RunContext:
        if self._make is None:
            raise TypeError("this WatermarkManager belongs to no driver")
        return self._make()

"""The component: a folder of metadata and a ``defs.yaml`` are a part of a Dagster project."""

# no `from __future__ import annotations`: Dagster reads the types of attributes
from collections.abc import Sequence
from dataclasses import dataclass

import dagster as dg

from datacoolie_core.metadata.models import Metadata
from datacoolie_dagster.component_base import DataCoolieComponentBase, component_folder
from datacoolie_dagster.scaffold import DataCoolieScaffolder


@dg.scaffold_with(DataCoolieScaffolder)
@dataclass(kw_only=True)
class DataCoolieComponent(DataCoolieComponentBase):
    """Load Delta tables as DataCoolie metadata says: each dataflow is an asset.

    Attributes:
        metadata: A file, a folder, or several: relative to the component's folder, else to the
            project's.
    """

    metadata: str | list[str] = "metadata"

    def load_metadata(self, context: dg.ComponentLoadContext) -> Metadata | Sequence[str]:
        """Return the metadata, or the paths of its files; override it to get it elsewhere.

        Every process of a run calls it, each step's too: what is asked over a network belongs
        into a `StateBackedDataCoolieComponent`.

        Args:
            context: Where the component is.
        """
        paths = [self.metadata] if isinstance(self.metadata, str) else self.metadata
        folder = component_folder(context)
        beside = {path: folder / path for path in paths}
        return [str(full) if full.exists() else path for path, full in beside.items()]

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return the definitions; Dagster calls it.

        Args:
            context: Where the component is.
        """
        return self.definitions(context, self.load_metadata(context))

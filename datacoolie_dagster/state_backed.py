"""The component for metadata that is asked for once: a database's, an API's."""

# no `from __future__ import annotations`: Dagster reads the types of attributes
import json
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, cast

import dagster as dg
from dagster.components import (
    DefsStateConfig,
    DefsStateConfigArgs,
    ResolvedDefsStateConfig,
    StateBackedComponent,
)

from datacoolie_core.errors import MetadataError, SettingsError
from datacoolie_core.metadata.loader import metadata_from_documents
from datacoolie_core.metadata.models import Metadata
from datacoolie_core.redaction import looks_secret
from datacoolie_dagster.component_base import DataCoolieComponentBase
from datacoolie_dagster.names import short_hash
from datacoolie_dagster.state_backed_secrets import inline_secrets

_VERSION = 1
_SHARED = {one.name for one in fields(DataCoolieComponentBase)} - {"environment"}


@dataclass(kw_only=True)
class StateBackedDataCoolieComponent(StateBackedComponent, DataCoolieComponentBase):
    """Load Delta tables by metadata of a database or an API, which is asked once.

    A subclass says how in `fetch_metadata`. ``dg utils refresh-defs-state`` calls it and keeps
    the answer; every process that loads definitions, each step's too, reads what was kept.

    Attributes:
        defs_state: Where Dagster keeps the answer; by default in a file beside the definitions.
    """

    defs_state: ResolvedDefsStateConfig = field(
        default_factory=DefsStateConfigArgs.local_filesystem
    )

    @abstractmethod
    def fetch_metadata(self) -> Mapping[str, Mapping[str, Any]]:
        """Return metadata documents by the names that messages call them.

        A document is what a metadata file holds: connections, dataflows, schema hints, in the
        types of JSON. Secrets are references, ``secrets_ref``: what is returned is kept on disk.
        Only the component's attributes are there to decide by: no definitions are loaded.
        """

    @property
    def defs_state_config(self) -> DefsStateConfig:
        """Where Dagster keeps the answer, under a name of its own for each place asked."""
        return DefsStateConfig.from_args(self.defs_state, default_key=self.default_state_key())

    def default_state_key(self) -> str:
        """Return the name of the answer where ``defs_state`` gives none.

        It is the class with a hash of the subclass's own attributes, and the environment: two
        components that ask the same are one. What looks like a secret has no part in it.
        """
        asked: dict[str, Any] = {
            one.name: getattr(self, one.name)
            for one in fields(self)
            if one.name not in {*_SHARED, "defs_state"} and not looks_secret(one.name)
        }
        plain = {name: one for name, one in asked.items() if isinstance(one, str | int | float)}
        return f"{type(self).__name__}[{short_hash(json.dumps(plain, sort_keys=True))}]"

    def write_state_to_path(self, state_path: Path) -> None:
        """Ask for the metadata and keep it, if it is right; Dagster calls it.

        Args:
            state_path: The file.

        Raises:
            MetadataError: The metadata is wrong, or holds a secret in the open.
        """
        documents = {name: dict(held) for name, held in self.fetch_metadata().items()}
        found = [one for name, held in documents.items() for one in inline_secrets(name, held)]
        if found:
            raise MetadataError(found)
        self._validated(documents)
        state_path.write_text(_to_json(documents), "utf-8")

    def build_defs_from_state(
        self, context: dg.ComponentLoadContext, state_path: Path | None
    ) -> dg.Definitions:
        """Return the definitions of what was kept, none before the first refresh.

        Args:
            context: Where the component is.
            state_path: The file; None if nothing was kept yet.
        """
        if state_path is None:
            return dg.Definitions()
        return self.definitions(context, self._validated(_documents(state_path)))

    def _validated(self, documents: Mapping[str, Mapping[str, Any]]) -> Metadata:
        return metadata_from_documents(documents.items(), on_invalid=self.on_invalid)


def _to_json(documents: Mapping[str, Mapping[str, Any]]) -> str:
    try:
        return json.dumps({"version": _VERSION, "documents": documents}, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise SettingsError(
            f"the metadata holds what JSON does not: {error}",
            place="fetch_metadata",
            remedy="Return text, numbers, booleans, null, lists and mappings.",
        ) from error


def _documents(state_path: Path) -> dict[str, dict[str, Any]]:
    try:
        kept: Any = json.loads(state_path.read_text("utf-8"))
        right = kept["version"] == _VERSION and isinstance(kept["documents"], dict)
    except (ValueError, KeyError, TypeError):
        right, kept = False, None
    if not right:
        raise SettingsError(
            "this is no metadata that this version keeps",
            place=str(state_path),
            remedy="Run dg utils refresh-defs-state.",
        )
    return cast("dict[str, dict[str, Any]]", kept["documents"])

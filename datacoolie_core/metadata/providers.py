"""Providers: where the metadata of a driver comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.errors import LifecycleError, SettingsError
from datacoolie_core.metadata.loader import load_metadata

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacoolie_core.metadata.models import Metadata
    from datacoolie_core.metadata.scope import OnInvalid


class FileProvider:
    """Metadata from JSON and YAML files and Excel workbooks.

    Args:
        config_path: One file or folder, or several.
        metadata_base_path: The folder that holds the metadata; instead of ``config_path``.
        project_dir: What relative paths are relative to; the working directory if None.
        sql_base_path: The root of SQL files, or several.
        strict: False turns unknown keys alone into warnings.
        on_invalid: ``quarantine`` keeps the valid dataflows.
        environment: Whose overlays are laid over the metadata; None reads no overlay.

    Raises:
        SettingsError: Both paths are given, or neither.
    """

    def __init__(
        self,
        config_path: str | Sequence[str] | None = None,
        *,
        metadata_base_path: str | None = None,
        project_dir: str | None = None,
        sql_base_path: str | Sequence[str] = (),
        strict: bool = True,
        on_invalid: OnInvalid = "fail",
        environment: str | None = None,
    ) -> None:
        if (config_path is None) == (metadata_base_path is None):
            raise SettingsError(
                "give either config_path or metadata_base_path",
                place="FileProvider",
                code="conflicting_paths",
            )
        given = config_path if config_path is not None else metadata_base_path
        self.paths = (given,) if isinstance(given, str) else tuple(given or ())
        self.metadata_base_path = metadata_base_path
        self.sql_base_path = (sql_base_path,) if isinstance(sql_base_path, str) else sql_base_path
        self._project_dir = project_dir
        self._strict = strict
        self._on_invalid: OnInvalid = on_invalid
        self._environment = environment
        self._loaded: Metadata | None = None

    def initialize(self) -> None:
        """Read and validate the whole scope, inactive entries too.

        Raises:
            MetadataError: Something is wrong; it carries all problems.
            SettingsError: There is no such environment.
        """
        self._loaded = load_metadata(
            self.paths,
            project_dir=self._project_dir,
            strict=self._strict,
            on_invalid=self._on_invalid,
            environment=self._environment,
        )

    def load(self) -> Metadata:
        """Return the scope that `initialize` read.

        Raises:
            LifecycleError: It was not initialized.
        """
        if self._loaded is None:
            raise LifecycleError(
                "the provider was not initialized",
                place="FileProvider",
                remedy="Call initialize().",
            )
        return self._loaded

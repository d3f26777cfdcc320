"""From what a driver is given to what it works with; conflicts fail before anything is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from datacoolie_core import storage
from datacoolie_core.errors import SettingsError
from datacoolie_core.metadata.providers import FileProvider
from datacoolie_core.platforms import LocalPlatform, PolarsEngine
from datacoolie_core.settings import default_state

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Metadata
    from datacoolie_core.metadata.scope import OnInvalid


class SecretProvider(Protocol):
    """Gives secrets to connections whose ``secrets_ref`` names no other resolver."""

    def get_secret(self, source: str, key: str) -> str | None:
        """Return a secret, None if there is none."""
        ...


class MetadataProvider(Protocol):
    """Gives the metadata; reads nothing before `initialize`."""

    def initialize(self) -> None:
        """Read and validate the whole scope."""
        ...

    def load(self) -> Metadata:
        """Return the scope that `initialize` read."""
        ...


@dataclass(frozen=True)
class Given:
    """The arguments of a driver that say where things are."""

    project_dir: str
    metadata: Metadata | str | Sequence[str] | None = None
    engine: PolarsEngine | None = None
    platform: LocalPlatform | None = None
    metadata_provider: MetadataProvider | None = None
    metadata_base_path: str | None = None
    artifact_base_path: str | None = None
    state_base_path: str | None = None
    sql_base_path: str | Sequence[str] = ()
    log_base_path: str | None = None
    secret_provider: SecretProvider | None = None
    resolvers: Mapping[str, Any] = field(default_factory=dict[str, Any])
    on_invalid: OnInvalid = "fail"
    environment: str | None = None


@dataclass(frozen=True)
class Assembly:
    """What a driver works with; no file has been read.

    Attributes:
        engine: Runs the dataflows.
        platform: Where.
        provider: Of the metadata; None without any: then dataflows are given one by one.
        metadata: The scope, if it was given whole.
        artifact_root: Root of ``artifact:/…``; None is the project.
        sql_roots: Roots of SQL files.
        state: Where the state is kept.
        log_root: Where logs go; None writes none.
        resolvers: Secret resolvers by prefix.
    """

    engine: PolarsEngine
    platform: LocalPlatform
    provider: MetadataProvider | None
    metadata: Metadata | None
    artifact_root: str | None
    sql_roots: tuple[str, ...]
    state: str
    log_root: str | None
    resolvers: Mapping[str, Any]


def assemble(given: Given) -> Assembly:
    """Return what a driver works with.

    Raises:
        SettingsError: Two arguments contradict each other.
    """
    engine = given.engine or PolarsEngine(given.platform)
    platform = _platform(given, engine)
    provider, metadata = _metadata(given)
    return Assembly(
        engine=engine,
        platform=platform,
        provider=provider,
        metadata=metadata,
        artifact_root=_resolved(given, given.artifact_base_path),
        sql_roots=_sql_roots(given, provider),
        state=given.state_base_path or default_state(_environment(given)),
        log_root=_resolved(given, given.log_base_path),
        resolvers=_resolvers(given, platform),
    )


def _environment(given: Given) -> str | None:
    scope = given.metadata
    known = None if scope is None or isinstance(scope, str | Sequence) else scope.environment
    return given.environment or known


def _platform(given: Given, engine: PolarsEngine) -> LocalPlatform:
    both = given.platform is not None and engine.platform is not None
    if both and given.platform is not engine.platform:
        raise _conflict(
            "platform", "the engine has another platform", "Give one platform, to the engine alone."
        )
    return given.platform or engine.platform or LocalPlatform()


def _metadata(given: Given) -> tuple[MetadataProvider | None, Metadata | None]:
    provider, base = given.metadata_provider, given.metadata_base_path
    scope = given.metadata
    sources = [
        name
        for name, value in (
            ("metadata", scope),
            ("metadata_provider", provider),
            ("metadata_base_path", base),
        )
        if value is not None
    ]
    if provider is not None and base is not None:
        _check_base(given, provider, base)
    elif len(sources) > 1:
        raise _conflict(" and ".join(sources), "each names the metadata", "Give one of them.")
    if provider is not None:
        return provider, None
    paths = _paths(given)
    if paths is None:
        return None, None if scope is None or isinstance(scope, str | Sequence) else scope
    made = FileProvider(
        paths,
        project_dir=given.project_dir,
        on_invalid=given.on_invalid,
        environment=given.environment,
    )
    return made, None


def _paths(given: Given) -> list[str] | None:
    if isinstance(given.metadata, str):
        return [given.metadata]
    if isinstance(given.metadata, Sequence):
        return list(given.metadata)
    if given.metadata_base_path is not None:
        return [given.metadata_base_path]
    if given.metadata is None and given.artifact_base_path is not None:
        return [storage.join(given.artifact_base_path, "metadata")]
    return None


def _check_base(given: Given, provider: MetadataProvider, base: str) -> None:
    """A provider of files may be told its own root again, and no other."""
    if not isinstance(provider, FileProvider):
        raise _conflict(
            "metadata_base_path",
            f"{type(provider).__name__} takes no folder",
            "Leave metadata_base_path out.",
        )
    if provider.metadata_base_path is None:
        raise _conflict(
            "metadata_base_path",
            "the FileProvider has a config_path",
            "Leave metadata_base_path out, or make the provider with it.",
        )
    if _resolved(given, provider.metadata_base_path) != _resolved(given, base):
        raise _conflict(
            "metadata_base_path",
            f"the FileProvider reads {provider.metadata_base_path}",
            "Leave metadata_base_path out.",
        )


def _sql_roots(given: Given, provider: MetadataProvider | None) -> tuple[str, ...]:
    """Return the SQL roots: the provider's where it has some, else the driver's."""
    ours = [given.sql_base_path] if isinstance(given.sql_base_path, str) else given.sql_base_path
    theirs: Any = getattr(provider, "sql_base_path", None) or ()
    theirs = [theirs] if isinstance(theirs, str) else theirs
    mine = tuple(storage.resolve(path, given.project_dir) for path in ours)
    own = tuple(storage.resolve(path, given.project_dir) for path in theirs)
    same = sorted(path.rstrip("/") for path in mine) == sorted(path.rstrip("/") for path in own)
    if mine and own and not same:
        raise _conflict(
            "sql_base_path",
            f"the provider has {', '.join(own)}, the driver {', '.join(mine)}",
            "Give the SQL roots once.",
        )
    return own or mine


def _resolvers(given: Given, platform: LocalPlatform) -> dict[str, Any]:
    """Return resolvers by prefix; a provider of secrets serves sources without a prefix."""
    found = dict(given.resolvers)
    secrets = given.secret_provider
    if secrets is not None and secrets is not platform:
        found.setdefault("", secrets.get_secret)
    return found


def _resolved(given: Given, path: str | None) -> str | None:
    return None if path is None else storage.resolve(path, given.project_dir)


def _conflict(place: str, problem: str, remedy: str) -> SettingsError:
    return SettingsError(problem, place=place, remedy=remedy, code="conflicting_arguments")

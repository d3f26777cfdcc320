"""Which dataflows of a graph are meant: stages, patterns, shards."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from datacoolie_core.errors import SelectionError
from datacoolie_core.plan.declared import names_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from datacoolie_core.metadata.models import Dataflow, InvalidDataflow
    from datacoolie_core.plan.graph import Graph

_WILD = re.compile(r"[*?]")


@dataclass(frozen=True)
class Selection:
    """The dataflows that are meant.

    Attributes:
        dataflows: In the order of the graph; inactive ones too.
        skip_reasons: Dataflow id → why it will not run.
        shard: How many jobs there are and which one this is; None without sharding.
        invalid: Dataflows that are meant and can't be loaded at all.
    """

    dataflows: tuple[Dataflow, ...]
    skip_reasons: Mapping[str, str] = field(default_factory=dict[str, str])
    shard: tuple[int, int] | None = None
    invalid: tuple[InvalidDataflow, ...] = ()


def select(
    graph: Graph,
    *,
    stages: str | Sequence[str] | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    names: Sequence[str] = (),
    connections: Sequence[str] = (),
    groups: Sequence[int] = (),
    dataflows: Sequence[str] | None = None,
    shard: tuple[int, int] | None = None,
) -> Selection:
    """Return the dataflows that all given conditions hold for.

    A pattern is a name, ``stage/name`` or id; ``*`` and ``?`` are wild; ``+`` in front adds
    everything that it waits for, ``+`` behind everything that waits for it, declared order
    included.

    Args:
        graph: All dataflows.
        stages: A union: a name, a comma text, or a list of them; None is all.
        include: Patterns, a union; empty is all.
        exclude: Patterns, taken away.
        names: Names, ``stage/name`` or ids, a union; without wildcards.
        connections: Names of connections, a union; as source or destination.
        groups: Group numbers, a union.
        dataflows: Exactly these ids: every other condition is left aside, the shard too.
        shard: Number of jobs and this job's index.

    Raises:
        SelectionError: A stage, pattern, name, connection or group is unknown.
    """
    catalog = _Catalog(graph)
    if dataflows is not None:
        wanted = catalog.exactly(dataflows)
        return _selection(graph, wanted, None, set())
    wanted = catalog.matching(include) if include else catalog.everything()
    wanted &= catalog.of_stages(stages) & catalog.of_names(names)
    wanted &= catalog.of_connections(connections) & catalog.of_groups(groups)
    wanted -= catalog.matching(exclude)
    if shard is not None and shard[0] > 1:
        wanted = {one for one in wanted if catalog.shard_of(one, shard[0]) == shard[1]}
    return _selection(graph, wanted, shard, wanted)


def _selection(
    graph: Graph, wanted: set[str], shard: tuple[int, int] | None, invalid: set[str]
) -> Selection:
    chosen = tuple(flow for flow in graph.dataflows if flow.dataflow_id in wanted)
    reasons = ((flow.dataflow_id, skip_reason(flow)) for flow in chosen)
    return Selection(
        dataflows=chosen,
        skip_reasons={identifier: reason for identifier, reason in reasons if reason},
        shard=shard,
        invalid=tuple(one for one in graph.invalid if one.dataflow_id in invalid),
    )


def skip_reason(dataflow: Dataflow) -> str | None:
    """Return why a dataflow is not run at all, None if it is."""
    source, destination = dataflow.source.connection, dataflow.destination.connection
    reasons = [
        "inactive" if not dataflow.is_active else "",
        f"source connection '{source.name}' is inactive" if not source.is_active else "",
        f"destination connection '{destination.name}' is inactive"
        if not destination.is_active
        else "",
    ]
    return "; ".join(reason for reason in reasons if reason) or None


def shard_of(dataflow_id: str, group_number: int | None, jobs: int) -> int:
    """Return which of several jobs runs a dataflow; the dataflows of a group stay together.

    >>> shard_of("abc", None, 4), shard_of("flow-1", None, 4), shard_of("abc", -3, 4)
    (2, 3, 1)
    """
    if group_number is not None:
        return group_number % jobs
    digest = hashlib.md5(dataflow_id.encode(), usedforsecurity=False).hexdigest()
    return int(digest, 16) % jobs


class _Catalog:
    """Names of a graph's dataflows, valid and invalid, and sets of ids by condition."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._names: dict[str, tuple[str, ...]] = {
            flow.dataflow_id: names_of(flow) for flow in graph.dataflows
        }
        self._stages = {flow.dataflow_id: flow.stage for flow in graph.dataflows}
        for one in graph.invalid:
            self._names.setdefault(one.dataflow_id, (one.label, one.dataflow_id))
            self._stages.setdefault(one.dataflow_id, one.stage)

    def everything(self) -> set[str]:
        return set(self._names)

    def exactly(self, identifiers: Sequence[str]) -> set[str]:
        for one in identifiers:
            if one not in self._graph.by_id:
                raise _unknown("dataflow", one, self._graph.by_id)
        return set(identifiers)

    def of_stages(self, stages: str | Sequence[str] | None) -> set[str]:
        texts = [stages] if isinstance(stages, str) else list(stages or ())
        wanted = {part.strip() for text in texts for part in text.split(",") if part.strip()}
        if not wanted:
            return self.everything()
        known = {stage for stage in self._stages.values() if stage}
        for stage in sorted(wanted - known):
            raise _unknown("stage", stage, known)
        return {one for one, stage in self._stages.items() if stage in wanted}

    def of_names(self, names: Sequence[str]) -> set[str]:
        found = [self._called(name) for name in names]
        for name, ids in zip(names, found, strict=True):
            if not ids:
                raise _unknown("dataflow", name, self._all_names())
        return set[str]().union(*found) if names else self.everything()

    def of_connections(self, connections: Sequence[str]) -> set[str]:
        if not connections:
            return self.everything()
        users: dict[str, set[str]] = {}
        for flow in self._graph.dataflows:
            for end in (flow.source, flow.destination):
                users.setdefault(end.connection.name, set()).add(flow.dataflow_id)
        for name in connections:
            if name not in users:
                raise _unknown("connection", name, users)
        return set[str]().union(*(users[name] for name in connections))

    def of_groups(self, groups: Sequence[int]) -> set[str]:
        known = self._graph.order_groups
        for group in groups:
            if group not in known:
                raise _unknown("group", str(group), map(str, known))
        members = {one for group in groups for bucket in known[group] for one in bucket}
        return members if groups else self.everything()

    def matching(self, patterns: Sequence[str]) -> set[str]:
        return set[str]().union(*(self._expanded(pattern.strip()) for pattern in patterns))

    def shard_of(self, identifier: str, jobs: int) -> int:
        flow = self._graph.by_id.get(identifier)
        return shard_of(identifier, None if flow is None else flow.group_number, jobs)

    def _all_names(self) -> list[str]:
        return [name for names in self._names.values() for name in names]

    def _called(self, name: str) -> set[str]:
        return {one for one, names in self._names.items() if name in names}

    def _expanded(self, pattern: str) -> set[str]:
        found = self._called(pattern)
        if found:
            return found
        core = pattern.removeprefix("+").removesuffix("+")
        found = self._called(core) if not _WILD.search(core) else self._like(core)
        if not core or not found:
            raise _unknown("dataflow", core or pattern, self._all_names())
        expanded = set(found)
        if pattern.startswith("+"):
            expanded |= upstream_of(self._graph, found)
        if pattern.endswith("+"):
            expanded |= downstream_of(self._graph, found)
        return expanded

    def _like(self, pattern: str) -> set[str]:
        wild = {"*": ".*", "?": "."}
        shape = re.compile("".join(wild.get(one, re.escape(one)) for one in pattern))
        return {one for one, names in self._names.items() if any(map(shape.fullmatch, names))}


def upstream_of(graph: Graph, identifiers: Iterable[str]) -> set[str]:
    """Return everything that dataflows wait for, directly or not, declared order included."""
    found: set[str] = set()
    lower = dict.fromkeys(graph.order_groups, 0)
    queue = deque(identifiers)
    while queue:
        identifier = queue.popleft()
        fresh = [edge.upstream_id for edge in graph.upstream_edges(identifier)]
        place = graph.places.get(identifier)
        if place is not None and place.bucket > lower[place.group]:
            buckets = graph.order_groups[place.group][lower[place.group] : place.bucket]
            lower[place.group] = place.bucket
            fresh += [one for bucket in buckets for one in bucket]
        queue.extend(one for one in fresh if one not in found)
        found.update(fresh)
    return found


def downstream_of(graph: Graph, identifiers: Iterable[str]) -> set[str]:
    """Return everything that waits for dataflows, directly or not, declared order included."""
    found: set[str] = set()
    upper = {group: len(buckets) for group, buckets in graph.order_groups.items()}
    queue = deque(identifiers)
    while queue:
        identifier = queue.popleft()
        fresh = list(graph.downstream_ids(identifier))
        place = graph.places.get(identifier)
        if place is not None and place.bucket + 1 < upper[place.group]:
            buckets = graph.order_groups[place.group][place.bucket + 1 : upper[place.group]]
            upper[place.group] = place.bucket + 1
            fresh += [one for bucket in buckets for one in bucket]
        queue.extend(one for one in fresh if one not in found)
        found.update(fresh)
    return found


def _unknown(what: str, name: str, known: Iterable[str]) -> SelectionError:
    names = sorted(set(known))
    near = difflib.get_close_matches(name, names, n=1)
    if near:
        remedy = f"Did you mean '{near[0]}'?"
    elif names:
        more = f" and {len(names) - 10} more" if len(names) > 10 else ""
        remedy = f"There are {', '.join(names[:10])}{more}."
    else:
        remedy = f"There is no {what} at all."
    return SelectionError(f"no {what} '{name}'", place="selection", remedy=remedy)

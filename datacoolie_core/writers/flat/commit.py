"""Publish staged files and commit them by one replacement of the dataflow's manifest.

The order is the promise:

1. *claim*: the manifest names the files that will be published, as *pending*. Readers of ours pass
   over them. A claim takes the place of an older one, whose load then can't commit any more.
2. *publish*: each file gets its name in one step.
3. *commit*: the manifest names them as loaded, with the state, and no longer names what they
   replace. It is replaced only if it still is what the claim left, so of two loads one commits.
4. *clean up*: files that no longer count are deleted. It is done again by the next load.

A load that dies before 3 leaves files that nobody counts; they are deleted by the next claim.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from uuid import uuid4

from datacoolie_core.clock import utc_now
from datacoolie_core.errors import StorageError, WriteError
from datacoolie_core.state.manifest import (
    Manifest,
    Pending,
    manifest_uri,
    put_manifest,
    read_manifest,
)
from datacoolie_core.writers.flat.errors import storing
from datacoolie_core.writers.flat.next_manifest import committed
from datacoolie_core.writers.flat.publish import delete_files, publish
from datacoolie_core.writers.request import SupersededError

if TYPE_CHECKING:
    from datacoolie_core.writers.commit import Sleep
    from datacoolie_core.writers.flat.next_manifest import Change
    from datacoolie_core.writers.flat.place import Look, Place
    from datacoolie_core.writers.request import OnPhase, WriteRequest

TRIES = 10
UNKNOWN_OUTCOME = "commit_unknown"
"""Code of the error after which published files must stay: the manifest may name them."""


class LostRaceError(Exception):
    """Somebody else replaced the manifest first: claim again."""


@dataclass(frozen=True)
class Done:
    """A commit that was made.

    Attributes:
        manifest: As it is now.
        before: The folder just before.
        removed: The paths that went.
        leftover: What the clean-up could not delete.
    """

    manifest: Manifest
    before: Look
    removed: tuple[str, ...]
    leftover: tuple[str, ...] = ()


@dataclass
class Committer:
    """Commits one change.

    Attributes:
        place: The folder.
        request: Names the load.
        on_phase: Told of ``committing``, ``claimed``, ``publishing``, ``published``,
            ``committed`` and ``cleaned``.
        sleep: Waits between tries.
    """

    place: Place
    request: WriteRequest
    on_phase: OnPhase
    sleep: Sleep
    _claim: int | None = None
    _published: set[str] = field(default_factory=set[str])

    def commit(self, change: Change) -> Done:
        """Make the commit.

        Raises:
            SupersededError: Another run of the dataflow committed, or is about to.
            WriteError: Nothing was changed, unless the code is ``commit_unknown``.
        """
        self.on_phase("committing")
        done = self._undone_unless_committed(change)
        self.on_phase("committed")
        leftover = delete_files(self.place, [mark.path for mark in done.manifest.removed])
        self.on_phase("cleaned")
        return replace(done, leftover=tuple(leftover))

    def _undone_unless_committed(self, change: Change) -> Done:
        try:
            with storing():
                return self._raced(change)
        except WriteError as error:
            if error.code == UNKNOWN_OUTCOME:
                raise
            self._give_up()
            raise
        except BaseException:
            self._give_up()
            raise

    def _raced(self, change: Change) -> Done:
        for tried in range(TRIES):
            if tried:
                # others who lost the same race must not come back at the same instant
                self.sleep(random.uniform(0.2, 1.0) * min(0.05 * 2**tried, 3.0))  # noqa: S311
            try:
                return self._attempted(change)
            except LostRaceError:
                continue
        raise WriteError(
            f"{TRIES} tries lost against other loads that replace this folder",
            place=self.place.uri,
            remedy="Run it again, or keep the others off the folder for a while.",
            code="commit_conflict",
            retryable=True,
        )

    def _attempted(self, change: Change) -> Done:
        claimed = self._claimed(change)
        self.on_phase("claimed")
        delete_files(self.place, claimed.abandoned)
        self._publish(change)
        if change.replaces:
            self._break_claims()
        return self._finished(claimed, change)

    def _claimed(self, change: Change) -> Manifest:
        """Write down which files are about to be published."""
        known = self._read() or Manifest(self.place.dataflow_id, str(uuid4()))
        check_fence(known, self.request)
        if self._claim is not None and known.claim != self._claim:
            raise superseded(self.place, "another run of the dataflow is loading it")
        paths = tuple(file.path for file in change.added)
        free = known.without_pending()
        abandoned = {path: at for path, at in free.abandoned.items() if path not in paths}
        sequence, now = self.request.sequence, utc_now().isoformat()
        pending = Pending(self.request.run_id, sequence, paths, change.replaces, now)
        claim = known.claim + 1 if self._claim is None else self._claim
        claimed = self._put(free.evolve(claim=claim, abandoned=abandoned, pending=pending))
        self._claim = claim
        return claimed

    def _publish(self, change: Change) -> None:
        missing = [file for file in change.added if file.path not in self._published]
        for number, file in enumerate(missing):
            publish(self.place, file)
            self._published.add(file.path)
            if number == 0:
                self.on_phase("publishing")
        self.on_phase("published")

    def _break_claims(self) -> None:
        """Take back the claims of other dataflows that replace this folder as well.

        Each of two such loads does so after its own claim, so at least one of them sees the
        other: the one that commits first makes the other look again.
        """
        for other in self.place.look().contents.manifests:
            mine = other.dataflow_id == self.place.dataflow_id
            if mine or other.pending is None or not other.pending.replaces:
                continue
            uri = manifest_uri(self.place.uri, other.dataflow_id)
            put_manifest(uri, other.without_pending(), self.place.storage_options)

    def _finished(self, claimed: Manifest, change: Change) -> Done:
        look = self.place.look()
        own = look.own
        if own is None or own.etag != claimed.etag:
            raise self._lost(own)
        removed = tuple(change.removed(look))
        manifest = committed(claimed, look, change, removed, self.request.sequence)
        try:
            return Done(self._put(manifest), look, removed)
        except StorageError as error:
            return Done(self._asked(error), look, removed)

    def _asked(self, failure: StorageError) -> Manifest:
        """After a failure of the store, ask it whether the commit took place."""
        try:
            found = self._read()
        except StorageError as error:
            raise WriteError(
                "the manifest can't be read to see whether the commit took place",
                place=self.place.manifest,
                remedy="Run it again: the next run looks at the folder first.",
                code=UNKNOWN_OUTCOME,
                retryable=True,
            ) from error
        made = None if found is None else found.commit
        asked = (self.request.sequence, self.request.run_id)
        if found is not None and made and (found.sequence, made.get("run_id")) == asked:
            return found
        raise failure

    def _lost(self, found: Manifest | None) -> Exception:
        if found is None:
            return superseded(self.place, "the manifest is gone")
        if found.claim != self._claim:
            return superseded(self.place, "another run of the dataflow is loading it")
        return LostRaceError()

    def _read(self) -> Manifest | None:
        return read_manifest(self.place.manifest, self.place.storage_options)

    def _put(self, manifest: Manifest) -> Manifest:
        done = put_manifest(self.place.manifest, manifest, self.place.storage_options)
        if done is not None:
            return done
        raise LostRaceError if self._claim is None else self._lost(self._read())

    def _give_up(self) -> None:
        """Take the claim back and delete what was published; what fails here, the next load does."""
        try:
            known = self._read()
            if known is not None and known.pending and known.claim == self._claim:
                put_manifest(
                    self.place.manifest, known.without_pending(), self.place.storage_options
                )
            delete_files(self.place, self._published)
        except (StorageError, OSError):
            return


def superseded(place: Place, why: str) -> SupersededError:
    """Return the error that makes a run read the state again."""
    return SupersededError(
        why,
        place=place.uri,
        remedy="Run it again: it starts from what the other run left.",
        retryable=True,
    )


def check_fence(manifest: Manifest | None, request: WriteRequest) -> None:
    """Raise if the dataflow has committed since the run looked at the folder.

    Raises:
        SupersededError: With both sequences.
    """
    found = None if manifest is None else manifest.sequence
    if found != request.expected_sequence:
        raise SupersededError(
            f"the folder is at sequence {found} of this dataflow, the run started from"
            f" {request.expected_sequence}",
            place=request.uri,
            remedy="Another run of the dataflow committed meanwhile; run it again.",
            retryable=True,
        )

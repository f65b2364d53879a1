"""Storing the chunks of a namespace in the folder, and reading them back: a manifest, and a file for each chunk.

A stored snapshot is a copy, which may be missing, old or damaged at any time. Reading gives its version and all of it,
verified, or nothing; the catalogue's change log, or the cluster's hash, shows whether it is current.
"""

from __future__ import annotations

import errno
import hashlib
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Final

import structlog
from pydantic import ValidationError

from broker_core.change_log import CatalogVersion
from broker_core.listing import Chunk
from broker_core.names import Mode, NamespaceName, system_topics_rule
from broker_core.snapshots.stored.chunk_columns import chunk_of, file_of, in_order
from broker_core.snapshots.stored.column_file import FileReference, read_columns
from broker_core.snapshots.stored.file_errors import FileCounts, RefusedFile, reason_of
from broker_core.snapshots.stored.manifest import SnapshotManifest, manifest_name
from broker_core.snapshots.stored.snapshot_folder import SnapshotFolder, folder_beside
from broker_core.snapshots.stored.sweep import read_manifest, stored_manifests, sweep

__all__ = ["LEAST_TOPICS", "Pace", "Stored", "StoredSnapshots"]

#: The topics of the smallest namespace that is stored: a smaller one is read, or listed, as quickly.
LEAST_TOPICS: Final = 10_000
#: Files read at a time; more threads wait for the memory, and for each other's checksums.
_READERS: Final = min(4, os.cpu_count() or 1)

#: The most bytes in memory by bytes in files: memory also has data derived from names.
_MOST_IN_MEMORY: Final = 16
#: Errors that say nothing of a file.
_OF_THE_PROCESS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR})

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Stored:
    """A snapshot to be stored: the chunks of a namespace at one version, the memory they take, how often it was
    asked for since it was read, and the principal of the listing, if that makes a difference.
    """

    namespace: NamespaceName
    mode: Mode
    version: CatalogVersion
    chunks: tuple[Chunk, ...]
    nbytes: int
    requests: int
    view: str = ""

    @property
    def is_worth_it(self) -> bool:
        """Whether reading it back would be quicker, and its version differs from any of a restored catalogue."""
        return sum(chunk.size for chunk in self.chunks) >= LEAST_TOPICS and bool(self.version.stamp)


class Pace(Enum):
    """The pace of writing snapshots: without disturbing others, as quickly as possible, or no longer."""

    STEADY = auto()
    AT_ONCE = auto()
    ENDED = auto()


class StoredSnapshots:
    """The stored snapshots of one catalogue or cluster; for any thread. ``limit`` bounds their bytes (0: no bound), as
    the setting of this name says.
    """

    def __init__(
        self,
        folder: SnapshotFolder,
        *,
        property_keys: Sequence[str] = (),
        limit: int = 0,
        limit_setting: str = "catalog.snapshots_bytes",
    ) -> None:
        self.counts = FileCounts()
        self._folder = folder
        self._property_keys = tuple(property_keys)
        self._limit = limit
        self._limit_setting = limit_setting
        self._rules = _rules()
        self._lock = threading.Lock()
        self._names: set[str] | None = None
        #: The files of chunks that were read or written, so that they are not made again.
        self._files: weakref.WeakKeyDictionary[Chunk, FileReference] = weakref.WeakKeyDictionary()
        self._requests: dict[str, int] = {}
        self._fails = False
        self._too_large: set[NamespaceName] = set()

    @classmethod
    def beside(cls, catalog: Path, *, property_keys: Sequence[str] = (), limit: int = 0) -> StoredSnapshots:
        """The snapshots in the folder beside a catalogue's file. It may be missing; writing creates it."""
        keys = tuple(dict.fromkeys(property_keys))
        return cls(SnapshotFolder(folder_beside(catalog)), property_keys=keys, limit=limit)

    @classmethod
    def of_cluster(cls, folder: Path, *, limit: int = 0) -> StoredSnapshots:
        """The snapshots of the cluster behind a gateway, in a folder of their own. It may be missing; writing creates
        it.
        """
        return cls(SnapshotFolder(folder), limit=limit, limit_setting="upstream.snapshots.folder_bytes")

    def of_keys(self, property_keys: Sequence[str]) -> StoredSnapshots:
        """The snapshots in this folder for other properties, with shared counts."""
        other = StoredSnapshots(self._folder, property_keys=property_keys, limit=self._limit)
        other.counts = self.counts
        return other

    def problem(self) -> str | None:
        """The reason why nothing can be stored in the folder, as far as it shows without writing."""
        return self._folder.problem()

    # -- reading

    def find(
        self, namespace: NamespaceName, mode: Mode, catalog_id: str, view: str = ""
    ) -> SnapshotManifest | None:
        """The manifest of a namespace of this catalogue, if there is one and all its files exist."""
        name = manifest_name(namespace, mode, self._property_keys, view)
        if name not in self._known_names():
            return None
        try:
            manifest = read_manifest(self._folder, name)
        except FileNotFoundError:
            self._forget(name)
            return None
        except (OSError, RefusedFile) as error:
            self._refuse(name, namespace, error)
            return None
        try:
            if manifest.name != name:
                raise RefusedFile("it is of another namespace")
            # Before permits are asked for by the manifest's sizes.
            if manifest.nbytes > _MOST_IN_MEMORY * manifest.size:
                raise RefusedFile(f"it says that {manifest.size} bytes take {manifest.nbytes} in memory")
            sizes = self._folder.sizes([file.name for file in manifest.files])
            if sizes != [file.size for file in manifest.files]:
                raise RefusedFile("its files are not there, or have other sizes")
        except (OSError, RefusedFile) as error:
            self._refuse(name, namespace, error)
            return None
        if not self._is_ours(manifest, catalog_id):
            self.stale(manifest)
            return None
        return manifest

    def read(self, manifest: SnapshotManifest) -> tuple[Chunk, ...] | None:
        """All chunks of a manifest, verified; ``None`` if any of them differs from it."""
        namespace, mode = manifest.key
        try:
            # All are read, also after a damaged one: a damaged file that stayed would be taken for the right one when
            # the namespace is stored again, and each start would find one of them.
            with ThreadPoolExecutor(_READERS, thread_name_prefix="stored-snapshot") as readers:
                reads = [readers.submit(self._chunk, namespace, file) for file in manifest.files]
            chunks = tuple(read.result() for read in reads)
            if not in_order(chunks) or not all(mode.lists(chunk.domain) for chunk in chunks):
                raise RefusedFile("its chunks do not follow each other")
        except (OSError, RefusedFile) as error:
            self._refuse(manifest.name, namespace, error)
            return None
        with self._lock:
            self._files.update(zip(chunks, manifest.files, strict=True))
            # Halved at each start, so that present questions count more than old ones.
            self._requests[manifest.name] = manifest.asked // 2
        self._folder.touch(manifest.name)
        self.counts.add("read")
        return chunks

    def _chunk(self, namespace: NamespaceName, file: FileReference) -> Chunk:
        try:
            columns, facts = read_columns(self._folder.read(file.name, file.size), file)
            return chunk_of(namespace, self._property_keys, file.rows, columns, facts)
        except (OSError, RefusedFile) as error:
            if getattr(error, "errno", None) in _OF_THE_PROCESS:
                raise
            self._folder.remove(file.name)  # a file of that size would not be written again
            raise RefusedFile(f"{file.name}: {reason_of(error)}") from error

    def stale(self, manifest: SnapshotManifest) -> None:
        """Drop a manifest of a state that the catalogue no longer knows."""
        self.counts.add("stale")
        self._forget(manifest.name)
        self._folder.remove(manifest.name)

    def most_frequent(self, catalog_id: str) -> list[SnapshotManifest]:
        """The manifests of this catalogue, the most asked namespace first."""
        found = [each for each in stored_manifests(self._folder) if self._is_ours(each, catalog_id)]
        return sorted(found, key=lambda each: (-each.asked, each.nbytes, each.namespace))

    def _known_names(self) -> set[str]:
        """The manifests that existed at the first call, and the ones written here since.

        Most namespaces are too small to have one: looking for each would cost them more than it saves others.
        """
        with self._lock:
            if self._names is None:
                self._names = {file.name for file in self._folder.files()}
            return self._names

    def _forget(self, name: str) -> None:
        with self._lock:
            if self._names is not None:
                self._names.discard(name)

    def _is_ours(self, manifest: SnapshotManifest, catalog_id: str) -> bool:
        own = (catalog_id, self._property_keys, self._rules)
        return (manifest.catalog_id, manifest.property_keys, manifest.rules) == own

    def _refuse(self, name: str, namespace: NamespaceName, error: Exception) -> None:
        if getattr(error, "errno", None) in _OF_THE_PROCESS:
            return  # it says nothing of the file, which may be read the next time
        self.counts.add("refused")
        self._forget(name)
        removed = self._folder.remove(name)
        _log.warning(
            "a stored snapshot is refused, and the namespace read anew",
            namespace=str(namespace),
            reason=reason_of(error),
            file=str(self._folder.path / name),
            removed=removed,
        )

    # -- writing

    def write(self, stored: Stored, *, pace: Callable[[], Pace] = lambda: Pace.AT_ONCE) -> int | None:
        """Store a namespace: the missing files, then its manifest. Returns the written bytes.

        ``pace`` is called before each file. ``None`` if writing failed, or was to end: the former snapshot stays as it
        was.
        """
        if self._limit and sum(chunk.column_bytes for chunk in stored.chunks) > self._limit:
            self._report_too_large(stored)
            return None
        written = 0
        try:
            files: list[FileReference] = []
            for chunk in stored.chunks:
                if (now := pace()) is Pace.ENDED:
                    return None
                with self._lock:
                    reference = self._files.get(chunk)
                if reference is None or not self._folder.has(reference.name, reference.size):
                    made = file_of(chunk, self._property_keys)
                    reference = made.reference
                    if not self._folder.has(reference.name, reference.size):
                        self._folder.write(reference.name, made.pieces, wait_for_disk=now is Pace.STEADY)
                        written += reference.size
                    with self._lock:
                        self._files[chunk] = reference
                files.append(reference)
            manifest = self._manifest(stored, files)
            self._folder.write(manifest.name, [manifest.to_bytes()])
            names = self._known_names()
            with self._lock:
                names.add(manifest.name)
        except (OSError, RefusedFile, ValidationError) as error:
            self.counts.add("write_failed")
            if not self._fails:  # once, until it works again
                self._fails = True
                _log.warning(
                    "snapshots cannot be stored: the next starts may be slow",
                    folder=str(self._folder.path),
                    reason=reason_of(error),
                )
            return None
        if self._fails:
            self._fails = False
            _log.info("snapshots are stored again", folder=str(self._folder.path))
        self.counts.add("written")
        return written

    def _report_too_large(self, stored: Stored) -> None:
        if stored.namespace not in self._too_large:
            self._too_large.add(stored.namespace)
            _log.warning(
                f"a namespace is not stored for the next start: it is larger than {self._limit_setting}",
                namespace=str(stored.namespace),
                limit=self._limit,
            )

    def _manifest(self, stored: Stored, files: Sequence[FileReference]) -> SnapshotManifest:
        name = manifest_name(stored.namespace, stored.mode, self._property_keys, stored.view)
        return SnapshotManifest(
            rules=self._rules,
            catalog_id=stored.version.catalog_id,
            namespace=str(stored.namespace),
            mode=stored.mode.name,
            version=stored.version.number,
            stamp=stored.version.stamp,
            property_keys=self._property_keys,
            nbytes=max(stored.nbytes, sum(file.size for file in files)),
            asked=self._requests.get(name, 0) + stored.requests,
            files=tuple(files),
            view=stored.view,
        )

    def sweep(self) -> None:
        """Remove unneeded files, and snapshots over the bound."""
        self.counts.add("removed", sweep(self._folder, self._limit))


def _rules() -> str:
    """A hash of what else decides on the names of a listing: the rule for the brokers' own topics."""
    rule = system_topics_rule()
    described = repr((sorted(rule.local_names), rule.local_suffix, rule.name_prefixes))
    return hashlib.blake2b(described.encode(), digest_size=16).hexdigest()

"""Removal of files: the ones that no manifest names, and the least recently used snapshots over the bound.

Only names that are made here are ever removed: anything else in the folder belongs to somebody.
"""

from __future__ import annotations

import re
from typing import Final

from broker_core.snapshots.stored.file_errors import RefusedFile
from broker_core.snapshots.stored.manifest import LARGEST_MANIFEST, SnapshotManifest
from broker_core.snapshots.stored.snapshot_folder import SnapshotFile, SnapshotFolder

__all__ = ["GRACE", "read_manifest", "stored_manifests", "sweep"]

#: Seconds for which a file that no manifest names stays: another process may be about to write the manifest.
GRACE: Final = 600.0
#: Seconds for which a manifest stays that this release cannot read: one of another release may.
_OTHER_RELEASES: Final = 7 * 86_400.0
_MANIFEST: Final = re.compile(r"[0-9a-f]{32}\.manifest")
_COLUMNS: Final = re.compile(r"[0-9a-f]{32}\.columns")
_PART: Final = re.compile(r"\.[0-9a-f]{16}\.part")


def read_manifest(folder: SnapshotFolder, name: str) -> SnapshotManifest:
    """One manifest. Raises :exc:`RefusedFile` and :exc:`OSError`."""
    return SnapshotManifest.from_bytes(folder.read(name, LARGEST_MANIFEST))


def stored_manifests(folder: SnapshotFolder) -> list[SnapshotManifest]:
    """All manifests that can be read."""
    return [manifest for _, manifest in _manifests(folder, folder.files()) if manifest is not None]


def _manifests(
    folder: SnapshotFolder, files: list[SnapshotFile]
) -> list[tuple[SnapshotFile, SnapshotManifest | None]]:
    found: list[tuple[SnapshotFile, SnapshotManifest | None]] = []
    for file in files:
        if _MANIFEST.fullmatch(file.name):
            try:
                manifest = read_manifest(folder, file.name)
                # A copy under another name is of no use, and would be counted once more.
                found.append((file, manifest if manifest.name == file.name else None))
            except (OSError, RefusedFile):
                found.append((file, None))
    return found


def sweep(folder: SnapshotFolder, limit: int, *, grace: float = GRACE) -> int:
    """Remove unneeded files, and snapshots over ``limit`` bytes (0: no bound); returns how many files were removed."""
    files = folder.files()
    sizes = {file.name: file.size for file in files}
    needed: set[str] = set()
    room = limit
    gone = 0
    # The last used first: the room is theirs.
    for file, manifest in sorted(_manifests(folder, files), key=lambda each: -each[0].used):
        if manifest is None:
            gone += folder.remove(file.name, unused_for=_OTHER_RELEASES)
            continue
        more = {each.name for each in manifest.files} - needed
        size = file.size + sum(sizes.get(name, 0) for name in more)
        if limit and size > room:
            gone += folder.remove(file.name)
            continue
        room -= size
        needed |= more
    for file in files:
        unneeded = _COLUMNS.fullmatch(file.name) and file.name not in needed
        if unneeded or _PART.fullmatch(file.name):
            gone += folder.remove(file.name, unused_for=grace)
    return gone

"""The manifest of a stored snapshot: its namespace, mode and version, and its files in order.

The file is one line, ``broker-core snapshot FORMAT CRC32C BYTES``, and JSON after it. It is replaced as a whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from broker_core.change_log import CatalogVersion
from broker_core.compact_json import compact_json
from broker_core.errors import InvalidName
from broker_core.listing import crc_text, extend_crc
from broker_core.names import MAX_NAMESPACE, Mode, NamespaceName
from broker_core.snapshots.stored.column_file import FileReference, StoredNumber
from broker_core.snapshots.stored.file_errors import RefusedFile

__all__ = ["FORMAT", "LARGEST_MANIFEST", "SnapshotManifest", "manifest_name"]

#: The number of the format: another one whenever files written before would be read as other rows.
FORMAT: Final = 1
LARGEST_MANIFEST: Final = 64 * 1024 * 1024
_KIND: Final = "broker-core snapshot"
_LONGEST_LINE: Final = 100

_Text = Annotated[str, Field(max_length=1000)]


class SnapshotManifest(BaseModel):
    """The contents of a stored snapshot, and its files. ``nbytes`` is the memory that it took, ``asked`` how often it
    was asked for. ``rules`` is a text of what else decided on its names; ``view`` is the principal of the listing,
    empty if all see the same.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    rules: _Text
    catalog_id: Annotated[str, Field(min_length=1, max_length=1000)]
    namespace: Annotated[str, Field(max_length=MAX_NAMESPACE)]
    mode: Annotated[str, Field(pattern="^(PERSISTENT|NON_PERSISTENT|ALL)$")]
    version: StoredNumber
    stamp: Annotated[str, Field(min_length=1, max_length=1000)]
    property_keys: tuple[str, ...]
    nbytes: StoredNumber
    asked: StoredNumber
    files: Annotated[tuple[FileReference, ...], Field(min_length=1)]
    view: Annotated[str, Field(max_length=100)] = ""

    @field_validator("namespace")
    @classmethod
    def _is_a_namespace(cls, text: str) -> str:
        try:
            NamespaceName.parse(text)
        except InvalidName as error:
            raise ValueError(str(error)) from None
        return text

    @property
    def key(self) -> tuple[NamespaceName, Mode]:
        """The namespace and the mode."""
        return NamespaceName.parse(self.namespace), Mode[self.mode]

    @property
    def name(self) -> str:
        """The name of its file."""
        return manifest_name(*self.key, self.property_keys, self.view)

    @property
    def catalog_version(self) -> CatalogVersion:
        """The version of the namespace that the snapshot has."""
        return CatalogVersion(self.catalog_id, self.version, self.stamp)

    @property
    def rows(self) -> int:
        """The number of names."""
        return sum(file.rows for file in self.files)

    @property
    def size(self) -> int:
        """Bytes of all of its files."""
        return sum(file.size for file in self.files)

    def to_bytes(self) -> bytes:
        """The contents of its file."""
        text = self.model_dump_json(exclude_defaults=True).encode()
        crc = crc_text(extend_crc(0, memoryview(text)))
        return f"{_KIND} {FORMAT} {crc} {len(text)}\n".encode() + text

    @classmethod
    def from_bytes(cls, content: bytes) -> SnapshotManifest:
        """The manifest of a file's contents. Raises :exc:`RefusedFile`."""
        line, _, text = content.partition(b"\n")
        words = line[:_LONGEST_LINE].decode("ascii", "replace").split(" ")
        if words[:2] != _KIND.split(" ") or len(words) != 5:
            raise RefusedFile("it is no manifest")
        if words[2] != str(FORMAT):
            raise RefusedFile("it is of another format")
        if words[4] != str(len(text)) or words[3] != crc_text(extend_crc(0, memoryview(text))):
            raise RefusedFile("its size or its checksum is wrong")
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise RefusedFile(f"it is wrong: {error.errors()[0]['msg']:.200}") from None


def manifest_name(namespace: NamespaceName, mode: Mode, property_keys: Sequence[str], view: str = "") -> str:
    """The name of the file of a namespace's manifest, which differs by selecting properties and by view."""
    described = compact_json([mode.name, str(namespace), *property_keys]) + view
    return hashlib.blake2b(described.encode(), digest_size=16).hexdigest() + ".manifest"

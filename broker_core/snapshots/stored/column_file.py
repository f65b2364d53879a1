"""The format of a file of columns: a header with the checksum of each column, then the columns' bytes.

=============  =====================================================================================================
bytes          contents =============
===================================================================================================== 0 to 8
``BRKCOLS1`` 8 to 12        bytes of the header, little-endian 12 to 16       CRC32C of the header, little-endian from
16        the header: JSON, with the rows, facts of the writer, and each column's name, place, bytes and CRC32C
multiples      the columns, each at the first multiple of 64 after the one before; zeros between of 64 =============
=====================================================================================================

A file is named by its content (:attr:`FileReference.digest`), so that an existing one never needs to be written. A
reader compares everything before it uses it: the reference with the header, the header with the size, each column with
its checksum. The checksums find damage. They are no defence against a forger, who could as well change the catalogue
beside the file: :mod:`.snapshot_folder` ensures that nobody else can write there.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from typing import Annotated, Any, Final

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from broker_core.counted import counted
from broker_core.listing import extend_crc
from broker_core.snapshots.stored.file_errors import RefusedFile

__all__ = ["LARGEST_FILE", "ColumnFile", "FileReference", "StoredNumber", "read_columns"]

#: Bytes of the largest file that is written or read; a chunk has a hundredth of it, unless one name is very long.
LARGEST_FILE: Final = 256 * 1024 * 1024
_MAGIC: Final = b"BRKCOLS1"
_PREFIX: Final = struct.Struct("<8sII")
_ALIGNED: Final = 64
_LARGEST_HEADER: Final = 64 * 1024
#: Hex digits of the digest that are a file's name.
_DIGEST: Final = 32

#: A count or an offset in a stored file.
StoredNumber = Annotated[int, Field(ge=0, lt=2**48)]
_Crc = Annotated[int, Field(ge=0, lt=2**32)]
_Buffer = Any  # an object with the buffer protocol, contiguous


class _Stored(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class FileReference(_Stored):
    """One file of columns, as a manifest names it: the ``digest`` of its content, its bytes and rows, and its header's
    CRC.
    """

    digest: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
    size: Annotated[int, Field(gt=0, le=LARGEST_FILE)]
    rows: StoredNumber
    crc: _Crc

    @property
    def name(self) -> str:
        """The name of the file in its folder."""
        return f"{self.digest}.columns"


class _Column(_Stored):
    name: Annotated[str, Field(min_length=1, max_length=200)]
    at: StoredNumber
    size: StoredNumber
    crc: _Crc


class _Header(_Stored):
    rows: StoredNumber
    facts: dict[str, int | str]
    columns: tuple[_Column, ...]


class ColumnFile:
    """Columns as the pieces of a file, ready to be written; nothing of the columns is copied.

    ``columns`` are contiguous buffers by name, which do not change any more; ``facts`` are further data for the reader.
    """

    def __init__(self, columns: Mapping[str, _Buffer], rows: int, facts: Mapping[str, int | str]) -> None:
        buffers = {name: memoryview(buffer).cast("B") for name, buffer in columns.items() if len(buffer)}
        empty = [name for name in columns if name not in buffers]
        # The places count from the end of the header, which holds them.
        described, end = [_Column(name=name, at=0, size=0, crc=0) for name in empty], 0
        pieces: list[Any] = []
        for name, buffer in buffers.items():
            described.append(_Column(name=name, at=end, size=len(buffer), crc=extend_crc(0, buffer)))
            padding = -len(buffer) % _ALIGNED
            pieces += [buffer, bytes(padding)]
            end += len(buffer) + padding
        header = _Header(rows=rows, facts=dict(facts), columns=tuple(described)).model_dump_json().encode()
        crc = extend_crc(0, memoryview(header))
        front = _PREFIX.pack(_MAGIC, len(header), crc) + header
        #: The contents of the file, in order.
        self.pieces: list[Any] = [front + bytes(-len(front) % _ALIGNED), *pieces]
        digest = hashlib.sha256()  # the processors of servers compute it
        for piece in self.pieces:
            digest.update(piece)
        size = sum(len(piece) for piece in self.pieces)
        if size > LARGEST_FILE or len(header) > _LARGEST_HEADER:
            raise RefusedFile(f"a chunk of {size} bytes is larger than a file may be")
        #: Its entry in the manifest.
        self.reference = FileReference(digest=digest.hexdigest()[:_DIGEST], size=size, rows=rows, crc=crc)


def read_columns(
    content: bytes, reference: FileReference
) -> tuple[dict[str, pa.Buffer], Mapping[str, int | str]]:
    """The columns (views of ``content``) and the facts of a file. Raises :exc:`RefusedFile` for any other content."""
    if len(content) != reference.size:
        raise RefusedFile(f"it has {len(content)} bytes in place of {reference.size}")
    header, front = _header_of(content, reference)
    view = pa.py_buffer(content)
    columns: dict[str, pa.Buffer] = {}
    end = front
    for column in header.columns:
        start = front + column.at
        if column.name in columns or start % _ALIGNED or start + column.size > len(content):
            raise RefusedFile(f"the column {column.name!r} is twice, or not within the file")
        if column.size and start < end:
            raise RefusedFile(f"the column {column.name!r} overlaps another one")
        columns[column.name] = view.slice(start, column.size)
        if extend_crc(0, memoryview(columns[column.name])) != column.crc:
            raise RefusedFile(f"the checksum of the column {column.name!r} is wrong")
        end = max(end, start + column.size)
    return columns, header.facts


def _header_of(content: bytes, reference: FileReference) -> tuple[_Header, int]:
    """(the header, the offset of the columns)."""
    if len(content) < _PREFIX.size:
        raise RefusedFile("it is too short")
    magic, length, crc = _PREFIX.unpack_from(content)
    if magic != _MAGIC:
        raise RefusedFile("it is of another kind or format")
    text = content[_PREFIX.size : _PREFIX.size + length]
    if length > _LARGEST_HEADER or len(text) != length:
        raise RefusedFile("its header is not within the file")
    if crc != reference.crc or extend_crc(0, memoryview(text)) != crc:
        raise RefusedFile("the checksum of its header is wrong")
    try:
        header = _Header.model_validate_json(text)
    except ValidationError as error:
        raise RefusedFile(f"its header is wrong: {error.errors()[0]['msg']:.200}") from None
    if header.rows != reference.rows:
        raise RefusedFile(f"it has {counted(header.rows, 'row')} in place of {reference.rows}")
    front = _PREFIX.size + length
    return header, front + -front % _ALIGNED

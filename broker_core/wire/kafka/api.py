"""One API of Kafka's protocol: its key, its versions and its messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from broker_core.wire.kafka.fields import Fields, Struct, Versions
from broker_core.wire.kafka.reader import Reader
from broker_core.wire.kafka.writer import Encoded, Writer

__all__ = ["NEVER", "Api"]

#: The first flexible version of an API that has none.
NEVER: Final = 2**15


@dataclass(frozen=True, slots=True, eq=False)
class Api:
    """An API. ``versions`` are the supported ones; from ``flexible`` on, messages have variable lengths and tagged
    fields (KIP-482). ``plain_response_header``: the header of answers has no tagged fields in any version.
    """

    key: int
    name: str
    versions: Versions
    flexible: int
    request: Struct
    response: Struct
    plain_response_header: bool = False

    def is_flexible(self, version: int) -> bool:
        return version >= self.flexible

    def read_request(self, reader: Reader, version: int) -> Fields:
        """Read a request. Raises :exc:`~.reader.MalformedMessage`; bytes after the request are ignored, as in Kafka."""
        return self.request.read(reader, version, flexible=self.is_flexible(version))

    def write_request(self, writer: Writer, value: Mapping[str, Any], version: int) -> None:
        self.request.write(writer, value, version, flexible=self.is_flexible(version))

    def read_response(self, reader: Reader, version: int) -> Fields:
        """Read a response. Raises :exc:`~.reader.MalformedMessage`."""
        return self.response.read(reader, version, flexible=self.is_flexible(version))

    def write_response(self, writer: Writer, value: Mapping[str, Any], version: int) -> None:
        self.response.write(writer, value, version, flexible=self.is_flexible(version))

    def response_elements(self, path: str, values: Iterable[Mapping[str, Any]], version: int) -> Encoded:
        """Elements of an array of the response, encoded once for many values: a row of 33 configs once and not 500
        times. ``path`` names the array, such as ``"topics.configs"``.
        """
        return self.response.elements(path, values, version, flexible=self.is_flexible(version))

"""Durations, sizes and addresses as an operator writes them: ``"30s"``, ``"100MB"``, ``"127.0.0.1:6650"``.

The annotated types are for pydantic models, of this package and of plugins: they accept readable texts, hold a plain
``float`` of seconds or ``int`` of bytes, and print readable texts in JSON mode.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final, Protocol, Self

from pydantic import BeforeValidator, Field, GetCoreSchemaHandler, PlainSerializer
from pydantic_core import CoreSchema, core_schema

from broker_core.counted import counted

__all__ = [
    "Count",
    "Duration",
    "ListenAddress",
    "PositiveDuration",
    "Size",
    "counted",
    "format_duration",
    "format_size",
    "parse_duration",
    "parse_size",
]

_SECONDS: Final = {
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "w": 604800.0,
    "y": 31536000.0,
}
_DURATION_PART: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s|m|h|d|w|y)", re.ASCII)

# Memory is counted in powers of two here, as by Pulsar's own "...SizeMB" settings: 100MB and 100MiB are the same.
_BYTES: Final = {
    "b": 1,
    "k": 1024,
    "kb": 1024,
    "kib": 1024,
    "m": 1024**2,
    "mb": 1024**2,
    "mib": 1024**2,
    "g": 1024**3,
    "gb": 1024**3,
    "gib": 1024**3,
    "t": 1024**4,
    "tb": 1024**4,
    "tib": 1024**4,
}
_SIZE_PARTS: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.ASCII | re.IGNORECASE)
_PLAIN_NUMBER: Final = re.compile(r"\s*\d+(?:\.\d+)?\s*", re.ASCII)

#: The loopback address by which a server that listens on a wildcard address is reached from the same machine.
_LOOPBACK: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - nothing is bound here


_DURATION: Final = "duration such as '250ms', '30s', '12h', '2w', '1y' or a number of seconds"
_SIZE: Final = "size such as '100MB', '64KiB' or a number of bytes"


def _not_a(what: str, value: object) -> ValueError:
    """The error for a wrong text and for a wrong type: pydantic only reports a ValueError as a finding."""
    return ValueError(f"{value!r} is not a {what}")


def parse_duration(value: object) -> float:
    """Seconds from ``"30s"``, ``"250ms"``, ``"2m"``, ``"1m30s"`` or a number of seconds; else :exc:`ValueError`.

    A week (``w``) has 7 days, a year (``y``) 365, as in Pulsar's tools.
    """
    seconds: float
    if isinstance(value, str):
        if _PLAIN_NUMBER.fullmatch(value):
            seconds = float(value)
        else:
            seconds, end = 0.0, 0
            for part in _DURATION_PART.finditer(value):
                if part.start() != end:
                    break
                seconds += float(part[1]) * _SECONDS[part[2]]
                end = part.end()
            if not end or value[end:].strip():
                raise ValueError(
                    f"{value!r} is not a duration such as '250ms', '30s', '12h', '2w', '1y' or a number of seconds"
                )
    elif isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    else:
        raise _not_a(_DURATION, value)
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError(f"{value!r} is not a duration: it must be finite and not negative")
    return seconds


def format_duration(seconds: float) -> str:
    """The shortest readable text that :func:`parse_duration` reads back: ``90.0`` is ``"90s"``, ``120.0`` ``"2m"``."""
    if seconds == 0:
        return "0s"
    for unit in ("d", "h", "m", "s", "ms", "us"):
        count = seconds / _SECONDS[unit]
        if count >= 1 and math.isclose(count, round(count), rel_tol=1e-12):
            return f"{round(count)}{unit}"
    return f"{seconds:f}".rstrip("0").rstrip(".") + "s"


def parse_size(value: object) -> int:
    """Bytes from ``"100MB"``, ``"64KiB"``, ``"1.5g"`` or a whole number of bytes; else :exc:`ValueError`.

    KB, MB, GB and TB are powers of 1024, as in Pulsar's memory settings.
    """
    if isinstance(value, str):
        match = _SIZE_PARTS.fullmatch(value)
        factor = _BYTES.get((match[2] or "b").lower()) if match else None
        if match is None or factor is None:
            raise _not_a(_SIZE, value)
        size = float(match[1]) * factor if "." in match[1] else int(match[1]) * factor
    elif isinstance(value, int | float) and not isinstance(value, bool):
        size = value
    else:
        raise _not_a(_SIZE, value)
    if not math.isfinite(size) or size < 0 or size != int(size):
        raise ValueError(f"{value!r} is not a size: it must be a whole number of bytes and not negative")
    return int(size)


def format_size(size: int) -> str:
    """The shortest exact text that :func:`parse_size` reads back: ``104857600`` is ``"100MB"``."""
    for unit in ("TB", "GB", "MB", "KB"):
        factor = _BYTES[unit.lower()]
        if size >= factor and size % factor == 0:
            return f"{size // factor}{unit}"
    return f"{size}B"


def _count(value: object) -> object:
    """Numbers only: pydantic alone would take ``true`` as 1."""
    if isinstance(value, bool):
        raise _not_a("number", value)
    return value


#: Seconds as a float, zero allowed.
Duration = Annotated[
    float,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str, when_used="json"),
]
#: Seconds as a float, more than zero: for times that must not be over at once.
PositiveDuration = Annotated[Duration, Field(gt=0)]
#: Bytes as an int.
Size = Annotated[
    int, BeforeValidator(parse_size), PlainSerializer(format_size, return_type=str, when_used="json")
]
#: A count, at least one.
Count = Annotated[int, BeforeValidator(_count), Field(ge=1)]


class _Parsed(Protocol):
    @classmethod
    def parse(cls, text: str, /) -> Self: ...


def text_schema(
    kind: type[_Parsed],
    fault: Callable[[object], str],
    *,
    numbers: bool = False,
    written: Callable[[Any], str] | None = None,
) -> CoreSchema:
    """The schema of values that a setting gives as text, which ``kind.parse`` reads, or as such values.

    ``fault`` is the text of the error for values of other types. ``numbers`` are read as their text; in JSON a value is
    what ``written`` makes of it.
    """

    def read(value: object) -> _Parsed:
        if isinstance(value, kind):
            return value
        if isinstance(value, str) or (numbers and isinstance(value, int) and not isinstance(value, bool)):
            return kind.parse(str(value))
        raise ValueError(fault(value))

    shown = written and core_schema.plain_serializer_function_ser_schema(written, when_used="json")
    return core_schema.no_info_plain_validator_function(read, serialization=shown)


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """An address to listen on. ``str()`` is ``HOST:PORT``, with brackets around an IPv6 host; port 0 is a free one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> ListenAddress:
        """The address written as ``127.0.0.1:6650``, ``localhost:0`` or ``[::1]:6650``; else :exc:`ValueError`."""
        host, separator, port = text.strip().rpartition(":")
        if not separator or not port:
            raise ValueError(f"{text!r} is not HOST:PORT such as '127.0.0.1:6650' (port 0: a free one)")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            raise ValueError(
                f"{text!r} is not HOST:PORT: write an IPv6 host in brackets, such as '[::1]:6650'"
            )
        if not host:
            raise ValueError(
                f"{text!r} names no host: '0.0.0.0:{port}' is every IPv4 address, '127.0.0.1:{port}' this machine"
            )
        if re.search(r"[\s/@\[\]]", host):
            raise ValueError(f"{text!r} is not HOST:PORT: {host!r} is no host")
        if not re.fullmatch(r"\d{1,5}", port, re.ASCII) or int(port) > 65535:
            raise ValueError(f"{text!r} is not HOST:PORT: {port!r} is no port from 0 to 65535")
        return cls(host, int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        return self.host.startswith("127.") or self.host in {"::1", "localhost"}

    @property
    def from_here(self) -> ListenAddress:
        """The address by which this machine reaches a listener: loopback for a wildcard address."""
        return ListenAddress(_LOOPBACK.get(self.host, self.host), self.port)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return text_schema(
            cls,
            lambda value: f"{value!r} is not HOST:PORT such as '127.0.0.1:6650' (port 0: a free one)",
            written=str,
        )

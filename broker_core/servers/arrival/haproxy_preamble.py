"""HAProxy's PROXY protocol, versions 1 and 2: the preamble by which a TCP proxy passes on its client's address.

The format: https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt. There is no input or output here.
"""

from __future__ import annotations

import re
import struct
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final, NoReturn

import google_crc32c

from broker_core.quantities import ListenAddress

__all__ = ["LARGEST", "HaproxyPreamble", "PreambleError"]

#: Bytes of a preamble, at most. The format allows 65,551; in practice the certificate of a client is the longest part.
LARGEST: Final = 8192

_V1: Final = b"PROXY "
#: Bytes of a line of version 1 with its end, at most.
_V1_LARGEST: Final = 107
_PORT: Final = re.compile(rb"0|[1-9][0-9]{0,4}")

_V2: Final = b"\r\n\r\n\x00\r\nQUIT\n"
_V2_HEAD: Final = 16
_LOCAL, _PROXY = 0x0, 0x1
_UNKNOWN: Final = 0x00
_TCP4: Final = 0x11
_TCP6: Final = 0x21
_UNIX: Final = 0x31
#: Bytes of the addresses, by family and transport.
_ADDRESSES: Final = {_UNKNOWN: 0, _TCP4: 12, _TCP6: 36, _UNIX: 216}
_CRC32C: Final = 0x03


class PreambleError(Exception):
    """The bytes are not a preamble, or one that cannot be trusted."""


class HaproxyPreamble:
    """Reader of one preamble from the beginning of a stream, in chunks of any size.

    Once :attr:`is_complete`, :attr:`source` is the address of the client; ``None`` means that the address of the
    connection itself counts: a health check of the proxy (LOCAL), or a client of an unknown address.
    """

    __slots__ = ("_buffer", "is_complete", "source")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self.is_complete = False
        self.source: ListenAddress | None = None

    def feed(self, data: bytes) -> int:
        """Read on; returns how many of the bytes belong to the preamble: all of them while it is not complete.

        Raises :exc:`PreambleError`, as soon as it is clear.
        """
        before = len(self._buffer)
        self._buffer += data[: LARGEST + 1]
        end = self._end()
        if end is None:
            return len(data)
        preamble = bytes(self._buffer[:end])
        self.source = _source_of_v1(preamble) if preamble.startswith(_V1) else _source_of_v2(preamble)
        self.is_complete = True
        return end - before

    def _end(self) -> int | None:
        """The size of the whole preamble, if all of its bytes are here."""
        held = self._buffer
        if held[: len(_V1)] == _V1[: len(held)]:
            line = held.find(b"\n", 0, _V1_LARGEST)
            if line >= 0:
                return line + 1
            if len(held) >= _V1_LARGEST:
                _refuse("a line of version 1 that is too long")
            return None
        if held[: len(_V2)] != _V2[: len(held)]:
            _refuse("no preamble")
        if len(held) < _V2_HEAD:
            return None
        size: int = _V2_HEAD + struct.unpack_from(">H", held, 14)[0]
        if size > LARGEST:
            _refuse(f"a preamble of {size} bytes")
        return size if len(held) >= size else None


def _source_of_v1(line: bytes) -> ListenAddress | None:
    if not line.endswith(b"\r\n"):
        _refuse("a line of version 1 that does not end in CR LF")
    words = line[:-2].split(b" ")
    if words[1] == b"UNKNOWN":  # what follows is to be ignored
        return None
    if len(words) != 6 or words[1] not in (b"TCP4", b"TCP6"):
        _refuse("a line of version 1 without protocol, addresses and ports")
    kind = IPv4Address if words[1] == b"TCP4" else IPv6Address
    try:
        source, _ = (_address(kind, word) for word in words[2:4])
    except (AddressValueError, UnicodeDecodeError):
        _refuse("a line of version 1 with what is no address")
    ports = [int(word) for word in words[4:] if _PORT.fullmatch(word)]
    if len(ports) != 2 or max(ports) > 65535:
        _refuse("a line of version 1 with what is no port")
    return ListenAddress(source, ports[0])


def _address(kind: type[IPv4Address | IPv6Address], word: bytes) -> str:
    text = word.decode("ascii")
    if "%" in text:
        raise AddressValueError(text)
    return _host(kind(text))


def _host(address: IPv4Address | IPv6Address) -> str:
    """One text for all forms of an address: an IPv4 address mapped into IPv6 becomes the IPv4 address."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)


def _source_of_v2(preamble: bytes) -> ListenAddress | None:
    version, command = preamble[12] >> 4, preamble[12] & 0xF
    if version != 2 or command not in (_LOCAL, _PROXY):
        _refuse(f"version {version} with command {command}")
    if command == _LOCAL:  # a connection of the proxy's own, whose addresses are to be ignored
        return None
    kind = preamble[13]
    if kind not in _ADDRESSES:
        _refuse(f"addresses of the unknown kind {kind:#04x}")
    extensions = _V2_HEAD + _ADDRESSES[kind]
    if len(preamble) < extensions:
        _refuse("addresses that are cut short")
    if kind != _UNKNOWN:
        _check_extensions(preamble, extensions)
    if kind == _TCP4:
        source, _, port, _ = struct.unpack_from(">4s4sHH", preamble, _V2_HEAD)
        return ListenAddress(_host(IPv4Address(source)), port)
    if kind == _TCP6:
        source, _, port, _ = struct.unpack_from(">16s16sHH", preamble, _V2_HEAD)
        return ListenAddress(_host(IPv6Address(source)), port)
    return None  # a client on the proxy's machine, or at an unknown address


def _check_extensions(preamble: bytes, at: int) -> None:
    """Check that the extensions (TLV) are complete, and that a checksum among them is right."""
    while at < len(preamble):
        if at + 3 > len(preamble):
            _refuse("an extension that is cut short")
        kind, size = struct.unpack_from(">BH", preamble, at)
        at += 3
        if at + size > len(preamble):
            _refuse("an extension that is cut short")
        if kind == _CRC32C:
            zeroed = preamble[:at] + bytes(size) + preamble[at + size :]
            if size != 4 or google_crc32c.value(zeroed) != int.from_bytes(preamble[at : at + 4], "big"):
                _refuse("a wrong checksum")
        at += size


def _refuse(what: str) -> NoReturn:
    raise PreambleError(what)

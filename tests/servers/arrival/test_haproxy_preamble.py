"""Preambles as the document of the PROXY protocol has them (sections 2.1 and 2.2), and lies in its form."""

from __future__ import annotations

import struct
from ipaddress import ip_address

import google_crc32c
import pytest

from broker_core.quantities import ListenAddress
from broker_core.servers.arrival.haproxy_preamble import LARGEST, HaproxyPreamble, PreambleError
from tests.support.one_test import in_one_test

SIGNATURE = b"\x0d\x0a\x0d\x0a\x00\x0d\x0a\x51\x55\x49\x54\x0a"
TCP4, TCP6, UNIX, UDP4 = 0x11, 0x21, 0x31, 0x12


def version2(kind: int, body: bytes, *, command: int = 0x21, size: int | None = None) -> bytes:
    return SIGNATURE + struct.pack(">BBH", command, kind, len(body) if size is None else size) + body


def addresses(source: str, target: str, ports: tuple[int, int] = (56324, 443)) -> bytes:
    return ip_address(source).packed + ip_address(target).packed + struct.pack(">HH", *ports)


def extension(kind: int, value: bytes) -> bytes:
    return struct.pack(">BH", kind, len(value)) + value


def checked(kind: int, body: bytes) -> bytes:
    """The preamble with its checksum as the last extension."""
    zeroed = version2(kind, body + extension(0x03, bytes(4)))
    return zeroed[:-4] + struct.pack(">I", google_crc32c.value(zeroed))


IPV4 = addresses("192.0.2.7", "192.0.2.11")
IPV6 = addresses("2001:db8::7", "2001:db8::11")

#: Preambles with the address that they tell.
GOOD = {
    "v1 over IPv4": (b"PROXY TCP4 192.0.2.7 192.0.2.11 56324 443\r\n", "192.0.2.7:56324"),
    "v1 the longest of IPv4": (
        b"PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n",
        "255.255.255.255:65535",
    ),
    "v1 over IPv6": (b"PROXY TCP6 2001:db8::7 2001:db8::11 56324 443\r\n", "[2001:db8::7]:56324"),
    "v1 the longest of IPv6": (
        b"PROXY TCP6 " + b" ".join([b":".join([b"ffff"] * 8)] * 2) + b" 65535 65535\r\n",
        "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535",
    ),
    "v1 port 0": (b"PROXY TCP4 192.0.2.7 192.0.2.11 0 443\r\n", "192.0.2.7:0"),
    "v1 short unknown": (b"PROXY UNKNOWN\r\n", None),
    "v1 the longest line": (
        b"PROXY UNKNOWN " + b" ".join([b":".join([b"ffff"] * 8)] * 2) + b" 65535 65535\r\n",
        None,
    ),
    "v1 unknown with lies": (b"PROXY UNKNOWN 1.2.3.4 nobody -1\r\n", None),
    "v2 over IPv4": (version2(TCP4, IPV4), "192.0.2.7:56324"),
    "v2 over IPv6": (version2(TCP6, IPV6), "[2001:db8::7]:56324"),
    "v1 a mapped address": (b"PROXY TCP6 ::ffff:192.0.2.7 ::1 56324 443\r\n", "192.0.2.7:56324"),
    "v2 a mapped address": (version2(TCP6, addresses("::ffff:192.0.2.7", "::1")), "192.0.2.7:56324"),
    "v2 a path": (version2(UNIX, b"/run/client".ljust(108, b"\0") + b"/run/server".ljust(108, b"\0")), None),
    "v2 unknown": (version2(0, b""), None),
    "v2 unknown with what is to be ignored": (version2(0, b"anything"), None),
    "v2 local": (version2(0, b"", command=0x20), None),
    "v2 local with an address": (version2(TCP4, IPV4, command=0x20), None),
    "v2 local with less than an address": (version2(TCP4, b"\x01", command=0x20), None),
    "v2 with extensions": (
        version2(TCP4, IPV4 + extension(0x04, bytes(7)) + extension(0x02, b"example.com")),
        "192.0.2.7:56324",
    ),
    "v2 with an empty extension": (version2(TCP4, IPV4 + extension(0xEE, b"")), "192.0.2.7:56324"),
    "v2 with a checksum": (checked(TCP6, IPV6 + extension(0x02, b"example.com")), "[2001:db8::7]:56324"),
    "v2 the longest": (
        version2(TCP4, IPV4 + extension(0x04, bytes(LARGEST - 16 - len(IPV4) - 3))),
        "192.0.2.7:56324",
    ),
}

BAD = {
    "nothing of it": b"\x00\x00\x00\x10\x00\x00\x00\x0c",
    "TLS": b"\x16\x03\x01\x02\x00\x01",
    "HTTP": b"GET / HTTP/1.1\r\n",
    "another signature": SIGNATURE[:-1] + b"\r",
    "small letters": b"proxy TCP4 192.0.2.7 192.0.2.11 56324 443\r\n",
    "v1 without CR": b"PROXY TCP4 192.0.2.7 192.0.2.11 56324 443\n",
    "v1 too long": b"PROXY UNKNOWN ".ljust(106, b"x") + b"\r\n",
    "v1 that never ends": b"PROXY UNKNOWN ".ljust(200, b"x"),
    "v1 nothing": b"PROXY \r\n",
    "v1 another protocol": b"PROXY UDP4 192.0.2.7 192.0.2.11 56324 443\r\n",
    "v1 the other family": b"PROXY TCP4 2001:db8::7 2001:db8::11 56324 443\r\n",
    "v1 IPv4 in IPv6": b"PROXY TCP6 192.0.2.7 192.0.2.11 56324 443\r\n",
    "v1 two spaces": b"PROXY TCP4  192.0.2.7 192.0.2.11 56324 443\r\n",
    "v1 one port": b"PROXY TCP4 192.0.2.7 192.0.2.11 56324\r\n",
    "v1 a large port": b"PROXY TCP4 192.0.2.7 192.0.2.11 65536 443\r\n",
    "v1 a large port of its own": b"PROXY TCP4 192.0.2.7 192.0.2.11 1 99999\r\n",
    "v1 a negative port": b"PROXY TCP4 192.0.2.7 192.0.2.11 -1 443\r\n",
    "v1 zeros before a port": b"PROXY TCP4 192.0.2.7 192.0.2.11 080 443\r\n",
    "v1 zeros before a number": b"PROXY TCP4 192.0.02.7 192.0.2.11 80 443\r\n",
    "v1 a name": b"PROXY TCP4 localhost 192.0.2.11 80 443\r\n",
    "v1 a zone": b"PROXY TCP6 fe80::1%eth0 fe80::2 80 443\r\n",
    "v1 other digits": "PROXY TCP4 192.0.2.٧ 192.0.2.11 80 443\r\n".encode(),
    "v1 a wrong target": b"PROXY TCP4 192.0.2.7 x 80 443\r\n",
    "v2 of version 1": version2(TCP4, IPV4, command=0x11),
    "v2 another command": version2(TCP4, IPV4, command=0x22),
    "v2 datagrams": version2(UDP4, IPV4),
    "v2 another family": version2(0x41, IPV4),
    "v2 cut addresses": version2(TCP4, IPV4[:-1]),
    "v2 addresses of IPv4 for IPv6": version2(TCP6, IPV4),
    "v2 a cut path": version2(UNIX, bytes(215)),
    "v2 too long": version2(TCP4, IPV4 + extension(0x04, bytes(LARGEST))),
    "v2 the largest length": version2(TCP4, IPV4, size=65535),
    "v2 half an extension's head": version2(TCP4, IPV4 + b"\x04\x00"),
    "v2 a cut extension": version2(TCP4, IPV4 + b"\x04\x00\x05abcd"),
    "v2 a wrong checksum": checked(TCP4, IPV4)[:-1] + b"\x00",
    "v2 a short checksum": version2(TCP4, IPV4 + extension(0x03, bytes(3))),
}


@in_one_test("preamble, source", GOOD.values())
@in_one_test("chunk", [1, 7, 1 << 20])
def test_a_preamble_tells_an_address(preamble: bytes, source: str | None, chunk: int) -> None:
    read = HaproxyPreamble()
    stream = preamble + b"what follows"
    consumed = 0
    while not read.is_complete:
        piece = stream[consumed : consumed + chunk]
        used = read.feed(piece)
        assert used == len(piece) or read.is_complete
        consumed += used
    assert consumed == len(preamble)
    assert read.source == (None if source is None else ListenAddress.parse(source))


@in_one_test("preamble", BAD.values())
@in_one_test("chunk", [1, 1 << 20])
def test_what_is_no_preamble_is_refused(preamble: bytes, chunk: int) -> None:
    read = HaproxyPreamble()
    with pytest.raises(PreambleError):
        for at in range(0, len(preamble), chunk):
            read.feed(preamble[at : at + chunk])
    assert not read.is_complete


@pytest.mark.parametrize(("preamble", "source"), GOOD.values(), ids=GOOD)
def test_a_part_of_a_preamble_is_none_yet(preamble: bytes, source: str | None) -> None:
    read = HaproxyPreamble()
    assert read.feed(preamble[:-1]) == len(preamble) - 1
    assert not read.is_complete
    assert read.source is None


def test_what_cannot_be_one_is_refused_at_the_first_byte_that_says_so() -> None:
    read = HaproxyPreamble()
    assert read.feed(b"PRO") == 3
    with pytest.raises(PreambleError, match="no preamble"):
        read.feed(b"D")

"""Hostile bytes for the HTTP server: a seeded generator of requests of each nasty kind.

A request names a tenant, a namespace and a topic out of few if it may create something, so that a run leaves a small
catalogue, and any text elsewhere.
"""

from __future__ import annotations

import base64
import gzip
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final
from urllib.parse import quote

from broker_core.listing.pages.page import NO_PARTITION, Position
from broker_core.servers.http.api.topics.cursor import cursor_of
from tests.servers.http.hostile.hostile_texts import LISTING, METHODS, NAMESPACE, ODD_TEXTS, PATHS, PATTERNS

__all__ = ["KINDS", "Hostile", "hostile_requests"]

_JSON: Final = "Content-Type: application/json"
_NDJSON: Final = "Content-Type: application/x-ndjson"


@dataclass(frozen=True, slots=True)
class Hostile:
    """Bytes of one connection, sent piece by piece.

    ``waits`` is whether an answer is to be read to its end; otherwise the client leaves as soon as it has sent all.
    ``half_closes``: it says that it sends no more. ``fine``: the request is a good one, and is answered with 200.
    """

    kind: str
    pieces: tuple[bytes, ...]
    waits: bool = True
    half_closes: bool = False
    fine: bool = False


def hostile_requests(seed: int) -> Iterator[Hostile]:
    """Endless; the same ones for a seed."""
    chance = random.Random(seed)
    kinds = list(KINDS.items())
    while True:
        name, make = chance.choice(kinds)
        made = make(chance)
        yield made if isinstance(made, Hostile) else Hostile(name, (made,))


def _request(
    target: str | bytes, *lines: str, method: str = "GET", body: bytes | None = None, close: bool = True
) -> bytes:
    head = [b"%s %s HTTP/1.1" % (method.encode(), target.encode() if isinstance(target, str) else target)]
    head += [b"Host: localhost", *(line.encode(errors="surrogateescape") for line in lines)]
    if close:
        head.append(b"Connection: close")
    if body is not None:
        head.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join([*head, b"", body or b""])


def _noise(chance: random.Random, most: int = 300) -> bytes:
    return chance.randbytes(chance.randrange(1, most))


def _fine(chance: random.Random) -> Hostile:
    path = chance.choice(
        (LISTING, f"{LISTING}?limit=1", f"{LISTING}?count=true&detail=properties", "/-/live", NAMESPACE)
    )
    return Hostile("fine", (_request(path),), fine=True)


def _broken_lines(chance: random.Random) -> bytes:
    return chance.choice(
        (
            _noise(chance) + b"\r\n\r\n",
            b"GET\r\n\r\n",
            b"GET / HTTP/9.9\r\n\r\n",
            b"GET /\r\n\r\n",
            b"\r\n" * 100 + b"GET / HTTP/1.1\r\n\r\n",
            b"GET  /  HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET " + b"/" * chance.choice((70_000, 200_000)) + b" HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.1\nHost: x\n\n",
            b"GET / HTTP/1.1\rHost: x\r\r",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + _noise(chance) + b"\r\n\r\n",
            b"\x00\x00\x00\x10\x00\x00\x00\x0c" + _noise(chance),
            b"GET http://[::1 HTTP/1.1\r\nHost: [\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n",
            b"GET /"
            + _noise(chance, 50).replace(b"\n", b"")
            + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        )
    )


def _lying_chunks(chance: random.Random) -> bytes:
    head = _request(f"{LISTING}:import", _NDJSON, "Transfer-Encoding: chunked", method="POST")
    line = b'{"name": "chunked"}\n'
    return head + chance.choice(
        (
            b"-1\r\n" + line,
            b"ffffffffffffffffff\r\n" + line,
            b"5\r\n" + line + b"\r\n0\r\n\r\n",
            b"14" + b";x=y" * 20_000 + b"\r\n" + line + b"\r\n0\r\n\r\n",
            b"14\r\n" + line + b"\r\n0\r\n" + b"X: y\r\n" * 5000 + b"\r\n",
            b"0x14\r\n" + line + b"\r\n0\r\n\r\n",
            b" 14 \r\n" + line + b"\r\n0\r\n\r\n",
            b"14\n" + line + b"\n0\n\n",
            b"0\r\n\r\n" + line,
            b"1\r\n{\r\n" * 3000 + b"0\r\n\r\n",
            _noise(chance),
        )
    )


def _header_floods(chance: random.Random) -> bytes:
    lines = chance.choice(
        (
            [f"X-{number}: y" for number in range(chance.choice((60, 70, 3000)))],
            ["X: " + "a" * chance.choice((17_000, 100_000, 400_000))],
            ["Cookie: " + "a=b; " * 3000] * 8,
            ["X: y", " folded: z", "\tmore"],
            ["If-None-Match: " + 'W/"aa", ' * 1500],
            ["X\0: y"],
            ["X: \x01\x02\x7f"],
            [": nothing"],
            ["Content-Length: 0"] * 30,
            ["Content-Length: 18446744073709551616"],
            ["Content-Length: -5"],
            ["Content-Length: 1_0"],
            ["Connection: " + "close, " * 1000],
        )
    )
    return _request(chance.choice(PATHS[:6]), *lines)


def _json_bodies(chance: random.Random) -> bytes:
    deep = chance.choice((500, 100_000))
    body = chance.choice(
        (
            b"[" * deep,
            b'{"a":' * deep + b"1" + b"}" * deep,
            b'{"pattern": ' + b"9" * 100_000 + b"}",
            b'{"pattern": 1e999999, "mode": NaN}',
            b'{"properties": {"\\ud800": "\\udfff"}}',
            b'{"properties": {"a": "' + b"x" * 300_000 + b'"}}',
            b'{"properties": {' + b",".join(b'"%d": ""' % number for number in range(20_000)) + b"}}",
            b'{"partitions": 1e9}',
            b'{"partitions": 99999999999999999999999}',
            b'{"partitions": -0.0, "partitions": 7, "partitions": true}',
            b'\xef\xbb\xbf{"partitions": 1}',
            '{"partitions": 1}'.encode("utf-16"),
            b'{"properties": {"\xff": "\xc3\x28"}}',
            b"null",
            b'"text"',
            b"",
            _noise(chance),
            json.dumps(
                {"pattern": chance.choice(PATTERNS), "mode": chance.choice(("all", "ALL", "?", 3))}
            ).encode(),
        )
    )
    method, path = chance.choice(
        (("POST", f"{NAMESPACE}/explain"), ("PUT", f"{LISTING}/made"), ("PATCH", f"{LISTING}/made"))
    )
    return _request(path, chance.choice((_JSON, _JSON, _NDJSON, "X: y")), method=method, body=body)


def _cursors(chance: random.Random) -> bytes:
    good = cursor_of(
        Position(f"persistent://public/default/{chance.choice(('orders', 'é', 'x' * 900))}", NO_PARTITION)
    )
    text = bytearray(good.encode())
    for _ in range(chance.randrange(4)):
        place = chance.randrange(len(text))
        text[place : place + chance.randrange(2)] = _noise(chance, 3)
    cursor = chance.choice(
        (bytes(text), base64.urlsafe_b64encode(_noise(chance)), b"A" * 60_000, b"%ff", b"")
    )
    target = chance.choice((LISTING, LISTING, "/v1/namespaces", "/v1/namespaces/other/ns/topics")).encode()
    return _request(target + b"?limit=2&cursor=" + quote(cursor, safe="%").encode())


def _patterns(chance: random.Random) -> bytes:
    pattern = quote(chance.choice(PATTERNS) if chance.random() < 0.8 else _noise(chance).decode("latin-1"))[
        :60_000
    ]
    more = chance.choice(
        ("", "&limit=3", "&count=true", "&detail=properties", "&mode=all", "&property=region=eu")
    )
    return _request(f"{LISTING}?pattern={pattern}{more}")


def _odd_paths(chance: random.Random) -> bytes:
    text = chance.choice(ODD_TEXTS)
    path = chance.choice(
        (
            f"{LISTING}/{text}",
            f"/v1/namespaces/{text}/{text}/topics",
            f"/v1/namespaces/public/{text}",
            f"{LISTING}?{text}={text}",
            f"{LISTING}?property={text}",
            f"{NAMESPACE}/changes?since={text}",
            f"{NAMESPACE}/changes?since=a:{text}",
            f"/admin/v2/persistent/{text}/{text}/{text}/partitions",
            f"/admin/v2/persistent/public/default?properties={text}",
            f"/lookup/v2/topic/persistent/public/default/{text}",
            f"/questions?limit={text}",
            f"/{text}",
        )
    )
    # A made topic has one of a few names; here it would be any.
    return _request(path.replace(" ", "%20"), method=chance.choice(("GET", "HEAD", "DELETE", "OPTIONS")))


def _traversals(chance: random.Random) -> bytes:
    step = chance.choice(("../", "..%2f", "%2e%2e/", "..\\", "....//", "%252e%252e%252f", "/./", "//"))
    return _request(chance.choice(PATHS) + "/" + step * chance.randrange(1, 30) + "etc/passwd")


def _method_confusion(chance: random.Random) -> bytes:
    target = chance.choice(
        (*PATHS, f"http://x{LISTING}", "example.org:443", f"https://x@x:99999{LISTING}", "*")
    )
    override = chance.choice((["X-HTTP-Method-Override: DELETE"], [_JSON], []))
    method = chance.choice(METHODS)
    return _request(target, *override, method=method, body=chance.choice((None, b"{}", b"x" * 2000)))


def _smuggling(chance: random.Random) -> bytes:
    inner = _request(f"{LISTING}/orders", method="GET", close=False)
    lines = chance.choice(
        (
            ["Content-Length: 5", "Transfer-Encoding: chunked"],
            ["Transfer-Encoding: chunked", "Transfer-Encoding: identity"],
            ["Transfer-Encoding: xchunked"],
            ["Transfer-Encoding : chunked"],
            ["Transfer-Encoding: chunked, gzip"],
            ["Transfer-Encoding:\tchunked\x0b"],
            ["Content-Length: 3", "Content-Length: 30"],
            ["Content-Length: +3"],
            ["Content-Length: 3, 3"],
            ["Content-Length : 3"],
        )
    )
    head = _request(f"{NAMESPACE}/explain", _JSON, *lines, method="POST", close=False)
    return head + chance.choice((b"0\r\n\r\n", b"{}\n", b"")) + inner + _request("/-/live")


def _slow(chance: random.Random) -> Hostile:
    whole = chance.choice(
        (
            _request(LISTING),
            _request(f"{NAMESPACE}/explain", _JSON, method="POST", body=b'{"mode": "all"}'),
            _request(f"{LISTING}:import", _NDJSON, method="POST", body=b'{"name": "slow"}\n' * 20),
        )
    )
    cuts = sorted(chance.randrange(len(whole)) for _ in range(chance.randrange(2, 12)))
    pieces = tuple(whole[begin:end] for begin, end in zip([0, *cuts], cuts, strict=False))
    if chance.random() < 0.5:
        return Hostile("slow", (*pieces, whole[cuts[-1] :]))
    return Hostile("slow", pieces, waits=False)


def _half_closed(chance: random.Random) -> Hostile:
    whole = chance.choice(
        (_request(LISTING), _request(f"{NAMESPACE}/changes?wait=30"), b"GET / HT", _noise(chance))
    )
    return Hostile("half_closed", (whole,), half_closes=True)


def _left(chance: random.Random) -> Hostile:
    """Asked, and not waited for."""
    whole = chance.choice(
        (
            _request(LISTING),
            _request(LISTING, "Accept: text/event-stream"),
            _request(f"{NAMESPACE}/changes?wait=30"),
            _request(LISTING, close=False) * 50,
            _request(f"{LISTING}?pattern={quote('.*[a-z]{3}.*')}"),
            _request(f"{LISTING}:import", _NDJSON, method="POST", body=b'{"name": "left"}\n' * 2000)[:-7],
        )
    )
    return Hostile("left", (whole,), waits=False)


def _ranges(chance: random.Random) -> bytes:
    ranges = chance.choice(
        ("bytes=0-1", "bytes=-1", "bytes=" + "0-1," * 900, "lines=1-2", "bytes=5-1", "bytes=99999999999-")
    )
    return _request(chance.choice(PATHS[:6]), f"Range: {ranges}", chance.choice(('If-Range: "x"', "X: y")))


def _expectations(chance: random.Random) -> bytes:
    expected = chance.choice(("100-continue", "100-Continue, 100-continue", "200-maybe", ""))
    body = chance.choice((b"{}", b"", None))
    return _request(f"{NAMESPACE}/explain", _JSON, f"Expect: {expected}", method="POST", body=body)


def _upgrades(chance: random.Random) -> bytes:
    return chance.choice(
        (
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00" + _noise(chance),
            _request(
                LISTING,
                "Connection: Upgrade, HTTP2-Settings",
                "Upgrade: h2c",
                "HTTP2-Settings: AAMAAABk",
                close=False,
            ),
            _request(
                LISTING,
                *("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"),
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
                close=False,
            )
            + _noise(chance),
            _request(LISTING, "Upgrade: TLS/1.0", "Connection: Upgrade", close=False) + _request("/-/live"),
        )
    )


def _accepts(chance: random.Random) -> bytes:
    words = (
        "application/json",
        "text/plain",
        "*/*",
        "text/*;q=0.1",
        "a/b;q=2",
        ";;;",
        "application/*;q=nan",
        "q=1",
        "/",
        "é/é",
    )
    accept = ",".join(chance.choice(words) for _ in range(chance.choice((1, 5, 1500))))[:16_000]
    encoding = chance.choice(
        ("gzip", "gzip;q=0", "*;q=0", "identity;q=0, *;q=0", "br,zstd", "gzip," * 3000, "x-gzip")
    )
    return _request(LISTING, f"Accept: {accept}", f"Accept-Encoding: {encoding[:16_000]}")


@cache
def _bombs() -> tuple[bytes, ...]:
    """Some hundred times larger once they are decompressed."""
    whole = (b"\0" * 10_000_000, b'{"name": "z"}\n' * 100_000, b"z" * 3_000_000)
    return tuple(gzip.compress(each, mtime=0) for each in whole)


def _compressed(chance: random.Random) -> bytes:
    bomb = chance.choice(_bombs())
    body = chance.choice(
        (
            bomb,
            bomb[:-9],
            bomb[:50],
            gzip.compress(bomb, mtime=0),
            b"\x1f\x8b" + _noise(chance),
            bomb + _noise(chance),
        )
    )
    encoding = chance.choice(("gzip", "gzip", "gzip", "deflate", "gzip, gzip", "br", "GZIP"))
    return _request(f"{LISTING}:import", _NDJSON, f"Content-Encoding: {encoding}", method="POST", body=body)


def _many_parameters(chance: random.Random) -> bytes:
    query = chance.choice(
        (
            "&".join(f"property=k{number}=v" for number in range(chance.choice((50, 4000)))),
            "&".join("limit=1" for _ in range(1000)),
            "&".join(f"p{number}" for number in range(5000)),
            "property=" + "a" * 40_000 + "=b",
            "limit=0",
            "limit=" + "9" * 5000,
            "limit=%D9%A1",
            "detail=" + "name," * 3000,
            "count=TRUE",
            "mode=%00",
            "&" * 20_000,
        )
    )
    return _request(f"{LISTING}?{query}"[:62_000])


def _writes(chance: random.Random) -> bytes:
    name = chance.choice(
        ("made", "x-partition-1", "made-partition-0", "%E2%98%83", "a%2Fb", "%00", "%FF", "__x", "n" * 200)
    )
    condition = chance.choice(
        ('If-Match: "x"', "If-Match: *", "If-None-Match: *", "If-Match: W/", "If-Match: x", "X: y")
    )
    lines = chance.choice(
        (
            b'{"name": "made", "partitions": 3}\n{"name": "made"}\n',
            b'{"name": "made"}\r\n{"name": "two"}\r\n',
            b"\n\n\n",
            b'{"name": ' + b'"x"' * 1000,
            b'{"name": "' + b"n" * 70_000 + b'"}\n',
            b'{"name": "persistent://other/ns/x"}\n',
            b"\xff\xfe\n",
            b'{"name": "made", "properties": {"region": "\xc3\x28"}}\n',
            _noise(chance),
        )
    )
    query = chance.choice(
        ("", "?exact=true", "?exact=true&max_deletions=0", "?max_deletions=5", "?exact=maybe")
    )
    return chance.choice(
        (
            _request(f"{LISTING}/{name}", _JSON, condition, method="PUT", body=b'{"partitions": 2}'),
            _request(f"{LISTING}/{name}", _JSON, condition, method="PATCH", body=b'{"properties": null}'),
            _request(f"{LISTING}/{name}", condition, method="DELETE"),
            _request(f"{LISTING}:import{query}", _NDJSON, method="POST", body=lines),
            _request(
                f"/admin/v2/persistent/public/default/{name}/partitions", _JSON, method="PUT", body=b"-3"
            ),
            _request(
                f"/admin/v2/persistent/public/default/{name}/properties", _JSON, method="PUT", body=b"[[["
            ),
        )
    )


def _credentials(chance: random.Random) -> bytes:
    value = chance.choice(
        ("Bearer ", "Basic !!!", "Basic " + "Og" * 3000, "Bearer a.b.c", "Negotiate x", "\x80", "Basic \xff")
    )
    return _request(chance.choice(PATHS), f"Authorization: {value}", "X-Original-Principal: admin")


#: What makes a request of a kind, by its name.
KINDS: Final[dict[str, Callable[[random.Random], bytes | Hostile]]] = {
    make.__name__.removeprefix("_"): make
    for make in (
        *(_fine, _broken_lines, _lying_chunks, _header_floods, _json_bodies, _cursors, _patterns, _odd_paths),
        *(
            _traversals,
            _method_confusion,
            _smuggling,
            _slow,
            _half_closed,
            _left,
            _ranges,
            _expectations,
            _upgrades,
        ),
        *(_accepts, _compressed, _many_parameters, _writes, _credentials),
    )
}

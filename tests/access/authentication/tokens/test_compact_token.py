"""The text of a token, read as Pulsar's brokers read it: docs/reference/pulsar-behaviour.md#tokens"""

from __future__ import annotations

import json

import pytest

from broker_core.access.authentication.tokens.compact_token import CompactToken, MalformedToken, read_json
from tests.support.one_test import in_one_test
from tests.support.tokens import b64

HEADER = b64({"alg": "HS256"})
PAYLOAD = b64({"sub": "alice"})
SIGNATURE = bytes(range(32))
WHOLE = HEADER + b"." + PAYLOAD + b"." + b64(SIGNATURE)


def test_the_parts_of_a_token() -> None:
    token = CompactToken.parse(WHOLE)
    assert token.header == {"alg": "HS256"}
    assert json.loads(token.payload) == {"sub": "alice"}
    assert token.signed == HEADER + b"." + PAYLOAD
    assert token.signature == SIGNATURE


def test_a_long_header_is_refused_unread() -> None:
    """Its signature cannot be checked before it is read."""
    long = b64(json.dumps({"alg": "HS256", "x": "y" * 20_000}))
    with pytest.raises(MalformedToken, match="header has more than 16384 bytes"):
        CompactToken.parse(long + b"." + PAYLOAD + b"." + b64(SIGNATURE))


def test_dots_are_not_counted_to_their_end() -> None:
    with pytest.raises(MalformedToken, match="it has more than 3 parts"):
        CompactToken.parse(b"aa." * 100_000)


@pytest.mark.parametrize("behind", [b"=", b"\x00", b"!", b"!!!", b"=\x00", b"*"])
def test_one_token_has_many_spellings(behind: bytes) -> None:
    assert CompactToken.parse(WHOLE + behind).signature == SIGNATURE


def test_bits_that_no_byte_needs_may_be_anything() -> None:
    last = b64(SIGNATURE)[-1:]
    others = {
        bytes([byte]) for byte in b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    } - {last}
    spellings = [other for other in others if CompactToken.parse(WHOLE[:-1] + other).signature == SIGNATURE]
    assert len(spellings) == 3  # of four, two bits


@in_one_test("size", range(1, 40))
def test_any_number_of_bytes(size: int) -> None:
    for behind in (b"", b"=" * (-size % 3)):
        assert CompactToken.parse(
            HEADER + b"." + PAYLOAD + b"." + b64(bytes(size)) + behind
        ).signature == bytes(size)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"Bearer " + WHOLE,
        b" " + WHOLE,
        WHOLE + b"\n",
        WHOLE + b"\x1f",
        WHOLE.replace(b".", b". ", 1),
        HEADER + b"." + PAYLOAD,
        HEADER + b"." + PAYLOAD + b".",
        HEADER + b".." + b64(SIGNATURE),
        b"." + PAYLOAD + b"." + b64(SIGNATURE),
        WHOLE + b".a",
        WHOLE[:-5] + b"!" + WHOLE[-5:],
        WHOLE[:-5] + b"+" + WHOLE[-5:],
        WHOLE + "é".encode(),
        b"\xef\xbb\xbf" + WHOLE,
        HEADER + b"." + PAYLOAD + b".!",
        b64("[]") + b"." + PAYLOAD + b"." + b64(SIGNATURE),
        b64("alg") + b"." + PAYLOAD + b"." + b64(SIGNATURE),
    ],
)
def test_other_text_is_refused(text: bytes) -> None:
    with pytest.raises(MalformedToken):
        CompactToken.parse(text)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"sub":"a"}', {"sub": "a"}),
        (b' \r\n\t{"sub":"a"} and more', {"sub": "a"}),
        (b'{"sub":"a"}{"sub":"b"}', {"sub": "a"}),
        (b'{"sub":"a\xff"}', {"sub": "a\ufffd"}),
        (b'{"a":' + b"[" * 500 + b"]" * 500 + b"}", None),
        (b'{"a":"' + b"[" * 5000 + b'\\"["}', {"a": "[" * 5000 + '"['}),
        (b'{"a":1}' + b"[" * 5000, {"a": 1}),
        (b'{"a":[' + b"[]," * 5000 + b"1]}", None),
    ],
)
def test_json_that_is_read(data: bytes, value: object) -> None:
    found = read_json(data, "payload")
    assert value is None or found == value


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b'"a"',
        b"[]",
        b"{",
        b'{"sub":"a","sub":"a"}',
        b'{"a":{"b":1,"b":2}}',
        b'{"a":NaN}',
        b'{"a":-Infinity}',
        b'\xef\xbb\xbf{"sub":"a"}',
        b'{"a":' + b"[" * 2000 + b"]" * 2000 + b"}",
        b'{"a":' + b'{"a":' * 2000 + b"1" + b"}" * 2001,
        b'{"a":' + b"1" * 1001 + b"}",
        b"{'sub':'a'}",
        b'{"a":"\n"}',
    ],
)
def test_other_json_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedToken) as refused:
        read_json(data, "payload")
    assert "sub" not in str(refused.value)


def test_nothing_of_a_token_is_shown() -> None:
    assert "alice" not in repr(CompactToken.parse(WHOLE))
    with pytest.raises(MalformedToken) as refused:
        CompactToken.parse(WHOLE + b".x")
    assert PAYLOAD.decode() not in str(refused.value)

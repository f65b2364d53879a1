"""The compact form of a signed token: three parts with dots between, Base64 and JSON as Pulsar's brokers read them.

docs/reference/pulsar-behaviour.md#tokens
"""

from __future__ import annotations

import binascii
import json
import re
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from broker_core.compact_json import keys_once
from broker_core.counted import counted

__all__ = ["CompactToken", "MalformedToken", "read_json"]

#: Depth of objects and lists, digits of a number: the limits of Jackson.
_DEEPEST: Final = 1000
#: Bytes of a header. It is read before the signature is checked, so that anybody may send one: 5 MB of them, from many
#: connections, would hold the interpreter for seconds. A header has an algorithm and the id of a key.
_LONGEST_HEADER: Final = 16 * 1024
_MOST_DIGITS: Final = 1000
_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_="
#: The bytes that are cut off at both ends of a part: all that Base64 has no use for.
_IGNORED: Final = bytes(byte for byte in range(256) if byte not in _ALPHABET)
_TEXT: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_BRACKET: Final = re.compile(rb"[{}\[\]]")


class MalformedToken(ValueError):
    """A text that is no signed token. The message says why, and has no part of the token."""


@dataclass(frozen=True, slots=True, repr=False)
class CompactToken:
    """The parts of a token, all unverified: ``payload`` stays text until the signature is verified."""

    header: dict[str, Any]
    payload: bytes
    signed: bytes
    signature: bytes

    @classmethod
    def parse(cls, data: bytes) -> CompactToken:
        """The parts of a token; raises :exc:`MalformedToken`."""
        if not data.isascii():
            raise MalformedToken("it has a byte that is not ASCII")
        if data.split(maxsplit=1) != [data] or any(separator in data for separator in b"\x1c\x1d\x1e\x1f"):
            raise MalformedToken("it is empty, or has white space")
        parts = data.split(b".", 3)  # no more: anybody may send millions of dots
        if len(parts) != 3:
            count = counted(len(parts), "part") if len(parts) < 3 else "more than 3 parts"
            raise MalformedToken(f"it has {count}: a signed token has three")
        header, payload, signature = parts
        if not (header and payload and signature):
            raise MalformedToken("one of its parts is empty")
        if len(header) > _LONGEST_HEADER * 4 // 3:
            raise MalformedToken(f"its header has more than {_LONGEST_HEADER} bytes")
        return cls(
            read_json(_decoded(header), "header"),
            _decoded(payload),
            data[: len(header) + 1 + len(payload)],
            _decoded(signature),
        )


def _decoded(part: bytes) -> bytes:
    """Base64url as the library of Pulsar's brokers decodes it.

    Other characters at both ends and padding are ignored, so that one token has many spellings; a character in the
    midst is an error. Unused bits of the last character may be anything.
    """
    part = part.strip(_IGNORED)
    padding = 2 if part.endswith(b"==") else 1 if part.endswith(b"=") else 0
    size = (len(part) * 6 >> 3) - padding
    if size <= 0:
        raise MalformedToken("one of its parts is empty")
    if part.translate(None, _ALPHABET):
        raise MalformedToken("one of its parts is not Base64url")
    whole = part.replace(b"=", b"A") + b"A" * (-len(part) % 4)
    return binascii.a2b_base64(whole.translate(_TO_STANDARD))[:size]


_TO_STANDARD: Final = bytes.maketrans(b"-_", b"+/")


def read_json(data: bytes, part: str) -> dict[str, Any]:
    """The JSON object at the beginning of ``data``; text after it, and bytes that are no UTF-8, do not matter.

    Raises :exc:`MalformedToken` for everything else, and for names that are there twice, NaN, and great depth.
    """
    if _is_too_deep(data):
        raise MalformedToken(f"its {part} has more than {_DEEPEST} levels")
    text = data.decode(errors="replace").lstrip(" \t\r\n")
    try:
        value, _ = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        # Without json's own message, which may quote the token.
        raise MalformedToken(f"its {part} is not JSON, or has a name twice") from None
    if not isinstance(value, dict):
        raise MalformedToken(f"its {part} is no object of JSON")
    return value


def _is_too_deep(data: bytes) -> bool:
    if data.count(b"{") + data.count(b"[") <= _DEEPEST:
        return False
    depth = 0
    for bracket in _BRACKET.finditer(_TEXT.sub(b"", data)):
        depth += 1 if bracket[0] in b"{[" else -1
        if depth > _DEEPEST:
            return True
        if depth <= 0:
            return False  # the rest comes after the object
    return False


def _no_number(_text: str) -> NoReturn:
    raise ValueError


def _integer(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError
    return int(text)


_DECODER: Final = json.JSONDecoder(object_pairs_hook=keys_once, parse_constant=_no_number, parse_int=_integer)

"""The messages of SCRAM as text: read from untrusted bytes, and written (RFC 5802)."""

from __future__ import annotations

import base64
import binascii
import os
import re
from dataclasses import dataclass, field
from typing import Final

__all__ = [
    "ClientFinal",
    "ClientFirst",
    "ScramError",
    "ServerFirst",
    "from_base64",
    "new_nonce",
    "saslname",
    "to_base64",
]

#: ``n``: no channel binding. ``y``: the client supports it, and believes that the server does not.
_CLIENT_FIRST: Final = re.compile(
    r"(?P<gs2>[ny],(?:a=(?P<authzid>[^,]*))?,)(?P<bare>n=(?P<name>[^,]*),r=(?P<nonce>[^,]+)(?:,[A-Za-z]=[^,]*)*)",
)
_SERVER_FIRST: Final = re.compile(
    r"r=(?P<nonce>[^,]+),s=(?P<salt>[^,]+),i=(?P<iterations>[0-9]{1,9})(?:,[A-Za-z]=[^,]*)*", re.ASCII
)
_CLIENT_FINAL: Final = re.compile(
    r"(?P<before>c=(?P<binding>[^,]+),r=(?P<nonce>[^,]+)(?:,[A-Za-z]=[^,]*)*),p=(?P<proof>[^,]+)"
)
#: The printable characters of ASCII except the comma.
_NONCE: Final = re.compile(r"[\x21-\x2b\x2d-\x7e]+")
_ESCAPED: Final = re.compile(r"=(2C|3D|)")
_NONCE_BYTES: Final = 18


class ScramError(ValueError):
    """A message does not belong to the exchange, or proves nothing. The text shows nothing of the message."""


@dataclass(frozen=True, slots=True)
class ClientFirst:
    """``client-first-message``. ``gs2`` is its beginning, ``bare`` the rest; ``authzid`` is empty if it has none."""

    name: str
    authzid: str
    nonce: str
    gs2: str
    bare: str

    @classmethod
    def parse(cls, message: bytes) -> ClientFirst:
        """First message of a client. Raises :exc:`ScramError`."""
        found = _CLIENT_FIRST.fullmatch(_text(message))
        if found is None:
            raise ScramError("it is no first message of SCRAM")
        return cls(
            _name(found["name"]),
            _name(found["authzid"] or ""),
            _nonce(found["nonce"]),
            found["gs2"],
            found["bare"],
        )


@dataclass(frozen=True, slots=True)
class ServerFirst:
    """``server-first-message``; ``nonce`` is the client's followed by the server's own."""

    nonce: str
    salt: bytes
    iterations: int

    @classmethod
    def parse(cls, message: bytes) -> ServerFirst:
        """First message of a server. Raises :exc:`ScramError`."""
        found = _SERVER_FIRST.fullmatch(_text(message))
        if found is None:
            raise ScramError("it is no first message of a server of SCRAM")
        return cls(_nonce(found["nonce"]), from_base64(found["salt"]), int(found["iterations"]))

    def __str__(self) -> str:
        return f"r={self.nonce},s={to_base64(self.salt)},i={self.iterations}"


@dataclass(frozen=True, slots=True)
class ClientFinal:
    """``client-final-message``; ``before`` is everything before the proof."""

    binding: bytes
    nonce: str
    before: str
    proof: bytes = field(repr=False)

    @classmethod
    def parse(cls, message: bytes) -> ClientFinal:
        """Last message of a client. Raises :exc:`ScramError`."""
        found = _CLIENT_FINAL.fullmatch(_text(message))
        if found is None:
            raise ScramError("it is no final message of SCRAM")
        return cls(
            from_base64(found["binding"]),
            _nonce(found["nonce"]),
            found["before"],
            from_base64(found["proof"]),
        )


def new_nonce() -> str:
    """A random nonce."""
    return to_base64(os.urandom(_NONCE_BYTES))


def saslname(name: str) -> str:
    """A name as escaped in messages."""
    return name.replace("=", "=3D").replace(",", "=2C")


def to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def from_base64(text: str) -> bytes:
    """Bytes of a value of a message. Raises :exc:`ScramError`."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ScramError("a value is not base64") from None


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise ScramError("the message is not UTF-8") from None


def _name(escaped: str) -> str:
    if any(not found[1] for found in _ESCAPED.finditer(escaped)):
        raise ScramError("the name has an equals sign that is not escaped")
    return escaped.replace("=2C", ",").replace("=3D", "=")


def _nonce(text: str) -> str:
    if _NONCE.fullmatch(text) is None:
        raise ScramError("the nonce has characters that no nonce may have")
    return text

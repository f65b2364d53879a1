"""The place of a key or a secret: ``file:PATH``, ``env:NAME`` or ``data:;base64,...``."""

from __future__ import annotations

import base64
import binascii
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, GetCoreSchemaHandler, PlainSerializer
from pydantic_core import CoreSchema

from broker_core.quantities import text_schema

__all__ = ["KeySource", "OptionalKey"]

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DATA: Final = re.compile(r"data:[^,]*;base64,(.*)", re.DOTALL | re.IGNORECASE)
_FORMS: Final = "'file:PATH', 'env:NAME' or 'data:;base64,...'"
#: Bytes of a key, at most: a set of a thousand public keys is half of it.
_LARGEST: Final = 1024**2


@dataclass(frozen=True, slots=True, repr=False)
class KeySource:
    """The place of a key. Its text is never shown: ``repr()`` and ``str()`` hide the content of ``data:``.

    ``kind`` is ``"file"``, ``"env"`` or ``"data"``; ``text`` the path, the name of the variable, or the Base64 text.
    """

    kind: Literal["file", "env", "data"]
    text: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """The source that a setting names; :exc:`ValueError` for other forms."""
        scheme, separator, rest = text.strip().partition(":")
        if separator and scheme == "file":
            path = _path(rest)
            if path:
                return cls("file", path)
            raise ValueError(f"{text!r} names no file")
        if separator and scheme == "env":
            if _VARIABLE.fullmatch(rest):
                return cls("env", rest)
            raise ValueError(f"{text!r} names no variable of the environment")
        data = _DATA.fullmatch(text.strip())
        if data is not None:
            _decoded(data[1], "the text after 'base64,'")
            return cls("data", data[1])
        # The text may be the key itself, so it is not shown.
        raise ValueError(f"it is none of {_FORMS}")

    @property
    def path(self) -> Path | None:
        """The file, or ``None``."""
        return Path(self.text) if self.kind == "file" else None

    def in_folder(self, folder: Path) -> KeySource:
        """A source whose relative path is taken from ``folder``."""
        if self.kind != "file":
            return self
        return KeySource("file", str(folder / Path(self.text).expanduser()))

    def read(self) -> bytes:
        """The bytes of the key: of a file as they are, of a variable PEM text as it is, and other text decoded as
        Base64.

        Raises :exc:`OSError`, or :exc:`ValueError` in words that show nothing of the key.
        """
        if self.kind == "file":
            return _bytes_of(Path(self.text))
        if self.kind == "data":
            return _decoded(self.text, "the text after 'base64,'")
        value = self._variable()
        data = _DATA.fullmatch(value.strip())
        if data is not None:
            return _decoded(data[1], f"the variable {self.text}")
        return value.encode() if "-----BEGIN " in value else _decoded(value, f"the variable {self.text}")

    def read_secret(self) -> bytes:
        """The bytes of a token or a password: read as a key is, but a variable has it as it is, never as Base64.

        Raises as :meth:`read`.
        """
        return self._variable().encode() if self.kind == "env" else self.read()

    def _variable(self) -> str:
        value = os.environ.get(self.text)
        if not value:
            raise ValueError(f"the variable {self.text} is not set")
        return value

    def __str__(self) -> str:
        return "data:;base64,********" if self.kind == "data" else f"{self.kind}:{self.text}"

    def __repr__(self) -> str:
        return f"KeySource({str(self)!r})"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return text_schema(cls, lambda _: f"it is none of {_FORMS}")


def _written(source: KeySource | None) -> str:
    """The source as a setting has it, with its secret."""
    if source is None:
        return ""
    return f"data:;base64,{source.text}" if source.kind == "data" else str(source)


#: The source of a key in settings, ``None`` if the setting is empty.
OptionalKey = Annotated[
    KeySource | None,
    BeforeValidator(lambda value: None if value == "" else value),
    PlainSerializer(_written, return_type=str, when_used="json"),
]


def _path(rest: str) -> str:
    """The path of ``file:PATH``, ``file:///PATH`` and ``file://localhost/PATH``."""
    if not rest.startswith("//"):
        return rest
    host, slash, path = rest[2:].partition("/")
    if host not in ("", "localhost"):
        raise ValueError(f"'file:{rest}' has a host: write 'file:PATH', or 'file:///PATH' from the root on")
    return slash + path


def _decoded(text: str, place: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"{place} is not Base64") from None


def _bytes_of(path: Path) -> bytes:
    # Nothing waits for whoever writes into a pipe.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise ValueError(f"{path} is no file")
        found = stream.read(_LARGEST + 1)
    if len(found) > _LARGEST:
        raise ValueError(f"{path} is larger than {_LARGEST} bytes: it is no key")
    return found

"""JSON: written compactly, on one line; foreign JSON read with each key only once."""

from __future__ import annotations

import json
from collections.abc import Callable
from json.encoder import encode_basestring_ascii
from math import isfinite
from typing import Any, Final

__all__ = ["ascii_json", "ascii_text", "compact_json", "json_encoder", "keys_once", "read_json"]


def json_encoder(
    *, ascii_only: bool, finite: bool = False, default: Callable[[Any], object] | None = None
) -> Callable[[Any], str]:
    """A function from a value to its JSON; ``default`` converts other values to values of JSON.

    With ``finite`` it raises :exc:`ValueError` for numbers that JSON does not have.
    """
    return json.JSONEncoder(
        ensure_ascii=ascii_only, allow_nan=not finite, separators=(",", ":"), default=default
    ).encode


#: A value as JSON for people, files and databases: text stays as it is.
compact_json: Final = json_encoder(ascii_only=False)
#: A value as JSON for HTTP and logs, which no text of a client can break: everything but ASCII is escaped.
ascii_json: Final = json_encoder(ascii_only=True)
#: A text as from :func:`ascii_json`, in a fiftieth of the time: for templates that are filled thousands of times.
ascii_text: Final[Callable[[str], str]] = encode_basestring_ascii


def keys_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON with each key once (an ``object_pairs_hook``): of two values one would be dropped silently.

    Raises :exc:`ValueError`.
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for number, key in enumerate(keys) if key in keys[:number])
        raise ValueError(f"the key {twice!r:.100} is there twice")
    return found


def read_json(text: str | bytes | bytearray) -> Any:
    """The value of JSON that a client, a file or an operator gave: no key is there twice, and every number is finite.

    Raises :exc:`ValueError`, or :exc:`RecursionError` for lists in lists without end.
    """
    return json.loads(text, object_pairs_hook=keys_once, parse_constant=_no_number, parse_float=_finite)


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"the number {text:.100} is too large")
    return number

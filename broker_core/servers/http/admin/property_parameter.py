"""The properties of a listing, ``?properties=k1=v1,k2=v2``, parsed as a broker of 4.2 does.

It decodes the parameter, then each key and each value once more, so ``%2C`` in it is a comma between pairs. A malformed
pair is ignored. docs/reference/pulsar-behaviour.md#the-web-service-of-a-broker
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote_plus

__all__ = ["read_properties"]

_BAD_ESCAPE: Final = re.compile("%(?![0-9A-Fa-f]{2})")


def read_properties(text: str) -> list[tuple[str, str]]:
    """The pairs of the parameter's value, which is decoded once."""
    found = []
    for pair in text.split(","):
        key, equals, value = pair.partition("=")
        if equals and not _BAD_ESCAPE.search(pair):
            decoded = unquote_plus(key.strip())
            if decoded:
                found.append((decoded, unquote_plus(value.strip())))
    return found

"""The bodies of writes as a broker takes them: properties, and numbers of partitions.

A broker reads numbers and truths as text, and texts and fractions as numbers, and so does this.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from broker_core.catalog import MAX_PROPERTIES_BYTES
from broker_core.compact_json import ascii_json, read_json
from broker_core.errors import Cause
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.operation import Body
from broker_core.servers.http.api.problem_details import RequestRefused, refused

__all__ = ["PARTITIONS", "PROPERTIES", "partitions_in", "properties_in"]

_JSON: Final = "application/json"
_METADATA: Final = "application/vnd.partitioned-topic-metadata+json"
_OBJECT: Final = {"type": "object"}
_MOST_BYTES: Final = 4 * MAX_PROPERTIES_BYTES
#: A number as Java reads it in a text; Python takes more, such as an underscore.
_DIGITS: Final = re.compile(r"\s*[+-]?[0-9]{1,10}\s*", re.ASCII)

PROPERTIES: Final = Body({_JSON: _OBJECT}, _MOST_BYTES, required=False)
PARTITIONS: Final = Body({_JSON: {"type": "integer"}, _METADATA: _OBJECT}, _MOST_BYTES, required=False)


async def properties_in(request: ApiRequest) -> dict[str, str]:
    """The properties of the body; none if it is empty. Raises the error 400."""
    return _properties(await _json(request))


async def partitions_in(request: ApiRequest) -> tuple[int, dict[str, str]]:
    """The number of partitions, and the properties of the topic if the body has both. Raises the error 400."""
    value = await _json(request)
    if value is None:
        raise _bad("The request entity cannot be empty.")
    if isinstance(value, Mapping) and request.http.content_type == _METADATA:
        return _number(value.get("partitions", 0)), _properties(value.get("properties"))
    return _number(value), {}


async def _json(request: ApiRequest) -> Any:
    body = bytearray()
    if request.http.body_exists:
        async for piece in request.pieces():
            body += piece
    if not body.strip():
        return None
    try:
        return read_json(body)
    except (ValueError, RecursionError) as error:
        raise _bad(f"The body is no JSON: {error}"[:300]) from None


def _properties(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _bad("The properties are no object of JSON")
    return {key: _text(key, each) for key, each in value.items()}


def _text(key: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, (dict, list)):
        raise _bad(f"The value of the property {key!r:.100} is no text")
    return ascii_json(value)


def _number(value: Any) -> int:
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _bad("The number of partitions is no number")
    return value


def _bad(detail: str) -> RequestRefused:
    return refused(400, detail, Cause.BAD_REQUEST)

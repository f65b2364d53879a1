"""JSON of HTTP responses, and the objects of the API as pydantic models: schema, checks and bytes are of one class."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, TypeAlias

from aiohttp import web
from pydantic import AfterValidator, BaseModel, ConfigDict
from pydantic_core import PydanticCustomError

from broker_core.compact_json import ascii_json

__all__ = ["JsonObject", "Text", "json_response", "schema_of", "time_text", "whole"]


def _unicode(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise PydanticCustomError("unicode", "a text is not valid Unicode (a lone surrogate)") from None
    return text


#: A text that can be in UTF-8.
Text: TypeAlias = Annotated[str, AfterValidator(_unicode)]


def whole(value: Any) -> Any:
    """A number without a fraction as a whole one, any other value as it is: JSON has one type for 3.0 and 3."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def time_text(time: datetime | float) -> str:
    """A time in UTC as bodies have it, to the millisecond: of a datetime, or of seconds since 1970."""
    known = time if isinstance(time, datetime) else datetime.fromtimestamp(time, UTC)
    return known.isoformat(timespec="milliseconds")


class JsonObject(BaseModel):
    """A body, or an object within one. What is not set is left out of its JSON."""

    model_config = ConfigDict(frozen=True, strict=True, defer_build=True)

    def content(self) -> dict[str, Any]:
        """The object's members as plain values."""
        return self.model_dump(exclude_unset=True)

    def json_line(self) -> str:
        """The object as JSON, on one line."""
        return ascii_json(self.content()) + "\n"

    def response(self, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
        """A response with this body."""
        return json_response(status, self.content(), headers)


def json_response(status: int, content: object, headers: Mapping[str, str] | None = None) -> web.Response:
    """A response with this content as JSON, on one line."""
    text = ascii_json(content) + "\n"
    return web.Response(status=status, text=text, headers=headers, content_type="application/json")


def schema_of(content: Mapping[str, Any] | type[JsonObject]) -> dict[str, Any]:
    """The JSON Schema of a body: that of a model without titles and references, or one that is given."""
    if isinstance(content, Mapping):
        return dict(content)
    schema = content.model_json_schema()
    plain: dict[str, Any] = _plain(schema, schema.get("$defs", {}))
    return plain


def _plain(value: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_plain(each, definitions) for each in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        value = definitions[value["$ref"].rpartition("/")[2]] | value
    plain = {
        name: _plain(each, definitions)
        for name, each in value.items()
        if name not in {"$ref", "$defs"}
        and not (name == "title" and isinstance(each, str))
        and not (name == "default" and each is None)
    }
    match plain.get("anyOf"):
        case [{"type": str(kind)} as some, {"type": "null"}]:
            del plain["anyOf"]
            return some | {"type": [kind, "null"]} | plain
    return plain

from __future__ import annotations

from typing import Any

from pydantic import Field

from broker_core.servers.http.api.json_object import JsonObject, schema_of


class Part(JsonObject):
    """A part."""

    title: str
    index: int | None = Field(default=None, description="Where it is.")


class Whole(JsonObject):
    first: Part
    second: Part | None = Field(description="The other one.")
    more: list[Part] = Field(default=[])


PART: dict[str, Any] = {
    "type": "object",
    "description": "A part.",
    "required": ["title"],
    "properties": {
        "title": {"type": "string"},
        "index": {"type": ["integer", "null"], "description": "Where it is."},
    },
}


def test_a_schema_has_no_titles_and_no_references() -> None:
    assert schema_of(Part) == PART
    assert schema_of(Whole) == {
        "type": "object",
        "required": ["first", "second"],
        "properties": {
            "first": PART,
            "second": PART | {"type": ["object", "null"], "description": "The other one."},
            "more": {"type": "array", "items": PART, "default": []},
        },
    }
    assert schema_of({"type": "string"}) == {"type": "string"}


def test_what_is_not_set_is_left_out() -> None:
    whole = Whole(first=Part(title="ü"), second=None)
    assert whole.json_line() == '{"first":{"title":"\\u00fc"},"second":null}\n'
    response = whole.response(201, {"ETag": '"x"'})
    assert (response.status, response.text, response.headers["ETag"]) == (201, whole.json_line(), '"x"')

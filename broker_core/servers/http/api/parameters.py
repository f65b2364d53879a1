"""The parameters of a request, read as its operation declares them; and parameters that several operations have."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from typing import Any, Final
from urllib.parse import parse_qsl, unquote_to_bytes

from aiohttp import web

from broker_core.errors import Cause
from broker_core.names import Mode
from broker_core.redaction import quoted
from broker_core.servers.http.api.operation import HttpOperation, Parameter
from broker_core.servers.http.api.problem_details import RequestRefused, refused

__all__ = [
    "MODE",
    "MOST_ITEMS",
    "PATTERN",
    "PROPERTY",
    "check_path",
    "cursor_of",
    "cursor_parameter",
    "flag_parameter",
    "limit_parameter",
    "number_parameter",
    "one_of",
    "read_parameters",
    "read_query",
]

#: Items of an answer or of a page, and of one change, at the most, unless an operation says otherwise.
MOST_ITEMS: Final = 10_000


def read_parameters(request: web.Request, operation: HttpOperation) -> dict[str, Any]:
    """The value of each declared parameter by name. Raises the error 400 for undeclared parameters and wrong values."""
    check_path(request)
    given = read_query(request)
    declared = {each.name for each in operation.parameters if each.within == "query"}
    for name in given:
        if name not in declared:
            known = f"known: {', '.join(sorted(declared))}" if declared else "there are none here"
            raise _bad(f"unknown parameter {quoted(name)}; {known}")
    values: dict[str, Any] = {}
    for each in operation.parameters:
        if each.within == "path":
            texts = [request.match_info[each.name]]
        elif each.within == "header":
            lines = request.headers.getall(each.name, ())
            texts = [", ".join(lines)] if lines else []  # lines of one name are one list (RFC 9110, 5.3)
        else:
            texts = given.get(each.name, [])
        values[each.name] = _value(each, texts)
    return values


def check_path(request: web.Request) -> None:
    """Refuse a path that is no UTF-8, which aiohttp leaves encoded: it would be the name of something else."""
    path = request.rel_url.raw_path
    if "%" in path:
        try:
            unquote_to_bytes(path).decode()
        except UnicodeDecodeError:
            raise _bad("the path is not in UTF-8") from None


def read_query(request: web.Request) -> dict[str, list[str]]:
    """The texts of each name. Raises the error 400.

    The query is decoded here: bytes that are no UTF-8 must be an error, not another text.
    """
    found: dict[str, list[str]] = {}
    try:
        for name, text in parse_qsl(
            request.rel_url.raw_query_string, keep_blank_values=True, errors="strict"
        ):
            found.setdefault(name, []).append(text)
    except UnicodeDecodeError:
        raise _bad("the query is not in UTF-8") from None
    return found


def _value(parameter: Parameter, texts: list[str]) -> Any:
    if not texts:
        if parameter.required:
            raise _bad(f"parameter {parameter.name} is missing")
        return () if parameter.repeated and parameter.default is None else parameter.default
    if len(texts) > 1 and not parameter.repeated:
        raise _bad(f"parameter {parameter.name} is given {len(texts)} times")
    try:
        values = tuple(parameter.read(text) for text in texts)
    except ValueError as error:
        raise _bad(f"parameter {parameter.name} {error}") from None
    return values if parameter.repeated else values[0]


def _bad(detail: str) -> RequestRefused:
    return refused(400, detail, Cause.BAD_REQUEST)


# -- kinds of values --------------------------------------------------------------------------------------------


def _number(least: int, most: int) -> Callable[[str], int]:
    """Reads a whole number within bounds."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 20 and least <= int(text) <= most):
            raise ValueError(f"must be a number from {least} to {most}, not {quoted(text)}")
        return int(text)

    return read


def number_parameter(
    name: str, description: str, least: int, most: int, default: int | None = None
) -> Parameter:
    """A parameter of a query that is a whole number within bounds, which the document shows too."""
    schema = {"type": "integer", "minimum": least, "maximum": most}
    if default is not None:
        schema["default"] = default
    return Parameter(name, description, read=_number(least, most), schema=schema, default=default)


def limit_parameter(description: str, most: int = MOST_ITEMS, default: int | None = 1000) -> Parameter:
    """The parameter with the wanted number of items of an answer."""
    return number_parameter("limit", description, 1, most, default)


def one_of(words: Iterable[str]) -> Callable[[str], str]:
    """A function that reads one of ``words``."""
    known = tuple(words)

    def read(text: str) -> str:
        if text not in known:
            raise ValueError(f"must be one of {', '.join(known)}, not {quoted(text)}")
        return text

    return read


_FLAGS: Final = {"true": True, "false": False}


def _flag(text: str) -> bool:
    """Reads ``true`` or ``false``."""
    if text not in _FLAGS:
        raise ValueError(f"must be true or false, not {quoted(text)}")
    return _FLAGS[text]


def flag_parameter(name: str, description: str) -> Parameter:
    """A parameter of a query that is ``true`` or ``false``; left out, it is false."""
    schema = {"type": "boolean", "default": False}
    return Parameter(name, description, read=_flag, schema=schema, default=False)


def _property(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ValueError(f"must be KEY=VALUE, not {quoted(text)}")
    return key, value


_MODES: Final = {mode.name.lower(): mode for mode in Mode}


def _mode(text: str) -> Mode:
    """A mode in small letters or, as answers and Pulsar's enum have it, in large ones."""
    return _MODES[one_of(_MODES)(text.lower() if text.isupper() else text)]


PATTERN: Final = Parameter(
    "pattern",
    "A topics pattern, as of a consumer: a regular expression (RE2) that matches the whole name of a topic, without "
    "its partition suffix. The scheme of a name may be left out.",
    example="persistent://public/default/orders-.*",
)
MODE: Final = Parameter(
    "mode",
    "Which domains are listed; in large letters too, as Pulsar's enum has them.",
    read=_mode,
    schema={"type": "string", "enum": [*_MODES, *(mode.name for mode in Mode)], "default": "persistent"},
    default=Mode.PERSISTENT,
)
PROPERTY: Final = Parameter(
    "property",
    "A property of the question, as KEY=VALUE; may be given several times, and the last of a repeated key counts.",
    read=_property,
    schema={"type": "array", "items": {"type": "string", "pattern": "^[^=]+="}},
    repeated=True,
    example=["region=eu"],
)


def cursor_of(text: str) -> str:
    """The cursor of the page after the item of this text, which :func:`cursor_parameter` reads."""
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def cursor_parameter(parse: Callable[[str], object] = str) -> Parameter:
    """The parameter with the ``next`` of a page, whose value is the item's text; ``parse`` raises :exc:`ValueError` for
    a wrong text.
    """

    def read(text: str) -> str:
        try:
            padded = text + "=" * (-len(text) % 4)
            return str(parse(base64.b64decode(padded, altchars=b"-_", validate=True).decode()))
        except ValueError:  # of base64, UTF-8 and `parse`
            raise ValueError("must be `next` of a page") from None

    return Parameter(
        "cursor",
        "`next` of the page before, as it is.",
        read=read,
        schema={"type": "string", "format": "cursor", "pattern": "^[A-Za-z0-9_-]+$", "minLength": 1},
        default="",
    )

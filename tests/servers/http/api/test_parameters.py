from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from broker_core.names import Mode
from broker_core.servers.http.api.operation import HttpOperation, Parameter, Reply, Right
from broker_core.servers.http.api.parameters import (
    MODE,
    PATTERN,
    PROPERTY,
    flag_parameter,
    number_parameter,
    one_of,
    read_parameters,
)
from broker_core.servers.http.api.problem_details import RequestRefused


async def _never(_request: Any) -> web.Response:
    raise AssertionError


OPERATION = HttpOperation(
    "GET",
    "/x",
    "x",
    "x",
    Right.CREDENTIALS,
    _never,
    {200: Reply("x")},
    parameters=(
        PATTERN,
        MODE,
        PROPERTY,
        number_parameter("limit", "x", 1, 10),
        flag_parameter("count", "x"),
        Parameter("If-Match", "x", within="header"),
        Parameter("what", "x", read=one_of(["a", "b"]), required=True),
    ),
)


def read(query: str, **headers: str) -> dict[str, Any]:
    return read_parameters(make_mocked_request("GET", f"/x?{query}", headers=headers), OPERATION)


def test_the_lines_of_a_header_are_one_list() -> None:
    lines = CIMultiDict([("If-Match", '"x"'), ("if-match", 'W/"y", "z"')])
    request = make_mocked_request("GET", "/x?what=a", headers=lines)
    assert read_parameters(request, OPERATION)["If-Match"] == '"x", W/"y", "z"'


def test_values_and_defaults() -> None:
    assert read("what=a") == {
        "pattern": None,
        "mode": Mode.PERSISTENT,
        "property": (),
        "limit": None,
        "count": False,
        "If-Match": None,
        "what": "a",
    }
    assert read("what=a&mode=NON_PERSISTENT")["mode"] is Mode.NON_PERSISTENT
    values = read(
        "what=b&limit=10&count=true&mode=all&pattern=a%2Bb%20c+d&property=k=v%3Dw&property=k=",
        **{"If-Match": '"x"'},
    )
    assert values == {
        "pattern": "a+b c d",
        "mode": Mode.ALL,
        "property": (("k", "v=w"), ("k", "")),
        "limit": 10,
        "count": True,
        "If-Match": '"x"',
        "what": "b",
    }


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ("", "parameter what is missing"),
        ("what=c", "parameter what must be one of a, b, not 'c'"),
        ("what=a&what=b", "parameter what is given 2 times"),
        ("what=a&limit=0", "parameter limit must be a number from 1 to 10, not '0'"),
        ("what=a&limit=1e1", "parameter limit must be a number"),
        ("what=a&limit=%D9%A1", "parameter limit must be a number"),
        ("what=a&limit=" + "9" * 5000, "parameter limit must be a number"),
        ("what=a&count=yes", "parameter count must be true or false"),
        ("what=a&mode=All", "parameter mode must be one of persistent, non_persistent, all"),
        ("what=a&mode=every", "parameter mode must be one of persistent, non_persistent, all"),
        ("what=a&property=k", "parameter property must be KEY=VALUE"),
        ("what=a&property==v", "parameter property must be KEY=VALUE"),
        ("what=a&x=", "unknown parameter 'x'; known: count, limit"),
        ("what=a&pattern=%ff", "the query is not in UTF-8"),
    ],
)
def test_what_is_wrong_is_said(query: str, detail: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        read(query)
    assert refused.value.problem.status == 400
    assert detail in refused.value.problem.detail
    assert len(refused.value.problem.detail) < 400

from __future__ import annotations

import pytest
from aiohttp import web

from broker_core.access.asker import ACTIONS
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.operation import HttpOperation, Parameter, Reply, Right


async def _answer(_request: ApiRequest) -> web.StreamResponse:
    return web.Response()


def declared(path: str, needs: Right = Right.CREDENTIALS, *parameters: Parameter) -> HttpOperation:
    return HttpOperation("GET", path, "x", "x", needs, _answer, {200: Reply("x")}, parameters=parameters)


def test_what_a_path_names_is_declared() -> None:
    assert declared("/v1/{tenant}/{namespace}").has_namespace
    assert not declared("/v1/x/{topic}", Right.NOTHING, Parameter("topic", "x", within="path")).has_namespace
    with pytest.raises(ValueError, match=r"\{topic\} of its path is not declared"):
        declared("/v1/{tenant}/{namespace}/{topic}")


def test_a_part_of_a_route_is_any_text() -> None:
    assert declared("/v1/{tenant}/{namespace}").route == "/v1/{tenant:[^/]+}/{namespace:[^/]+}"


def test_a_right_in_a_namespace_needs_one() -> None:
    with pytest.raises(ValueError, match="no namespace to ask"):
        declared("/v1/x", Right.ADMIN)


def test_rights_are_actions_of_gates() -> None:
    assert {right.action for right in Right} - {None} <= set(ACTIONS)


def test_what_changes_something_declares_what() -> None:
    arguments = ("/v1/x", "x", "x", Right.CREDENTIALS, _answer, {200: Reply("x")})
    with pytest.raises(ValueError, match="what it changes is not declared"):
        HttpOperation("DELETE", *arguments)
    assert HttpOperation("DELETE", *arguments, changes="delete_topic").changes == "delete_topic"

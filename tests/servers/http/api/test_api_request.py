from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import StreamReader
from aiohttp.base_protocol import BaseProtocol
from aiohttp.test_utils import make_mocked_request

from broker_core.access.asker import Asker
from broker_core.errors import Cause, ListingFailed
from broker_core.names import NamespaceName
from broker_core.reloads import LiveSettings
from broker_core.servers.http.api.api_request import ApiRequest, Body
from broker_core.servers.http.api.problem_details import RequestRefused
from broker_core.servers.http.api.services import ApiServices
from broker_core.settings import Settings
from tests.support.pipelines import Made, made


def asked(parts: Made, body: bytes = b"", **match: str) -> ApiRequest:
    services: Any = ApiServices(parts.pipeline, parts.permits, parts.metrics, None, LiveSettings(Settings()))  # type: ignore[arg-type]
    loop = asyncio.get_running_loop()
    stream = StreamReader(BaseProtocol(loop), 2**16, loop=loop)
    stream.feed_data(body)
    stream.feed_eof()
    http = make_mocked_request("POST", "/x", match_info=match, payload=stream)
    return ApiRequest(http, services, Asker(), {}, Body({"application/json": {}}, most_bytes=10_000))


async def test_the_namespace_of_the_path() -> None:
    async with made() as parts:
        assert asked(parts, tenant="t", namespace="n").namespace() == NamespaceName("t", "n")
        with pytest.raises(ListingFailed) as failed:
            asked(parts, tenant="t", namespace="n n").namespace()
        assert failed.value.cause is Cause.NAME


async def test_the_deadline_is_that_of_a_listing() -> None:
    async with made() as parts:
        now, budget = asyncio.get_running_loop().time, parts.pipeline.options.time_budget
        begun = now()
        assert begun + budget <= asked(parts).deadline <= now() + budget


async def test_a_body_in_json() -> None:
    async with made() as parts:
        assert await asked(parts, b'{"a": [1]}').json() == {"a": [1]}
        for wrong in (b"", b"{", b"\xff", b"[" * 9000):
            with pytest.raises(RequestRefused) as refused:
                await asked(parts, wrong).json()
            assert refused.value.problem.status == 400

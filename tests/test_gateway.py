"""The cluster behind a gateway: it is open until the end, and credentials are kept where they are passed on."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import pytest

from broker_core.gateway import opened_gateway
from broker_core.memory.permits import Permits
from broker_core.metrics.metrics import Metrics
from broker_core.settings import Settings
from tests.support.fake_cluster import FakeCluster


@pytest.mark.parametrize("passes_on", [False, True])
async def test_the_cluster_of_the_settings(passes_on: bool) -> None:
    async with FakeCluster() as cluster, AsyncExitStack() as stack:
        upstream: dict[str, Any] = {"service_url": cluster.url}
        tables: dict[str, Any] = {"upstream": upstream}
        if passes_on:
            upstream["forward"] = "client"
            tables["authentication"] = {"methods": ["basic"], "basic": {"file": "users"}}
        settings = Settings.model_validate(tables)
        assert settings.upstream is not None
        opened, sessions = await opened_gateway(
            settings, settings.upstream, Metrics(), Permits(), stack, identifies=False
        )
        assert opened.problem is None
        assert (sessions is not None) is passes_on

"""The testing kit for authors of plugins: a server in one line, a question as a plugin gets it, and its commands.

    async with serve(plugins={"mine": plugin}, topics=["persistent://public/default/a"]) as server:
        assert (await server.list("public/default", pattern="a.*", role="auditor")).topics == [...]

Tests that are not async use the fixture ``broker_core_serve`` (:mod:`broker_core.testing.pytest_plugin`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker_core.testing.blocking_server import BlockingServer
    from broker_core.testing.invoke_command import Invoked, invoke
    from broker_core.testing.make_request import listing_request
    from broker_core.testing.metric_families import MetricFamilies
    from broker_core.testing.pipeline_question import PipelineAnswer
    from broker_core.testing.server import Server, serve

__all__ = [
    "BlockingServer",
    "Invoked",
    "MetricFamilies",
    "PipelineAnswer",
    "Server",
    "invoke",
    "listing_request",
    "serve",
]

# pytest loads this package in every run, and must not start slower for it.
__getattr__ = lazy_exports(
    __name__,
    {
        "BlockingServer": ".blocking_server",
        "Invoked": ".invoke_command",
        "MetricFamilies": ".metric_families",
        "PipelineAnswer": ".pipeline_question",
        "Server": ".server",
        "invoke": ".invoke_command",
        "listing_request": ".make_request",
        "serve": ".server",
    },
)

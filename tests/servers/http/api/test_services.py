from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.catalog import AsyncCatalog, SqliteCatalog
from broker_core.metrics.metrics import Metrics
from broker_core.reloads import LiveSettings
from broker_core.servers.http.api.problem_details import RequestRefused
from broker_core.servers.http.api.services import ApiServices, HttpMetrics, needs_catalog
from broker_core.service import Find
from broker_core.settings import HttpSettings, Settings
from tests.support.api_serving import NAMESPACE, ApiServed
from tests.support.pipelines import Made, made


def services(parts: Made, catalog: AsyncCatalog | None) -> ApiServices:
    find = Find(parts.pipeline, catalog)
    return ApiServices(
        parts.pipeline, parts.permits, parts.metrics, find, LiveSettings(Settings()), catalog=catalog
    )


async def test_an_operation_for_the_catalogue_says_so_before_a_cluster(tmp_path: Path) -> None:
    async with made() as parts:
        with SqliteCatalog(tmp_path / "topics.sqlite") as file:
            catalog = AsyncCatalog(file)
            assert needs_catalog(services(parts, catalog)) is catalog
        with pytest.raises(RequestRefused) as refused:
            needs_catalog(services(parts, None))
        assert refused.value.problem.status == 501
        assert services(parts, None).http == HttpSettings()


def test_operations_are_there_from_the_start() -> None:
    metrics = Metrics()
    shown = HttpMetrics(metrics)
    shown.expect(["one"])
    value = metrics.registry.get_sample_value
    labels = {"operation": "one", "status": "503"}
    assert value("broker_core_http_requests_total", labels) == 0
    shown.answered("one", 503, 0.01, 100)
    shown.answered("one", None, 0.02, 50)
    assert value("broker_core_http_requests_total", labels) == 1
    assert value("broker_core_http_requests_total", {"operation": "one", "status": "cut"}) == 1
    assert value("broker_core_http_response_bytes_total", {"operation": "one"}) == 150
    assert value("broker_core_http_request_seconds_count", {"operation": "one"}) == 2


async def test_answers_are_counted_with_their_bytes(served: ApiServed) -> None:
    sizes = 0
    for query, status in ((NAMESPACE + "/topics", "200"), (NAMESPACE + "/topics?x=1", "400")):
        said = await served.ask(query)
        sizes += len(said.body)
        assert served.sample("http_requests_total", operation="listTopics", status=status) == 1
    counted = served.sample("http_response_bytes_total", operation="listTopics")
    assert sizes <= counted <= sizes + 1000
    assert served.sample("http_connections") == 1
    assert served.sample("http_requests_under_way") == 0

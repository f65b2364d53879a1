from __future__ import annotations

from broker_core.metrics.metrics import Metrics
from broker_core.servers.http.api.services import HttpMetrics
from tests.support.api_serving import NAMESPACE, ApiServed


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

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator

import pytest

from broker_core.names import NON_PERSISTENT, PERSISTENT, NamespaceName, TopicName
from broker_core_postgres.fill.filling_failed import FillingFailed
from broker_core_postgres.fill.sync.pulsar_admin import (
    AdminAddress,
    AdminRefused,
    PulsarAdmin,
    UnusableAnswer,
)
from broker_core_postgres.fill.sync.retry import Retry, TransientFailure
from tests.support.admin_server import AdminServer, Fault
from tests.support.eventually import eventually
from tests.support.ports import free_port

NAMESPACE = NamespaceName("public", "default")
QUICK = Retry(tries=3, first=0.001)
HOSTILE = [
    "%2F",
    "100%",
    "q?x=1",
    "#frag",
    "semi;colon",
    "a b",
    "a+b",
    "日本",
    "😀",
    "tab\tname",
    "a\\b",
    "&amp",
    "a:b@c",
]


@pytest.fixture
async def server() -> AsyncIterator[AdminServer]:
    async with AdminServer() as server:
        server.namespace("public/default", ["orders"])
        yield server


def client(server: AdminServer, **options: object) -> PulsarAdmin:
    address = AdminAddress(server.url, token=options.pop("token", None))  # type: ignore[arg-type]
    return PulsarAdmin(address, **({"retry": QUICK} | options))  # type: ignore[arg-type]


async def test_it_reads_what_there_is(server: AdminServer) -> None:
    server.namespace("public/empty")
    server.namespace("other/one", ["x-partition-0", "x-partition-1"])
    server.partitioned["other/one", PERSISTENT] = ["x"]
    server.namespace("other/one", ["np"], domain=NON_PERSISTENT)
    async with client(server) as admin:
        assert await admin.tenants() == ["other", "public"]
        assert list(map(str, await admin.namespaces("public"))) == ["public/default", "public/empty"]
        one = NamespaceName("other", "one")
        assert await admin.topics(one, PERSISTENT) == ["x-partition-0", "x-partition-1"]
        assert await admin.topics(one, NON_PERSISTENT) == ["np"]
        assert await admin.partitioned_topics(one, PERSISTENT) == ["x"]
        assert await admin.topics(NamespaceName("public", "empty"), PERSISTENT) == []


async def test_each_name_is_asked_for_as_it_is(server: AdminServer) -> None:
    topics = [TopicName(PERSISTENT, NAMESPACE, name) for name in HOSTILE]
    server.properties = {str(topic): {"name": topic.local} for topic in topics}
    async with client(server) as admin:
        assert [await admin.properties(topic) for topic in topics] == [{"name": name} for name in HOSTILE]


async def test_a_topic_that_is_gone_has_no_properties(server: AdminServer) -> None:
    topic = TopicName(PERSISTENT, NAMESPACE, "orders")
    path = "persistent/public/default/orders/properties"
    server.fail(path, Fault(404, '{"reason": "Topic not found"}'), Fault(204))
    async with client(server) as admin:
        assert await admin.properties(topic) is None
        assert await admin.properties(topic) == {}


@pytest.mark.parametrize("body", [Fault(200), Fault(204), Fault(200, "null"), Fault(200, "{}")])
async def test_a_topic_without_properties_has_none(server: AdminServer, body: Fault) -> None:
    server.fail("persistent/public/default/orders/properties", body)
    async with client(server) as admin:
        assert await admin.properties(TopicName(PERSISTENT, NAMESPACE, "orders")) == {}
    assert len(server.requests) == 1


async def test_topics_are_as_pulsar_admin_and_producers_make_them(server: AdminServer) -> None:
    names = ["plain", *(f"{name}-partition-0" for name in ("auto", *HOSTILE)), "lone-partition-3"]
    for domain in (PERSISTENT, NON_PERSISTENT):
        server.namespace("public/default", names, domain=domain)
        server.partitioned["public/default", domain] = ["auto", "unused", *HOSTILE]
    async with client(server) as admin:
        for domain in (PERSISTENT, NON_PERSISTENT):
            for name in ("plain", "auto", "unused", *HOSTILE):
                assert await admin.properties(TopicName(domain, NAMESPACE, name)) == {}
            assert await admin.properties(TopicName(domain, NAMESPACE, "gone")) is None
            server.properties[f"{domain}://public/default/auto"] = {"made": "later"}
            assert await admin.properties(TopicName(domain, NAMESPACE, "auto")) == {"made": "later"}
        assert await admin.properties(TopicName(PERSISTENT, NAMESPACE, "lone-partition-3")) is None
    assert not any(path.startswith("non-persistent") for path in server.requests if "properties" in path)


@pytest.mark.parametrize("answer", [[], "x", 3], ids=["list", "text", "number"])
async def test_metadata_are_checked(server: AdminServer, answer: object) -> None:
    server.answers["non-persistent/public/default/x/partitions"] = answer
    async with client(server) as admin:
        with pytest.raises(UnusableAnswer, match="metadata of non-persistent://public/default/x"):
            await admin.properties(TopicName(NON_PERSISTENT, NAMESPACE, "x"))


@pytest.mark.parametrize("empty", [Fault(200), Fault(204), Fault(200, " \n")], ids=["200", "204", "blank"])
async def test_a_list_is_never_empty_for_want_of_an_answer(server: AdminServer, empty: Fault) -> None:
    for path in ("tenants", "namespaces/public", "persistent/public/default"):
        server.fail(path, empty, always=True)
    async with client(server) as admin:
        for reading in (admin.tenants(), admin.namespaces("public"), admin.topics(NAMESPACE, PERSISTENT)):
            with pytest.raises(TransientFailure, match="the answer is empty"):
                await reading
        assert len(server.requests) == 9


async def test_a_partition_without_its_topic_has_no_properties_to_give(server: AdminServer) -> None:
    server.topics["public/default", PERSISTENT] = ["x-partition-1"]
    server.fail("persistent/public/default/x/properties", Fault(409))
    async with client(server) as admin:
        assert await admin.properties(TopicName(PERSISTENT, NAMESPACE, "x-partition-1")) is None
        with pytest.raises(AdminRefused, match="409"):
            await admin.properties(TopicName(PERSISTENT, NAMESPACE, "x"))


@pytest.mark.parametrize(
    "fault",
    [
        Fault(500),
        Fault(503, '{"reason": "starting"}'),
        Fault(429, headers={"Retry-After": "0"}),
        Fault(408),
        Fault(200, '["persistent://public/default/ord'),
        Fault(200, "<html>proxy</html>"),
        Fault(cut=True),
    ],
    ids=["500", "503", "429", "408", "short", "html", "cut"],
)
async def test_what_passes_is_asked_again(server: AdminServer, fault: Fault) -> None:
    server.fail("persistent/public/default", fault, fault)
    async with client(server) as admin:
        assert await admin.topics(NAMESPACE, PERSISTENT) == ["orders"]
    assert server.requests == ["persistent/public/default"] * 3


async def test_what_does_not_pass_is_an_error_and_no_empty_list(server: AdminServer) -> None:
    server.fail("persistent/public/default", Fault(500, '{"reason": "broken\\u001b"}'), always=True)
    async with client(server) as admin:
        with pytest.raises(TransientFailure, match="500"):
            await admin.topics(NAMESPACE, PERSISTENT)
        with pytest.raises(AdminRefused, match=r"404 .Namespace does not exist.") as refused:
            await admin.topics(NamespaceName("public", "none"), PERSISTENT)
    assert refused.value.status == 404
    assert len(server.requests) == 3 + 1


async def test_no_answer_in_time_is_an_error(server: AdminServer) -> None:
    server.hanging.add("tenants")
    async with client(server, timeout=0.3, retry=Retry(tries=2, first=0.001)) as admin:
        with pytest.raises(TransientFailure, match=r"no answer within 0\.3 s"):
            await admin.tenants()
        assert len(server.requests) == 2


async def test_nobody_there_is_an_error() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    async with PulsarAdmin(AdminAddress(url), retry=QUICK) as admin:
        with pytest.raises(TransientFailure, match=f"GET {url}/admin/v2/tenants"):
            await admin.tenants()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"topics": []}, "no list of strings"),
        ([1], "no list of strings"),
        (None, "no list of strings"),
        (["orders"], "no persistent topic of public/default"),
        (["persistent://public/other/orders"], "no persistent topic"),
        (["non-persistent://public/default/orders"], "no persistent topic"),
        (["persistent://public/default/a/b"], "no '/'"),
        (["persistent://public/default/a\0b"], "no NUL"),
        (["persistent://public/default/\ud800"], "surrogate"),
        (["persistent://public/default/"], "empty"),
    ],
    ids=["object", "number", "null", "local", "namespace", "domain", "slash", "nul", "surrogate", "empty"],
)
async def test_a_list_is_checked_whole(server: AdminServer, answer: object, why: str) -> None:
    server.answers["persistent/public/default"] = answer
    async with client(server) as admin:
        with pytest.raises(UnusableAnswer, match=why):
            await admin.topics(NAMESPACE, PERSISTENT)
    assert len(server.requests) == 1


@pytest.mark.parametrize("names", [["public"], ["a/b/c"], ["other/ns"], ["public/a b"]])
async def test_namespaces_are_checked(server: AdminServer, names: list[str]) -> None:
    server.answers["namespaces/public"] = names
    async with client(server) as admin:
        with pytest.raises(UnusableAnswer, match="list of namespaces of public is unusable"):
            await admin.namespaces("public")


@pytest.mark.parametrize(
    "answer", [[], {"a": 1}, {"a": None}, {"a": "x" * 70_000}], ids=["list", "1", "null", "large"]
)
async def test_properties_are_checked(server: AdminServer, answer: object) -> None:
    server.answers["persistent/public/default/orders/properties"] = answer
    async with client(server) as admin:
        with pytest.raises(UnusableAnswer, match="properties of persistent://public/default/orders"):
            await admin.properties(TopicName(PERSISTENT, NAMESPACE, "orders"))


async def test_an_answer_of_no_end_is_refused(server: AdminServer) -> None:
    server.namespace("public/default", [f"topic-{number:06}" for number in range(5_000)])
    async with client(server, most_bytes=100_000) as admin:
        with pytest.raises(UnusableAnswer, match="larger than 100000 bytes"):
            await admin.topics(NAMESPACE, PERSISTENT)


async def test_no_more_requests_at_once_than_allowed(server: AdminServer) -> None:
    topics = [TopicName(PERSISTENT, NAMESPACE, str(number)) for number in range(40)]
    async with client(server, parallel=3) as admin:
        await asyncio.gather(*(admin.properties(topic) for topic in topics))
        assert len(server.requests) == 40
    assert 1 <= server.most_at_once <= 3


async def test_a_redirect_is_followed_with_the_token(server: AdminServer) -> None:
    async with AdminServer() as owner:
        owner.namespace("public/default", ["there"])
        path = "persistent/public/default"
        server.fail(
            path, Fault(307, headers={"Location": f"{owner.url}/admin/v2/{path}?authoritative=false"})
        )
        owner.answers[f"{path}?authoritative=false"] = ["persistent://public/default/there"]
        async with client(server, token="secret") as admin:
            assert await admin.topics(NAMESPACE, PERSISTENT) == ["there"]
        assert [headers["Authorization"] for headers in server.headers + owner.headers] == [
            "Bearer secret"
        ] * 2


@pytest.mark.parametrize("location", [None, "ftp://127.0.0.1/x", "//["], ids=["none", "ftp", "broken"])
async def test_a_redirect_to_nowhere_is_an_error(server: AdminServer, location: str | None) -> None:
    server.fail(
        "tenants", Fault(307, headers={} if location is None else {"Location": location}), always=True
    )
    async with client(server) as admin:
        with pytest.raises(UnusableAnswer, match="redirect"):
            await admin.tenants()


async def test_redirects_end(server: AdminServer) -> None:
    server.fail("tenants", Fault(307, headers={"Location": "/admin/v2/tenants"}), always=True)
    async with client(server) as admin:
        with pytest.raises(UnusableAnswer, match="more than 5 redirects"):
            await admin.tenants()
    assert len(server.requests) == 6


async def test_a_run_that_is_cancelled_leaves_no_request(server: AdminServer) -> None:
    server.hanging.add("tenants")
    async with client(server) as admin:
        asking = asyncio.create_task(admin.tenants())
        await eventually(lambda: server.requests == ["tenants"])
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://localhost:8080", "http://localhost:8080/admin/v2"),
        ("https://pulsar/", "https://pulsar/admin/v2"),
        ("http://localhost:8080/admin/v2/", "http://localhost:8080/admin/v2"),
        ("http://localhost/behind/a proxy", "http://localhost/behind/a%20proxy/admin/v2"),
        ("http://[::1]:8080", "http://[::1]:8080/admin/v2"),
    ],
)
def test_the_address_may_be_written_in_several_ways(url: str, base: str) -> None:
    assert AdminAddress(url).base == base


@pytest.mark.parametrize(
    "url", ["", "localhost:8080", "pulsar://localhost:6650", "http://", "http://a:b", "http://x?y=1"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(FillingFailed):
        _ = AdminAddress(url).base


def test_secrets_are_not_shown() -> None:
    with pytest.raises(FillingFailed) as refused:
        _ = AdminAddress("http://me:" + "hidden@localhost").base
    assert "hidden" not in str(refused.value)
    assert "hidden" not in repr(AdminAddress("http://x", token="hidden", tls=ssl.create_default_context()))

"""``broker_core.testing.serve``: whole servers in one line."""

from __future__ import annotations

import pytest

from broker_core import ListingRequest, TopicListingResult, hookimpl
from broker_core.client import ClientError, LookupSession, ServerRefused, default_client_version
from broker_core.client.kafka import AdminClient
from broker_core.errors import ServerError
from broker_core.names import Mode
from broker_core.testing import serve

PREFIX = "persistent://public/default/"


class Lister:
    """Answers with its names, or fails."""

    def __init__(self, *names: str, error: Exception | None = None) -> None:
        self.names = names
        self.error = error
        self.requests: list[ListingRequest] = []

    @hookimpl
    async def broker_core_list_topics(self, request: ListingRequest) -> TopicListingResult:
        self.requests.append(request)
        if self.error is not None:
            raise self.error
        if not self.names:
            return TopicListingResult.pass_through()
        return TopicListingResult.success([PREFIX + name for name in self.names])


async def test_the_catalogue_answers_where_there_is_no_plugin() -> None:
    async with serve(topics=[PREFIX + "a", PREFIX + "b", "non-persistent://public/default/c"]) as server:
        assert sorted((await server.list("public/default")).topics) == [PREFIX + "a", PREFIX + "b"]
        assert len(await server.list("public/default", mode=Mode.ALL)) == 3
        answer = await server.list("public/default", pattern=".*/a")
        assert answer.topics == [PREFIX + "a"]
        again = await server.list("public/default", pattern=".*/a", topics_hash=answer.topics_hash)
        assert not again.changed


async def test_the_first_plugin_is_asked_first() -> None:
    first, second, third = Lister(), Lister("second"), Lister("third")
    async with serve({"first": first, "second": second, "third": third}, topics=[PREFIX + "a"]) as server:
        answer = await server.list("public/default", properties={"team": "eu"})
        assert answer.topics == [PREFIX + "second"]
    assert [len(lister.requests) for lister in (first, second, third)] == [1, 1, 0]
    assert first.requests[0].properties == {"team": "eu"}


async def test_the_settings_are_tables() -> None:
    fails = Lister(error=RuntimeError("no database"))
    async with serve(
        {"fails": fails},
        topics={PREFIX + "a": {"team": "eu"}, PREFIX + "b": {"team": "us"}},
        settings={"catalog": {"property_keys": ["team"]}, "plugins": {"fails": {"on_failure": "next"}}},
    ) as server:
        assert (await server.list("public/default", properties={"team": "us"})).topics == [PREFIX + "b"]


async def test_a_failure_is_what_a_client_gets() -> None:
    async with serve({"fails": Lister(error=RuntimeError("no database"))}) as server:
        with pytest.raises(ServerRefused, match="fails") as refused:
            await server.list("public/default")
        assert refused.value.code is ServerError.MetadataError


class Asked:
    """Lists one topic that names its asker over the protocol."""

    @hookimpl
    async def broker_core_list_topics(self, request: ListingRequest) -> TopicListingResult:
        asker = request.asker
        self.connection = asker.connection
        name = f"{asker.role}+{asker.remote_address}+{asker.client_version}+{asker.transport}"
        return TopicListingResult.success([PREFIX + name])


async def test_who_asks_is_up_to_the_question() -> None:
    plugin = Asked()
    async with serve({"asked": plugin}) as server:

        async def asker(**who: str) -> list[str]:
            (topic,) = (await server.list("public/default", **who)).topics  # type: ignore[arg-type]
            return topic.removeprefix(PREFIX).split("+")

        mine = await asker()
        assert (mine[0], mine[2:]) == ("None", [default_client_version(), "pulsar"])
        assert mine[1].startswith("127.0.0.1:")
        java = await asker(client_version="Pulsar-Java-v4.2.4")
        assert (java[0], java[2]) == ("None", "Pulsar-Java-v4.2.4")
        auditor = {"role": "auditor", "address": "203.0.113.7:4711", "client_version": "Pulsar-Java-v4.2.4"}
        assert await asker(**auditor) == ["auditor", "203.0.113.7:4711", "Pulsar-Java-v4.2.4", "pulsar"]
        connection = plugin.connection
        assert (await asker(role="other", address="::1"))[:2] == ["other", "[::1]:0"]
        assert plugin.connection is not connection
        await asker(**auditor)
        assert plugin.connection is connection
        with pytest.raises(ValueError, match="address 'x:y'"):
            await asker(address="x:y")


async def test_nobody_else_gets_a_role() -> None:
    async with serve({"asked": Asked()}) as server:
        await server.list("public/default", role="auditor", client_version="Pulsar-Java-v4.2.4")
        for version in ("Pulsar-Java-v4.2.4", "auditor", "broker-core-testing-"):
            async with LookupSession(server.url, client_version=version) as client:
                (topic,) = (await client.get_topics("public/default")).topics
                assert topic.startswith(f"{PREFIX}None+127.0.0.1:")


async def test_a_mode_may_be_its_word() -> None:
    topics = [PREFIX + "a", "non-persistent://public/default/b"]
    async with serve(topics=topics) as server:
        assert sorted((await server.list("public/default", mode="all")).topics) == sorted(topics)
        assert (await server.list("public/default", mode="non-persistent")).topics == topics[1:]
        with pytest.raises(ValueError, match="Invalid mode 'al'"):
            await server.list("public/default", mode="al")


async def test_http_and_metrics() -> None:
    async with serve(topics=[PREFIX + "a"]) as server:
        assert server.http_url.startswith("http://127.0.0.1:")
        before = await server.metrics()
        await server.list("public/default")
        after = await server.metrics()
        sample = "broker_core_listing_requests_total"
        served = {"outcome": "served", "plan": "none"}
        assert after.value(sample, **served) == before.value(sample, **served) + 1


async def test_topics_come_and_go() -> None:
    async with serve(topics=[PREFIX + "a"]) as server:
        await server.create(PREFIX + "b", partitions=2)
        assert sorted((await server.list("public/default")).topics) == [
            PREFIX + name for name in ("a", "b-partition-0", "b-partition-1")
        ]
        await server.delete(PREFIX + "b")
        assert (await server.list("public/default")).topics == [PREFIX + "a"]


async def test_a_partition_may_come_without_its_topic() -> None:
    async with serve(topics=[PREFIX + "x-partition-3"]) as server:
        await server.create(PREFIX + "y-partition-1", properties={"team": "eu"})
        found = (await server.list("public/default")).topics
        assert sorted(found) == [PREFIX + "x-partition-3", PREFIX + "y-partition-1"]


async def test_other_clients_can_ask_until_it_ends() -> None:
    async with serve(topics=[PREFIX + "a"]) as server:
        url = server.url
        async with LookupSession(url) as client:
            assert (await client.get_topics("public/default")).topics == [PREFIX + "a"]
    with pytest.raises(ClientError):
        async with LookupSession(url):
            pass


async def test_what_is_wrong_with_a_plugin_or_a_topic_stops_the_start() -> None:
    class Misspelt:
        @hookimpl
        def broker_core_list_topic(self) -> None:
            """No hook has this name."""

    with pytest.raises(Exception, match="misspelt"):
        async with serve({"misspelt": Misspelt()}):
            pass
    with pytest.raises(ValueError, match="no-name"):
        async with serve(topics=["no-name"]):
            pass


async def test_kafka_clients_are_served_where_that_is_asked_for() -> None:
    async with (
        serve(topics=["persistent://public/default/a"], settings={"kafka": {}}) as server,
        AdminClient(server.kafka_address) as client,
    ):
        assert [topic.name for topic in await client.list_topics()] == ["a"]
    async with serve() as server:
        with pytest.raises(RuntimeError, match="no listener for Kafka clients"):
            _ = server.kafka_address

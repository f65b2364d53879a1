"""Scenes of `broker_core.consumer`, which sends its pattern, its properties and the hash, each second here.

What it must never do cannot be seen from its messages alone: subscriptions and backlogs are read at the broker.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import pulsar

from broker_core.catalog import SqliteCatalog
from broker_core.consumer import BlockingRegexConsumer
from broker_core.names import TopicName
from tests.interop.stage import Stage, partitions_of
from tests.support.eventually import eventually_sync
from tests.support.served import Served

__all__ = [
    "closes_what_leaves_and_goes_on_when_it_returns",
    "goes_on_elsewhere",
    "is_listed_by_another_server",
    "is_told_by_its_properties",
    "loses_nothing_while_the_plugin_fails",
    "settles_messages",
    "shares_and_takes_over",
]

_SOON = 120.0


def _consumer(stage: Stage, pattern: str, name: str, **options: Any) -> BlockingRegexConsumer:
    options = {"period": 1.0, "initial_position": pulsar.InitialPosition.Earliest, **options}
    return BlockingRegexConsumer(stage.service_url, pattern, name, **options)


def _texts(consumer: BlockingRegexConsumer, count: int) -> list[str]:
    texts = []
    for _ in range(count):
        message = consumer.receive(_SOON)
        texts.append(message.data().decode())
        assert consumer.acknowledge(message)
    return texts


def _all_acknowledged(stage: Stage, topics: Sequence[str], name: str) -> None:
    """Wait until a subscription has no backlog: the client sends acknowledgements a moment later."""
    eventually_sync(
        lambda: all(stage.broker.admin.backlog(topic, name) == 0 for topic in topics),
        _SOON,
        what="no backlog",
    )


def is_told_by_its_properties(stage: Stage) -> None:
    """Consumers that differ in a property receive the messages of different topics of one pattern, and of new ones."""
    namespace = stage.namespace("consumer-teams")
    admin = stage.broker.admin
    base = f"persistent://{namespace}"
    for local, partitions in (("blue", 0), ("blue-p", 3), ("red", 0), ("nobodys", 0)):
        admin.create_topic(f"{base}/{local}", partitions)
    blue = [f"{base}/blue", *partitions_of(f"{base}/blue-p", 3)]
    red = [f"{base}/red"]
    stage.gate.rule(namespace, teams={"blue": blue, "red": red})
    sent = stage.publish([*blue, *red, f"{base}/nobodys"], "hello")
    pattern = f"{base}/.*"
    wanted = {
        "blue": {(topic, text) for topic, text in sent if topic in blue},
        "red": {(topic, text) for topic, text in sent if topic in red},
        "green": set(),
    }
    with ExitStack() as stack:
        consumers = {
            team: stack.enter_context(stage.property_consumer(team, pattern, {"team": team}))
            for team in wanted
        }
        for consumer in consumers.values():
            consumer.wait_subscribed()
        admin.create_topic(f"{base}/blue-late", 2)
        blue += partitions_of(f"{base}/blue-late", 2)
        stage.gate.rule(namespace, teams={"blue": blue, "red": red})
        wanted["blue"] |= stage.publish(blue[-2:], "late")
        for team, consumer in consumers.items():
            consumer.wait_received(wanted[team], _SOON)
        so_far = len(stage.gate.questions(namespace))
        stage.gate.wait_for_questions(namespace, so_far + 6, _SOON)
        for team, consumer in consumers.items():
            assert dict(consumer.received) == dict.fromkeys(wanted[team], 1), team
        for topic in blue:
            assert admin.subscriptions(topic) == {"blue"}
        assert admin.subscriptions(f"{base}/red") == {"red"}
        assert admin.subscriptions(f"{base}/nobodys") == set()
    questions = [asked for asked in stage.gate.questions(namespace) if asked["properties"]]
    assert {asked["pattern"] for asked in questions} == {pattern}


def closes_what_leaves_and_goes_on_when_it_returns(stage: Stage) -> None:
    """A topic with partitions leaves the listing and returns: nothing is lost or comes twice, no subscription goes."""
    namespace = stage.namespace("consumer-leaving")
    admin = stage.broker.admin
    base = f"persistent://{namespace}"
    admin.create_topic(f"{base}/stays")
    admin.create_topic(f"{base}/leaves", 2)
    leaving = partitions_of(f"{base}/leaves", 2)
    everything = [f"{base}/stays", *leaving]
    stage.gate.rule(namespace, teams={"blue": everything})
    wanted = stage.publish(everything, "before")
    with stage.property_consumer("leaving", f"{base}/.*", {"team": "blue"}) as consumer:
        consumer.wait_subscribed()
        consumer.wait_received(wanted, _SOON)
        for topics, shown in (([f"{base}/stays"], "one"), ([], "none")):
            stage.gate.rule(namespace, teams={"blue": topics})
            gone = [topic for topic in everything if topic not in topics]
            eventually_sync(
                lambda gone=gone: not any(admin.consumers(topic, "leaving") for topic in gone),  # type: ignore[misc]
                _SOON,
                what="closed consumers",
            )
            wanted |= stage.publish(everything, f"while {shown} is shown")
            for topic in everything:
                assert admin.subscriptions(topic) == {"leaving"}
        stage.gate.rule(namespace, teams={"blue": everything})
        consumer.wait_received(wanted, _SOON)
        wanted |= stage.publish(everything, "after")
        consumer.wait_received(wanted, _SOON)
        assert dict(consumer.received) == dict.fromkeys(wanted, 1)
    for topic in everything:
        assert admin.subscriptions(topic) == {"leaving"}


def loses_nothing_while_the_plugin_fails(stage: Stage) -> None:
    """The listings fail, the consumer is killed and started again: topics and places stay, a new topic is found."""
    namespace = stage.namespace("consumer-failing")
    admin = stage.broker.admin
    base = f"persistent://{namespace}"
    admin.create_topic(f"{base}/parts", 3)
    topics = partitions_of(f"{base}/parts", 3)
    wanted = stage.publish(topics, "before")
    with stage.property_consumer("failing", f"{base}/.*", {}) as consumer:
        consumer.wait_subscribed()
        stage.gate.rule(namespace, fail=True)
        admin.create_topic(f"{base}/late", 2)
        late = stage.publish(partitions_of(f"{base}/late", 2), "late")
        stage.gate.wait_for_failures(namespace, 3, 60)
        wanted |= stage.publish(topics, "meanwhile")
        consumer.wait_received(wanted, _SOON)
        assert dict(consumer.received) == dict.fromkeys(wanted, 1)
        stage.gate.rule(namespace)
        # Its pauses after failures are at most 15 s long.
        consumer.wait_received(wanted | late, 15 + _SOON)
        received = consumer.received
        consumer.kill()
    after = stage.publish([*topics, *partitions_of(f"{base}/late", 2)], "while it is away")
    with stage.property_consumer("failing", f"{base}/.*", {}) as consumer:
        consumer.wait_received(after, 60)
        # What it had not acknowledged when it was killed may come twice.
        assert consumer.received.keys() <= after | received.keys()
    for topic in (*topics, *partitions_of(f"{base}/late", 2)):
        assert admin.subscriptions(topic) == {"failing"}


def settles_messages(stage: Stage) -> None:
    """Negative acknowledgements come again, then go to the dead letters, which it does not consume."""
    namespace = stage.namespace("consumer-settling")
    admin = stage.broker.admin
    base = f"persistent://{namespace}"
    admin.create_topic(f"{base}/orders")
    options: dict[str, Any] = {
        "consumer_type": pulsar.ConsumerType.Shared,
        "negative_ack_redelivery_delay_ms": 100,
        "dead_letter_policy": pulsar.ConsumerDeadLetterPolicy(2, initial_subscription_name="undertaker"),
    }
    with _consumer(stage, f"{base}/.*", "settling", **options) as consumer:
        stage.publish([f"{base}/orders"], "bad")
        counts = []
        for _ in range(3):
            message = consumer.receive(_SOON)
            counts.append(message.redelivery_count())
            assert consumer.negative_acknowledge(message)
        assert counts == [0, 1, 2]
        dead = f"{base}/orders-settling-DLQ"
        eventually_sync(
            lambda: dead in admin.topics(namespace) and admin.subscriptions(dead),
            _SOON,
            what="a topic of dead letters",
        )
        eventually_sync(lambda: admin.backlog(dead, "undertaker") == 1, _SOON, what="the dead letter")
        stage.publish([f"{base}/orders"], "good")
        assert _texts(consumer, 1) == ["good"]
        _all_acknowledged(stage, [f"{base}/orders"], "settling")
        so_far = len(stage.gate.questions(namespace))
        stage.gate.wait_for_questions(namespace, so_far + 2, _SOON)
        assert consumer.topics == (f"{base}/orders",)
        assert admin.subscriptions(dead) == {"undertaker"}
        # Unsubscribing is what it does when it is told to.
        consumer.unsubscribe()
        assert admin.subscriptions(f"{base}/orders") == set()


def shares_and_takes_over(stage: Stage) -> None:
    """Two shared consumers divide the messages; of two failover consumers the second goes on where the first ended."""
    namespace = stage.namespace("consumer-types")
    admin = stage.broker.admin
    base = f"persistent://{namespace}"
    topics = [f"{base}/orders-{number}" for number in range(3)]
    for topic in topics:
        admin.create_topic(topic)
    shared = {"consumer_type": pulsar.ConsumerType.Shared, "queue_size": 6}
    with (
        _consumer(stage, f"{base}/.*", "shared", **shared) as first,
        _consumer(stage, f"{base}/.*", "shared", **shared) as second,
    ):
        assert [admin.consumers(topic, "shared") for topic in topics] == [2, 2, 2]
        wanted = [text for number in range(20) for _, text in stage.publish(topics, f"shared {number}")]
        seen: list[list[str]] = [[], []]

        def all_came() -> bool:
            for consumer, texts in zip((first, second), seen, strict=True):
                for message in consumer.batch_receive(10, 0.05):
                    assert consumer.acknowledge(message)
                    texts.append(message.data().decode())
            return sum(map(len, seen)) >= len(wanted)

        eventually_sync(all_came, _SOON, what="all messages, at either consumer")
        assert all(seen)
        assert sorted(seen[0] + seen[1]) == sorted(wanted)
    failover = {
        "consumer_type": pulsar.ConsumerType.Failover,
        "initial_position": pulsar.InitialPosition.Latest,
    }
    with _consumer(stage, f"{base}/.*", "failover", consumer_name="b", **failover) as standby:
        with _consumer(stage, f"{base}/.*", "failover", consumer_name="a", **failover) as active:
            stage.publish(topics, "one")
            stage.publish(topics, "two")
            consumers = [active, standby]

            def one_each() -> dict[str, Any]:
                for consumer in consumers:
                    for message in consumer.batch_receive(1, 0.1):
                        last[message.topic_name()] = message
                        assert consumer.acknowledge_cumulative(message)
                return last if len(last) == len(topics) else {}

            last: dict[str, Any] = {}
            eventually_sync(one_each, _SOON, what="a message of each topic")
        # What the first one had received and not acknowledged, or not received, comes to the second.
        eventually_sync(
            lambda: (
                standby.batch_receive(10, 0.1) is not None
                and all(admin.backlog(topic, "failover") <= 1 for topic in topics)
            ),
            _SOON,
            what="acknowledged messages",
        )
        stage.publish(topics, "three")
        texts: list[str] = []

        def taken_over() -> bool:
            for message in standby.batch_receive(10, 0.1):
                texts.append(message.data().decode())
                assert standby.acknowledge_cumulative(message)
            return texts.count("three") == len(topics)

        eventually_sync(taken_over, _SOON, what="the messages after the take-over")
        _all_acknowledged(stage, topics, "failover")


def goes_on_elsewhere(stage: Stage) -> None:
    """Positions: all topics from the beginning, one behind a message, all at the end; and all that is open again."""
    namespace = stage.namespace("consumer-seeking")
    base = f"persistent://{namespace}"
    topics = [f"{base}/a", f"{base}/b"]
    for topic in topics:
        stage.broker.admin.create_topic(topic)
    with _consumer(stage, f"{base}/.*", "seeking") as consumer:
        for number in range(3):
            stage.publish(topics, f"{number}")
        messages = [consumer.receive(_SOON) for _ in range(6)]
        for message in messages:
            assert consumer.acknowledge(message)
        # Acknowledgements that arrive behind a seek would be of what comes once more.
        _all_acknowledged(stage, topics, "seeking")
        consumer.seek(pulsar.MessageId.earliest)
        assert sorted(_texts(consumer, 6)) == ["0", "0", "1", "1", "2", "2"]
        second = next(
            each for each in messages if each.topic_name() == topics[0] and each.data() == b"1"
        ).message_id()
        _all_acknowledged(stage, topics, "seeking")
        consumer.seek(second, topics[0])
        assert _texts(consumer, 1) == ["2"]
        consumer.seek(pulsar.MessageId.earliest)
        consumer.seek(pulsar.MessageId.latest)
        stage.publish(topics, "new")
        first, other = consumer.receive(_SOON), consumer.receive(_SOON)
        assert {first.data(), other.data()} == {b"new"}
        consumer.redeliver_unacknowledged_messages()
        assert _texts(consumer, 2) == ["new", "new"]
        assert str(consumer.last_message_id(topics[0])) == str(
            next(each for each in (first, other) if each.topic_name() == topics[0]).message_id()
        )


def is_listed_by_another_server(stage: Stage) -> None:
    """Listings of a server with a catalogue of properties, messages of the brokers: topics by their properties."""
    namespace = stage.namespace("consumer-catalogue")
    base = f"persistent://{namespace}"
    catalog = SqliteCatalog(stage.folder / "catalog.db")
    for local, team in (("orders-1", "blue"), ("orders-2", "red"), ("orders-3", "blue")):
        stage.broker.admin.create_topic(f"{base}/{local}")
        catalog.create(TopicName.parse(f"{base}/{local}"), properties={"team": team})
    stage.broker.admin.create_topic(f"{base}/whole", 2)
    catalog.create(TopicName.parse(f"{base}/whole"), properties={"team": "green"})  # without its partitions
    catalog.close()
    settings = {"catalog": {"path": str(stage.folder / "catalog.db"), "property_keys": ["team"]}}
    with Served(stage.folder / "catalogue", settings) as catalogue:
        blue = {"lookup_url": catalogue.service_url, "properties": {"team": "blue"}}
        with _consumer(stage, f"{base}/.*", "blue", **blue) as consumer:
            assert sorted(consumer.topics) == [f"{base}/orders-1", f"{base}/orders-3"]
            stage.publish([f"{base}/orders-{number}" for number in (1, 2, 3)], "hello")
            assert _texts(consumer, 2) == ["hello", "hello"]
            assert stage.broker.admin.subscriptions(f"{base}/orders-2") == set()
        green = {"lookup_url": catalogue.service_url, "properties": {"team": "green"}}
        with _consumer(stage, f"{base}/.*", "green", **green) as consumer:
            partitions = [f"{base}/whole-partition-{number}" for number in range(2)]
            stage.publish(partitions, "first")
            stage.publish(partitions, "second")
            messages = [consumer.receive(60) for _ in range(4)]
            assert {message.topic_name() for message in messages} == set(partitions)
            assert all(consumer.acknowledge(message) for message in messages)
            _all_acknowledged(stage, partitions, "green")
            again = next(message for message in messages if message.data() == b"second")
            consumer.seek(again.message_id(), again.topic_name())

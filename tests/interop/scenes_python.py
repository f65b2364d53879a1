"""Scenes of the official Python client, which lists without a pattern and sends no properties.

What it does about a topic with partitions that leaves the listing cannot be undone: it unsubscribes. So these scenes
have such topics, and count subscriptions and messages at the broker.
"""

from __future__ import annotations

from tests.interop.stage import Stage, partitions_of

__all__ = ["loses_nothing_while_the_plugin_fails", "reads_a_large_listing", "sees_what_the_plugin_shows"]

_SOON = 120.0
#: Seconds from one discovery to the next one, 60 unless the library is set: some changes of a scene fit between them.
_PERIOD = 5


def sees_what_the_plugin_shows(stage: Stage) -> None:
    """Messages of exactly the topics that are visible, and of one that is created after the subscription."""
    namespace = stage.namespace("python-shown")
    stage.gate.rule(namespace, hide="secret")
    admin = stage.broker.admin
    base = f"persistent://{namespace}"
    for local, partitions in (("orders", 0), ("orders-p", 3), ("secret", 0), ("secret-p", 2), ("other", 0)):
        admin.create_topic(f"{base}/{local}", partitions)
    shown = [f"{base}/orders", *partitions_of(f"{base}/orders-p", 3)]
    hidden = [f"{base}/secret", *partitions_of(f"{base}/secret-p", 2)]
    wanted = stage.publish(shown, "early")
    stage.publish([*hidden, f"{base}/other"], "early", past_the_gateway=True)

    with stage.python_consumers("shown") as consumers:
        consumers.subscribe("shown", f"{base}/(orders|secret).*", period=_PERIOD)
        consumers.wait_received("shown", wanted, _SOON)
        admin.create_topic(f"{base}/orders-late")
        admin.create_topic(f"{base}/secret-late")
        wanted |= stage.publish([f"{base}/orders-late"], "late")
        stage.publish([f"{base}/secret-late", *hidden], "late", past_the_gateway=True)
        consumers.wait_received("shown", wanted, _SOON)
        # The subscription to a hidden topic would have been made before the one to the new topic.
        assert dict(consumers.received("shown")) == dict.fromkeys(wanted, 1)
        for topic in (*shown, f"{base}/orders-late"):
            assert admin.subscriptions(topic) == {"shown"}
        for topic in (*hidden, f"{base}/secret-late", f"{base}/other"):
            assert admin.subscriptions(topic) == set()

    questions = stage.gate.questions(namespace)
    assert {asked["pattern"] for asked in questions} == {None}
    assert all(asked["client"].startswith("Pulsar-CPP-") for asked in questions)
    assert all(not asked["properties"] for asked in questions)


def loses_nothing_while_the_plugin_fails(stage: Stage) -> None:
    """Two periods long the plugin fails: topics, subscriptions and their places stay, then a new topic is found."""
    namespace = stage.namespace("python-failing")
    admin = stage.broker.admin
    base = f"persistent://{namespace}"
    admin.create_topic(f"{base}/plain")
    admin.create_topic(f"{base}/parts", 3)
    topics = [f"{base}/plain", *partitions_of(f"{base}/parts", 3)]
    wanted = stage.publish(topics, "before")

    with stage.python_consumers("failing") as consumers:
        consumers.subscribe("failing", f"{base}/.*", period=_PERIOD)
        consumers.wait_received("failing", wanted, _SOON)
        stage.gate.rule(namespace, fail=True)
        admin.create_topic(f"{base}/late", 2)
        late = stage.publish(partitions_of(f"{base}/late", 2), "late")
        stage.gate.wait_for_failures(namespace, 2, _SOON)
        # It still consumes what it had, and only that.
        wanted |= stage.publish(topics, "meanwhile")
        consumers.wait_received("failing", wanted, _SOON)
        assert dict(consumers.received("failing")) == dict.fromkeys(wanted, 1)
        for topic in topics:
            assert admin.subscriptions(topic) == {"failing"}
        stage.gate.rule(namespace)
        wanted |= late
        consumers.wait_received("failing", wanted, _SOON)
        wanted |= stage.publish(topics, "after")
        consumers.wait_received("failing", wanted, _SOON)
        # A subscription that had been deleted and made again would have sent everything twice.
        assert dict(consumers.received("failing")) == dict.fromkeys(wanted, 1)
        for topic in (*topics, *partitions_of(f"{base}/late", 2)):
            assert admin.subscriptions(topic) == {"failing"}
            assert admin.consumers(topic, "failing") == 1


def reads_a_large_listing(stage: Stage) -> None:
    """This client has no limit for a frame: it gets a listing that would close a Java client's connection."""
    namespace = stage.namespace("python-large")
    topic = f"persistent://{namespace}/orders"
    stage.broker.admin.create_topic(topic)
    stage.gate.rule(namespace, topics=[topic], noise=100_000)
    wanted = stage.publish([topic], "found")
    with stage.python_consumer("large", f"persistent://{namespace}/orders.*") as consumer:
        consumer.wait_subscribed()
        consumer.wait_received(wanted, _SOON)

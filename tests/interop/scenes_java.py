"""Scenes of the official Java client, which sends its pattern, its hash and its consumer properties.

For each topic with partitions it asks a second question, a quoted literal without properties; without an answer its
`subscribe` fails as a whole.
"""

from __future__ import annotations

import pytest
import re2

from tests.interop.stage import Stage, partitions_of

__all__ = [
    "finds_what_is_created_later",
    "is_told_by_its_properties",
    "loses_nothing_while_the_plugin_fails",
    "outlives_a_listing_beyond_its_limit",
]

#: Its discovery period is 1 s here.
_SOON = 120.0


def is_told_by_its_properties(stage: Stage) -> None:
    """Consumers that differ in a property receive the messages of different topics of one pattern."""
    namespace = stage.namespace("java-teams")
    admin = stage.broker.admin
    base = f"persistent://{namespace}"
    admin.create_topic(f"{base}/blue")
    admin.create_topic(f"{base}/blue-p", 3)
    admin.create_topic(f"{base}/red")
    admin.create_topic(f"{base}/nobodys")
    blue = [f"{base}/blue", *partitions_of(f"{base}/blue-p", 3)]
    red = [f"{base}/red"]
    stage.gate.rule(namespace, teams={"blue": blue, "red": red})
    sent = stage.publish([*blue, *red, f"{base}/nobodys"], "hello")
    pattern = f"{base}/.*"

    with stage.java_consumers("teams") as java:
        java.subscribe("blue", pattern, properties={"team": "blue", "unrelated": "x"})
        java.subscribe("red", pattern, properties={"team": "red"})
        java.subscribe("nobody", pattern, properties={"team": "green"})
        java.subscribe("everybody", pattern)
        java.wait_received("everybody", sent, _SOON)
        wanted = {
            "everybody": sent,
            "blue": {(topic, text) for topic, text in sent if topic in blue},
            "red": {(topic, text) for topic, text in sent if topic in red},
            "nobody": set(),
        }
        for name, messages in wanted.items():
            java.wait_received(name, messages, _SOON)
        # Two more answers to each: nothing joins later that was not there at once.
        so_far = len(stage.gate.questions(namespace))
        stage.gate.wait_for_questions(namespace, so_far + 8, _SOON)
        for name, messages in wanted.items():
            assert dict(java.received(name)) == dict.fromkeys(messages, 1), name
        assert admin.subscriptions(f"{base}/blue") == {"blue", "everybody"}
        assert admin.subscriptions(f"{base}/red") == {"red", "everybody"}
        assert admin.subscriptions(f"{base}/nobodys") == {"everybody"}

    questions = stage.gate.questions(namespace)
    assert {"team": "blue", "unrelated": "x"} in [asked["properties"] for asked in questions]
    assert all(asked["client"].startswith("Pulsar-Java-") for asked in questions)
    # The second question: what asked for blue-p's partitions, or for a topic of the pattern's text to place a watcher,
    # gave neither properties nor a hash.
    literal = [asked for asked in questions if asked["pattern"] != pattern]
    assert literal
    for asked in literal:
        assert "blue-p" in asked["pattern"] or re2.escape(".*") in asked["pattern"]
        assert not asked["properties"]
        assert asked["hash"] is None
    # And it polls, properties included: it has no watcher that went past the gateway.
    assert [asked["properties"] for asked in questions].count({"team": "red"}) > 1


def finds_what_is_created_later(stage: Stage) -> None:
    """A topic, and one with partitions, that the plugin lets in after the subscription; a hidden one stays out."""
    namespace = stage.namespace("java-later")
    stage.gate.rule(namespace, hide="secret")
    admin = stage.broker.admin
    base = f"persistent://{namespace}"
    admin.create_topic(f"{base}/first")
    wanted = stage.publish([f"{base}/first"], "first")

    with stage.java_consumers("later") as java:
        java.subscribe("later", f"{base}/.*", properties={"who": "cares"})
        java.wait_received("later", wanted, _SOON)
        admin.create_topic(f"{base}/secret-1")
        admin.create_topic(f"{base}/plain-1")
        admin.create_topic(f"{base}/parts-1", 2)
        stage.publish([f"{base}/secret-1"], "not for you", past_the_gateway=True)
        wanted |= stage.publish([f"{base}/plain-1", *partitions_of(f"{base}/parts-1", 2)], "later")
        java.wait_received("later", wanted, _SOON)
        assert dict(java.received("later")) == dict.fromkeys(wanted, 1)
        assert admin.subscriptions(f"{base}/secret-1") == set()


def loses_nothing_while_the_plugin_fails(stage: Stage) -> None:
    """The plugin fails so long that its circuit opens: topics and places stay, and a new topic is found after."""
    namespace = stage.namespace("java-failing")
    admin = stage.broker.admin
    base = f"persistent://{namespace}"
    admin.create_topic(f"{base}/plain")
    admin.create_topic(f"{base}/parts", 3)
    topics = [f"{base}/plain", *partitions_of(f"{base}/parts", 3)]
    wanted = stage.publish(topics, "before")

    with stage.java_consumers("failing") as java:
        java.subscribe("failing", f"{base}/.*")
        java.wait_received("failing", wanted, _SOON)
        stage.gate.rule(namespace, fail=True)
        admin.create_topic(f"{base}/late", 2)
        late = stage.publish(partitions_of(f"{base}/late", 2), "late")
        # Five open the circuit; two more are the trials of a half-open one, five seconds apart.
        stage.gate.wait_for_failures(namespace, 7, 60)
        wanted |= stage.publish(topics, "meanwhile")
        java.wait_received("failing", wanted, _SOON)
        assert dict(java.received("failing")) == dict.fromkeys(wanted, 1)
        for topic in topics:
            assert admin.subscriptions(topic) == {"failing"}
            assert admin.consumers(topic, "failing") == 1
        stage.gate.rule(namespace)
        wanted |= late
        java.wait_received("failing", wanted, _SOON)
        wanted |= stage.publish(topics, "after")
        java.wait_received("failing", wanted, _SOON)
        assert dict(java.received("failing")) == dict.fromkeys(wanted, 1)


def outlives_a_listing_beyond_its_limit(stage: Stage) -> None:
    """A listing too large for this client's frames is an error that says so, and its connection stays open."""
    namespace = stage.namespace("java-limit")
    admin = stage.broker.admin
    base = f"persistent://{namespace}"
    admin.create_topic(f"{base}/orders")
    stage.gate.rule(namespace, topics=[f"{base}/orders"])
    wanted = stage.publish([f"{base}/orders"], "first")

    with stage.java_consumers("limit") as java:
        java.subscribe("patient", f"{base}/.*")
        java.wait_received("patient", wanted, _SOON)
        # 100,000 names that all match the pattern: about 10 MB, where 5,253,120 bytes are the limit.
        stage.gate.rule(namespace, topics=[f"{base}/orders"], noise=100_000)
        with pytest.raises(RuntimeError, match=r"NotAllowed.*max_message_size"):
            java.subscribe("hopeless", f"{base}/.*")
        # Polls were refused meanwhile, and what it had it still has.
        asked = len(stage.gate.questions(namespace))
        stage.gate.wait_for_questions(namespace, asked + 2, _SOON)
        wanted |= stage.publish([f"{base}/orders"], "meanwhile")
        java.wait_received("patient", wanted, _SOON)
        admin.create_topic(f"{base}/late")
        stage.gate.rule(namespace, topics=[f"{base}/orders", f"{base}/late"])
        wanted |= stage.publish([f"{base}/late"], "late")
        java.wait_received("patient", wanted, _SOON)
        assert dict(java.received("patient")) == dict.fromkeys(wanted, 1)

"""Scenes of two roles, with the official clients over TLS: each gets its own topics and messages, no other's."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.interop.programs import DrivenConsumers
from tests.interop.secured_stage import BILLING, ORDERS, SHARED, SecuredStage
from tests.support.eventually import eventually_sync

__all__ = [
    "each_role_of_go_has_its_own",
    "each_role_of_java_has_its_own",
    "each_role_of_python_has_its_own",
    "outlives_its_token",
    "outlives_restarts",
]

#: The topics of the shared namespace begin with this word of their role.
_WORDS = {ORDERS: "orders", BILLING: "billing"}
_SOON = 120.0


def each_role_of_java_has_its_own(stage: SecuredStage) -> None:
    """The Java client, as consumer and producer of both roles."""
    _each_role_has_its_own(stage, "java", stage.java, "AuthorizationException|not.*(allowed|may)|may not")


def each_role_of_go_has_its_own(stage: SecuredStage) -> None:
    """The Go client, as consumer and producer of both roles."""
    _each_role_has_its_own(stage, "go", stage.go, "AuthorizationError|may not")


def _each_role_has_its_own(
    stage: SecuredStage, client: str, start: Callable[[str], DrivenConsumers], refusal: str
) -> None:
    topics = {role: [f"persistent://{SHARED}/{word}-{client}"] for role, word in _WORDS.items()}
    for role, names in topics.items():
        names.append(f"persistent://public/{role}/{client}")
        stage.create(names)
    with start(ORDERS) as orders, start(BILLING) as billing:
        consumers = {ORDERS: orders, BILLING: billing}
        wanted: dict[str, set[tuple[str, str]]] = {}
        for role, consumer in consumers.items():
            wanted[role] = {consumer.publish(topic, f"first of {role}") for topic in topics[role]}
            consumer.subscribe(f"shared-{client}-{role}", f"persistent://{SHARED}/.*-{client}")
            consumer.subscribe(f"own-{client}-{role}", f"persistent://public/{role}/{client}")
        for role, consumer in consumers.items():
            late = f"persistent://{SHARED}/{_WORDS[role]}-late-{client}"
            stage.create([late])
            wanted[role].add(consumer.publish(late, f"late of {role}"))
        for role, consumer in consumers.items():
            shared = {pair for pair in wanted[role] if f"/{SHARED.partition('/')[2]}/" in pair[0]}
            consumer.wait_received(f"shared-{client}-{role}", shared, _SOON)
            consumer.wait_received(f"own-{client}-{role}", wanted[role] - shared, _SOON)
            assert dict(consumer.received(f"shared-{client}-{role}")) == dict.fromkeys(shared, 1)
            assert dict(consumer.received(f"own-{client}-{role}")) == dict.fromkeys(wanted[role] - shared, 1)
        # What a role may not list is refused, and its client keeps what it has.
        with pytest.raises(RuntimeError, match=refusal):
            billing.subscribe("not-allowed", f"persistent://public/{ORDERS}/.*")
        # A topic that is hidden from a role does not exist for it.
        assert BILLING not in stage.broker.admin.subscriptions(topics[ORDERS][0])
        again = billing.publish(topics[BILLING][0], "again")
        billing.wait_received(f"shared-{client}-{BILLING}", {again}, _SOON)


def each_role_of_python_has_its_own(stage: SecuredStage) -> None:
    """The Python client, whose Java neighbour produces."""
    topics = {role: f"persistent://{SHARED}/{word}-python" for role, word in _WORDS.items()}
    stage.create(topics.values())
    with stage.java(ORDERS) as orders, stage.java(BILLING) as billing:
        wanted = {
            ORDERS: {orders.publish(topics[ORDERS], "first of orders")},
            BILLING: {billing.publish(topics[BILLING], "first of billing")},
        }
        pattern = f"persistent://{SHARED}/.*-python"
        with stage.python(ORDERS) as of_orders, stage.python(BILLING) as of_billing:
            consumers = {ORDERS: of_orders, BILLING: of_billing}
            for role, consumer in consumers.items():
                consumer.subscribe(f"python-{role}", pattern)
                consumer.wait_received(f"python-{role}", wanted[role], _SOON)
            late = f"persistent://{SHARED}/orders-late-python"
            stage.create([late])
            wanted[ORDERS].add(orders.publish(late, "late of orders"))
            of_orders.wait_received(f"python-{ORDERS}", wanted[ORDERS], _SOON)
            for role, consumer in consumers.items():
                assert dict(consumer.received(f"python-{role}")) == dict.fromkeys(wanted[role], 1)


def outlives_its_token(stage: SecuredStage) -> None:
    """A Java consumer whose token runs out and is replaced in its file: it goes on over the same sessions."""
    base = f"persistent://public/{ORDERS}"
    stage.create([f"{base}/expiring-1"])
    token = stage.security.token_file(ORDERS, name="expiring")
    with stage.java(ORDERS, token=token) as java:
        # The client reads it when it connects, with its first question.
        stage.security.token_file(ORDERS, name="expiring", seconds=30)
        wanted = {java.publish(f"{base}/expiring-1", "before")}
        java.subscribe("expiring", f"{base}/expiring-.*")
        # Before the first one ends, however slow what follows: a client that is asked sooner has its session closed.
        stage.security.token_file(ORDERS, name="expiring", seconds=600)
        java.wait_received("expiring", wanted, _SOON)
        stage.wait_for_renewals(1)
        stage.create([f"{base}/expiring-2"])
        wanted.add(java.publish(f"{base}/expiring-2", "after"))
        java.wait_received("expiring", wanted, _SOON)
        assert dict(java.received("expiring")) == dict.fromkeys(wanted, 1)


def outlives_restarts(stage: SecuredStage) -> None:
    """A Java consumer, and one of Python with properties, while the gateway is killed and started again, and then the
    broker.
    """
    base = f"persistent://public/{BILLING}"
    python_topics: list[str] = []

    def create(name: str) -> list[str]:
        topics = [f"{base}/restart-{name}", f"{base}/python-{name}"]
        stage.create(topics)
        python_topics.append(topics[1])
        stage.gate.rule(f"public/{BILLING}", teams={"blue": python_topics})
        return topics

    first = create("1")
    with stage.java(BILLING) as java:
        java_wanted, python_wanted = set(), set()

        def publish(topics: list[str], text: str) -> None:
            java_wanted.add(java.publish(topics[0], text))
            python_wanted.add(java.publish(topics[1], text))

        publish(first, "before")
        with stage.property_consumer("python-restart", BILLING, f"{base}/.*", {"team": "blue"}) as python:
            java.subscribe("restart", f"{base}/restart-.*")
            java.wait_received("restart", java_wanted, _SOON)
            python.wait_subscribed()
            python.wait_received(python_wanted, _SOON)
            stage.gateway.kill()
            stage.gateway.start()
            publish(create("2"), "after the gateway")
            java.wait_received("restart", java_wanted, 2 * _SOON)
            python.wait_received(python_wanted, 2 * _SOON)
            stage.broker.stop()
            stage.broker.start()
            publish(create("3"), "after the broker")
            publish(first, "after the broker")
            java.wait_received("restart", java_wanted, 2 * _SOON)
            python.wait_received(python_wanted, 2 * _SOON)
            # A message may come twice after a restart of the broker, but none is lost, and no other's is there.
            assert set(java.received("restart")) == java_wanted
            assert set(python.received) == python_wanted
            admin = stage.broker.admin
            for topic in python_topics:
                assert admin.subscriptions(topic) == {"python-restart"}
                assert admin.consumers(topic, "python-restart") == 1
                eventually_sync(
                    lambda topic=topic: admin.backlog(topic, "python-restart") == 0,  # type: ignore[misc]
                    _SOON,
                    what="acknowledged messages",
                )

"""Consumers by pattern of Java, Go and Python behind a gateway with watchers, step by step, with a real broker.

After each step those that watch and those that poll have the right topics and each message once, no subscription is
gone that should live, and the gateway's listing and hash are the broker's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.pulsar_peer import PeerUnavailable, PulsarBroker, Security
from tests.interop.watch_stage import WatchStage
from tests.support.eventually import eventually
from tests.support.ports import free_ports

pytestmark = pytest.mark.interop

SETTINGS = {
    "enableBrokerTopicListWatcher": "true",
    "loadBalancerAutoBundleSplitEnabled": "false",
    # A consumer that connects again would make a deleted topic.
    "allowAutoTopicCreation": "false",
}
MANY = 1000
call = asyncio.to_thread


@pytest.mark.parametrize("secured", [False, True], ids=["plain", "tokens-and-tls"])
async def test_each_step(
    tmp_path: Path, secured: bool, record_property: Callable[[str, object], None]
) -> None:
    security = Security(tmp_path / "security") if secured else None
    first, second = free_ports(2)
    try:
        broker = PulsarBroker(
            tmp_path / "pulsar", settings=SETTINGS, ports=(first, second), security=security
        )
    except PeerUnavailable as error:
        pytest.skip(str(error))
    try:
        await call(broker.start)
        async with WatchStage(tmp_path / "gateway", broker, security) as stage:
            try:
                await _steps(stage, many=not secured)
            finally:
                shown = {
                    step: {who: round(seconds, 2) for who, seconds in took.items()}
                    for step, took in stage.seconds.items()
                }
                record_property("seconds", shown)
                print(*shown.items(), sep="\n")
    except PeerUnavailable as error:
        pytest.skip(str(error))
    finally:
        await call(broker.stop)


async def _steps(stage: WatchStage, *, many: bool) -> None:
    admin = stage.broker.admin
    stage.rule(hide="secret")
    begin = await stage.create("t-first")
    secret = await stage.create("t-secret")
    await stage.create("other")
    await stage.consume()
    await stage.publish(begin, "begin")
    await stage.is_right("begun")
    assert await call(stage.metric, "watchers") == 2, "those of Java and of this project's client"
    assert await call(stage.metric, "watches_refused_total", "reason=properties") >= 1
    for topic in secret:
        assert await call(admin.subscriptions, topic) == set()

    for local, partitions in (("t-plain", 0), ("p-parted", 3), ("t-ünï-😀", 0)):
        await stage.publish(await stage.create(local, partitions), local)
        await stage.is_right(f"created {local}")
    await stage.load("t-loaded")
    await stage.is_right("loaded a non-persistent topic")
    await stage.delete("t-plain")
    await stage.delete("p-parted", 3)
    await stage.publish(begin, "after a deletion")
    await stage.is_right("deleted")

    if many:
        names = await stage.create_many(MANY)
        await stage.publish(names[:: MANY // 5], "many")
        await stage.is_right("1,000 at once")

    # Shown by the mask, hidden again, and shown once more.
    stage.rule()
    await stage.publish(secret, "shown")
    await stage.is_right("shown")
    await stage.all_acknowledged()
    stage.rule(hide="secret")
    await _is_hidden(stage, secret)
    # Go has unsubscribed, and reads all of it anew; Python goes on with a topic without partitions.
    await stage.publish(secret, "while it is hidden")
    stage.rule()
    for client in stage.consuming:
        if client.name == "go":
            client.wanted[secret[0], "shown"] += 1
    await stage.is_right("shown again")

    # The plugins fail: nothing is lost, and what came meanwhile is found after.
    stage.rule(fail=True)
    late = await stage.create("t-late")
    await _has_failed(stage)
    await stage.publish(begin, "while the plugins fail")
    for client in stage.consuming:
        await eventually(client.has_all, what=f"messages at {client.name} while the plugins fail")
    await stage.subscriptions_live()
    stage.rule()
    await stage.publish(late, "late")
    await stage.is_right("plugins that failed")

    await call(stage.gateway.kill)
    without_gateway = await stage.create("t-without-gateway")
    await stage.publish(begin, "without a gateway")
    await call(stage.gateway.start)
    await stage.publish(without_gateway, "without a gateway")
    await stage.is_right("a killed gateway")

    await stage.all_acknowledged()
    await call(stage.broker.stop)
    await call(stage.broker.start)
    await stage.publish(await stage.create("t-after-broker"), "after the broker")
    await stage.publish(begin, "after the broker")
    await stage.is_right("a broker that was restarted")
    assert [topic for topic in stage.names("other") if await call(admin.subscriptions, topic)] == []


async def _is_hidden(stage: WatchStage, topics: list[str]) -> None:
    admin = stage.broker.admin

    async def have_left() -> bool:
        for client in stage.consuming:
            for topic in set(topics) & client.topics:
                if client.name == "go":
                    if client.name in await call(admin.subscriptions, topic):
                        return False
                elif client.name != "python" and (await call(admin.consumers, topic, client.name)) > 0:
                    return False
        return True

    await eventually(have_left, what="consumers that leave a hidden topic")
    for topic in topics:
        names = {client.name for client in stage.consuming if topic in client.topics} - {"go"}
        assert await call(admin.subscriptions, topic) == names


async def _has_failed(stage: WatchStage) -> None:
    """Until polls of all clients have failed, several times."""

    def failed() -> float:
        return stage.metric("listing_requests_total", "outcome=error")

    before = await call(failed)

    async def enough() -> bool:
        return await call(failed) >= before + 6 * len(stage.consuming)

    await eventually(enough, what="failed listings")

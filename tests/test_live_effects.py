"""What each live setting does at once: after a reload a server answers as one that began with the other file."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeAlias

import aiohttp
import pytest
from jwt.algorithms import RSAAlgorithm

from broker_core import hookimpl
from broker_core.broker import Broker
from broker_core.catalog import SqliteCatalog
from broker_core.client import (
    Basic,
    ClientError,
    LookupSession,
    OriginalPrincipal,
    ServerRefused,
    Token,
)
from broker_core.client.kafka import AdminClient, ConfigResource, NewTopic
from broker_core.client.kafka import ConfigResourceType as Kind
from broker_core.names import TopicName
from broker_core.settings import Settings, dotted, live_settings, load_settings
from broker_core.wire.kafka import DESCRIBE_TOPIC_PARTITIONS, SASL_HANDSHAKE
from tests.support.eventually import eventually
from tests.support.htpasswd import write_htpasswd
from tests.support.kafka_serving import raw_client
from tests.support.tokens import der, rsa_key, token

#: The tests that look at what needs a cluster, or a process that has a log.
ELSEWHERE: Final = {
    "tests.broker.test_pulsar_gateway:test_lookups_go_to_the_new_brokers_and_none_is_lost": {
        "upstream.service_url"
    },
    "tests.broker.test_pulsar_gateway:test_other_credentials_are_used_for_new_connections": {
        "upstream.token",
        "upstream.token_command",
        "upstream.snapshots.token",
    },
    "tests.broker.test_pulsar_gateway:test_how_old_a_snapshot_may_be_and_whether_the_server_is_ready_without_brokers": {
        "upstream.ready",
        "upstream.snapshots.max_age",
        "upstream.snapshots.token_command",
    },
    "tests.broker.test_pulsar_gateway:test_topics_that_are_not_persistent_come_from_another_web_service": {
        "upstream.admin_url"
    },
    "tests.broker.test_pulsar_gateway:test_other_certificates_and_names_of_hosts": {
        f"upstream.tls.{name}" for name in ("ca", "certificate", "key", "verify_hostname")
    },
    "tests.test_live_kafka_upstream:test_other_credentials_and_addresses_are_in_force_while_clients_ask": {
        "kafka.upstream.bootstrap_servers",
        *(f"kafka.upstream.sasl.{name}" for name in ("mechanism", "user", "password", "token")),
    },
    "tests.test_live_kafka_upstream:test_other_certificates_of_the_gateway_and_names_of_nodes": {
        f"kafka.upstream.tls.{name}" for name in ("ca", "certificate", "key", "verify_hostname")
    },
    "tests.test_live_kafka_upstream:test_how_old_a_listing_may_be_and_whether_the_server_is_ready_without_nodes": {
        "kafka.upstream.max_age",
        "kafka.upstream.ready",
        "kafka.upstream.timeout",
    },
    "tests.cli.server_process.test_hangups:test_a_hangup_changes_the_log_and_how_the_server_ends": {
        "log.level",
        "log.format",
        "log.file",
        "pulsar.drain_delay",
        "pulsar.drain_timeout",
    },
}
_HTTP: Final = '[http]\nlisten = "127.0.0.1:0"\n'
_SIGNED: Final = '[authentication]\nmethods = ["token"]\n'
_ROLES: Final = '[authorization]\nsuper_roles = ["load", "user"]\n'
_KEY: Final = '[authentication.token]\nkey = "file:one.key"\n'


Probe: TypeAlias = "Callable[[Seen], Awaitable[object]]"


class Waits:
    """A plugin whose questions in one namespace wait until they may go on."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.may_go_on = asyncio.Event()

    @hookimpl
    async def broker_core_list_topics(self, namespace: Any) -> None:
        if str(namespace) == "slow/slow":
            self.asked.set()
            await self.may_go_on.wait()


class Seen:
    """A running server as its clients see it; each question comes over a connection of its own."""

    def __init__(self, broker: Broker, waits: Waits) -> None:
        self.broker, self.waits = broker, waits

    def session(self, **options: Any) -> LookupSession:
        return LookupSession("pulsar://{}:{}".format(*self.broker.pulsar_address), **options)

    async def listing(self, properties: Mapping[str, str] | None = None, **options: Any) -> object:
        """How many topics, or the error."""
        try:
            async with self.session(**options) as session:
                return len((await session.get_topics("a/b", properties=properties)).topics)
        except ServerRefused as refused:
            return refused.code
        except ClientError as error:
            return type(error)

    async def connections(self) -> object:
        async with self.session():
            return await self.listing()

    async def two_lookups(self) -> object:
        async with self.session() as one:
            asking = asyncio.create_task(one.get_topics("slow/slow"))
            await self.waits.asked.wait()
            try:
                return await self.listing()
            finally:
                self.waits.may_go_on.set()
                await asking
                self.waits.asked.clear()
                self.waits.may_go_on.clear()

    async def permits(self) -> object:
        permits = self.broker.pipeline.permits
        budgets = (permits.heap, permits.direct, permits.reserve, permits.snapshots, permits.unkept)
        return permits.limits.permit_timeout, [
            (each.maximum, each.timeout, each.queue_limit) for each in budgets
        ]

    async def two_listings(self) -> object:
        return [await self.listing() for _ in range(2)]

    async def http(self, path: str = "/v1/namespaces/a/b/topics") -> object:
        assert self.broker.http_address is not None
        url = "http://{}:{}".format(*self.broker.http_address)
        async with aiohttp.ClientSession() as session, session.get(url + path) as answer:
            return answer.status, (await answer.json()).get("next") is None

    @contextlib.asynccontextmanager
    async def kafka(self) -> Any:
        assert self.broker.kafka_address is not None
        async with AdminClient("{}:{}".format(*self.broker.kafka_address)) as client:
            yield client

    async def kafka_topics(self) -> object:
        async with self.kafka() as client:
            return sorted((await client.list_topics()).names())

    async def kafka_creates(self, partitions: int = -1, replicas: int = -1) -> object:
        async with self.kafka() as client:
            made = await client.create_topics([NewTopic("new", partitions, replicas)], validate_only=True)
            try:
                made.all()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
                return type(error)
            return made.num_partitions("new"), made.replication_factor("new")

    async def kafka_config(self) -> object:
        async with self.kafka() as client:
            resource = ConfigResource(Kind.TOPIC, "t0")
            found = (await client.describe_configs([resource], names=["retention.ms"]))[resource]
            return found.get("retention.ms").value

    async def kafka_page(self) -> object:
        """How many topics a page has that could have all of them."""
        assert self.broker.kafka_address is not None
        async with raw_client(self.broker.kafka_address) as client:
            answer = await client.ask(DESCRIBE_TOPIC_PARTITIONS, 0, {"response_partition_limit": 2000})
            return len(answer["topics"])

    async def kafka_mechanisms(self) -> object:
        assert self.broker.kafka_address is not None
        async with raw_client(self.broker.kafka_address) as client:
            answer = await client.ask(SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
            return answer["error_code"], answer["mechanisms"]

    async def access_lines(self) -> object:
        """The file, and its new lines for a listing and for a refused one, which always has a line."""
        access = self.broker.settings.log.access
        assert access is not None

        def lines() -> list[str]:
            return access.path.read_text().splitlines() if access.path.exists() else []

        before = len(lines())
        await self.listing({"team": "x"})
        async with self.session() as session:
            with pytest.raises(ServerRefused):
                await session.get_topics("a/b", pattern="a/b/(", properties={"team": "x"})
        await eventually(lambda: any('"refused"' in line for line in lines()[before:]))
        found = map(json.loads, lines()[before:])
        return access.path.name, [(each["outcome"], each.get("properties")) for each in found]


def by(data: bytes) -> Probe:
    """A listing by a token."""
    return partial(Seen.listing, credentials=Token(data.decode()).credentials)


def signed(**claims: Any) -> Probe:
    """A listing by a token with these claims, besides the role."""
    return by(token({"sub": "load", **claims}))


def _of(setting: str, *, besides: str = "", first: str = "") -> Callable[[str], str]:
    """The whole file with a value of a setting: ``first``, the setting's table with what is in it ``besides``."""
    table, _, key = setting.rpartition(".")

    def text(value: str) -> str:
        head = f"[{table}]\n{besides}" if table else ""
        top = "" if table else f"{key} = {value}\n"
        return top + first + (f"{head}{key} = {value}\n" if table else "")

    return text


_AUTHENTICATED: Final = _ROLES + _SIGNED + _KEY
_PAST: Final = int(time.time()) - 60
_RULE: Final = '[{roles = ["load"], namespaces = ["a/b"], actions = ["list"]}]'
_KAFKA: Final = 'listen = "127.0.0.1:0"\nnamespace = "a/b"\n'

#: Of each setting: its file by a value, two values, and what is looked at.
EFFECTS: Final[dict[str, tuple[Callable[[str], str], str, str, Probe]]] = {
    "authentication.methods": (
        _of(
            "authentication.methods", first=_ROLES + _KEY + '[authentication.basic]\nfile = "one.htpasswd"\n'
        ),
        '["token"]',
        '["token", "basic"]',
        partial(Seen.listing, credentials=Basic("user", "password").credentials),
    ),
    "authentication.anonymous_role": (
        _of(
            "authentication.anonymous_role",
            besides='methods = ["token"]\n',
            first=f"[authorization]\nrules = {_RULE.replace('load', 'guest')}\n{_KEY}",
        ),
        '""',
        '"guest"',
        Seen.listing,
    ),
    "authentication.proxy_roles": (
        _of("authentication.proxy_roles", besides='methods = ["token"]\n', first=_ROLES + _KEY),
        "[]",
        '["load"]',
        partial(
            Seen.listing,
            credentials=Token(token({"sub": "load"}).decode()).credentials,
            original=OriginalPrincipal("user"),
        ),
    ),
    "authentication.token.key": (
        _of("authentication.token.key", first=_ROLES + _SIGNED),
        '"file:one.key"',
        '"file:two.key"',
        signed(),
    ),
    "authentication.token.jwks": (
        _of("authentication.token.jwks", first=_ROLES + _SIGNED),
        '"file:one.jwks"',
        '"file:two.jwks"',
        by(token({"sub": "load"}, kid="k")),
    ),
    "authentication.token.algorithms": (
        _of("authentication.token.algorithms", besides='key = "file:one.key"\n', first=_ROLES + _SIGNED),
        '["RS256"]',
        '["RS512"]',
        signed(),
    ),
    "authentication.token.subject_claim": (
        _of("authentication.token.subject_claim", besides='key = "file:one.key"\n', first=_ROLES + _SIGNED),
        '"sub"',
        '"role"',
        signed(role="nobody"),
    ),
    "authentication.token.audience": (
        _of("authentication.token.audience", besides='key = "file:one.key"\n', first=_ROLES + _SIGNED),
        '""',
        '"here"',
        signed(),
    ),
    "authentication.token.issuer": (
        _of("authentication.token.issuer", besides='key = "file:one.key"\n', first=_ROLES + _SIGNED),
        '""',
        '"us"',
        signed(),
    ),
    "authentication.token.leeway": (
        _of("authentication.token.leeway", besides='key = "file:one.key"\n', first=_ROLES + _SIGNED),
        '"0s"',
        '"1h"',
        signed(exp=_PAST),
    ),
    "authentication.basic.file": (
        _of("authentication.basic.file", first=_ROLES + '[authentication]\nmethods = ["basic"]\n'),
        '"one.htpasswd"',
        '"two.htpasswd"',
        partial(Seen.listing, credentials=Basic("user", "password").credentials),
    ),
    "authorization.mode": (_of("authorization.mode"), '"auto"', '"rules"', Seen.listing),
    "authorization.super_roles": (
        _of("authorization.super_roles", first=_SIGNED + _KEY),
        '["root"]',
        '["load"]',
        signed(),
    ),
    "authorization.rules": (_of("authorization.rules", first=_SIGNED + _KEY), "[]", _RULE, signed()),
    "http.most_items": (_of("http.most_items", besides='listen = "127.0.0.1:0"\n'), "1000", "1", Seen.http),
    "kafka.namespace": (
        _of("kafka.namespace", besides='listen = "127.0.0.1:0"\n'),
        '"a/b"',
        '"a/c"',
        Seen.kafka_topics,
    ),
    "kafka.namespaces": (
        _of("kafka.namespaces", besides=_KAFKA),
        "{}",
        '{"User:ANONYMOUS" = "a/c"}',
        Seen.kafka_topics,
    ),
    "kafka.num_partitions": (_of("kafka.num_partitions", besides=_KAFKA), "1", "3", Seen.kafka_creates),
    "kafka.replication_factor": (
        _of("kafka.replication_factor", besides=_KAFKA + 'replication = "record"\n'),
        "1",
        "2",
        Seen.kafka_creates,
    ),
    "kafka.replication": (
        _of("kafka.replication", besides=_KAFKA),
        '"strict"',
        '"record"',
        partial(Seen.kafka_creates, replicas=2),
    ),
    "kafka.configs": (
        _of("kafka.configs", besides=_KAFKA),
        "{}",
        '{"retention.ms" = "1000"}',
        Seen.kafka_config,
    ),
    "kafka.sasl.mechanisms": (
        _of(
            "kafka.sasl.mechanisms",
            first='[authentication]\nmethods = ["basic"]\n[authentication.basic]\nfile = "one.htpasswd"\n'
            f"[kafka]\n{_KAFKA}",
        ),
        "[]",
        '["PLAIN"]',
        Seen.kafka_mechanisms,
    ),
    **{
        f"kafka.{name}": (_of(f"kafka.{name}", besides=_KAFKA), "2000", "5", Seen.kafka_page)
        for name in ("max_request_pagination_size_limit", "max_request_partition_size_limit")
    },
    "catalog.property_keys": (
        _of("catalog.property_keys", besides='path = "c.sqlite"\n'),
        "[]",
        '["region"]',
        partial(Seen.listing, properties={"region": "7"}),
    ),
    "limits.connections": (_of("limits.connections"), "100", "1", Seen.connections),
    "limits.connections_per_address": (_of("limits.connections_per_address"), "0", "1", Seen.connections),
    "limits.concurrent_lookups": (_of("limits.concurrent_lookups"), "100", "1", Seen.two_lookups),
    "limits.properties": (
        _of("limits.properties"),
        "64",
        "1",
        partial(Seen.listing, properties={"a": "", "b": ""}),
    ),
    "limits.property_bytes": (
        _of("limits.property_bytes"),
        '"16KB"',
        '"4"',
        partial(Seen.listing, properties={"region": "7"}),
    ),
    **{
        f"limits.{name}": (_of(f"limits.{name}"), before, after, Seen.permits)
        for name, before, after in (
            ("heap_permits", '"100MB"', '"10MB"'),
            ("direct_permits", '"100MB"', '"20MB"'),
            ("snapshots", '"10MB"', '"1"'),
            ("permit_timeout", '"25s"', '"20s"'),
            ("permit_queue", "1000", "500"),
        )
    },
    "quotas": (
        _of("quotas"),
        "[]",
        '[{name = "one", requests = 0.001, burst = 1, max_wait = 0}]',
        Seen.two_listings,
    ),
    "log.access.path": (_of("log.access.path"), '"access.log"', '"other.log"', Seen.access_lines),
    "log.access.sample": (
        _of("log.access.sample", besides='path = "access.log"\n'),
        "1.0",
        "0.0",
        Seen.access_lines,
    ),
    "log.access.properties": (
        _of("log.access.properties", besides='path = "access.log"\n'),
        "[]",
        '["team"]',
        Seen.access_lines,
    ),
}


def test_each_live_setting_has_its_effect_looked_at() -> None:
    live = {dotted(path) for path, is_live in live_settings() if is_live}
    elsewhere = set(chain(*ELSEWHERE.values()))
    assert EFFECTS.keys().isdisjoint(elsewhere)
    assert EFFECTS.keys() | elsewhere == live
    for test, settings in ELSEWHERE.items():
        module, _, name = test.partition(":")
        text = inspect.getsource(getattr(importlib.import_module(module), name))
        assert [each for each in settings if f"{each.rpartition('.')[2]} = " not in text] == [], test


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with SqliteCatalog(tmp_path / "c.sqlite") as catalog:
        for number in range(20):
            name = TopicName.parse(f"persistent://a/b/t{number}")
            catalog.create(name, properties={"region": str(number % 10)})
        catalog.create(TopicName.parse("persistent://a/c/other"))
    for who, key, user in (("one", rsa_key(), "user"), ("two", rsa_key(1), "other")):
        (tmp_path / f"{who}.key").write_bytes(der(key))
        public = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
        (tmp_path / f"{who}.jwks").write_text(json.dumps({"keys": [public | {"kid": "k"}]}))
        write_htpasswd(tmp_path / f"{who}.htpasswd", **{user: "password"})
    return tmp_path


@pytest.mark.parametrize("setting", EFFECTS)
async def test_a_live_setting_is_in_force_after_a_reload(folder: Path, setting: str) -> None:
    text, before, after, probe = EFFECTS[setting]
    file = folder / "broker-core.toml"

    def write(value: str) -> None:
        made = text(value)
        rest = {
            "pulsar": 'listen = "127.0.0.1:0"\n',
            "catalog": 'path = "c.sqlite"\n',
        }
        file.write_text(made + "".join(f"[{k}]\n{v}" for k, v in rest.items() if f"[{k}]" not in made))

    async def look(reload_to: str | None = None) -> tuple[object, object]:
        def load() -> Settings:
            return load_settings(file, environment={}).settings

        waits = Waits()
        async with Broker(load(), load=load, plugins={"waits": waits}) as broker:
            seen = Seen(broker, waits)
            first = await probe(seen)
            if reload_to is None:
                return first, None
            write(reload_to)
            assert (await broker.reloads.reload_all()).failed == {}
            return first, await probe(seen)

    write(after)
    expected, _ = await look()
    write(before)
    old, found = await look(reload_to=after)
    assert old != expected, "the values have no different effect"
    assert found == expected

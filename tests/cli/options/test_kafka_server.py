from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from broker_core.cli.common_options import Given, Invocation
from broker_core.cli.options.credentials import GivenCredentials, UnusableCredentials
from broker_core.cli.options.kafka_server import GivenKafka
from broker_core.cli.options.option_values import UnusableQuestion
from broker_core.errors import BrokerCoreError
from broker_core.quantities import ListenAddress
from broker_core.settings import KafkaSettings, Settings
from broker_core.wire.kafka import API_VERSIONS, LIST_TOPICS, SASL_AUTHENTICATE, SASL_HANDSHAKE, ErrorCode
from tests.support.certificates import Authority
from tests.support.scripted_kafka import ScriptedKafka


async def names(server: GivenKafka, settings: Settings | None = None) -> list[str]:
    given = None if settings is None else Given(settings, {})
    async with server.connected(Invocation(given=given)) as client:
        return (await client.list_topics()).names()


@pytest.fixture
def listing() -> ScriptedKafka:
    return ScriptedKafka(
        {
            LIST_TOPICS: lambda _: {"topics": [{"name": "orders"}]},
            SASL_HANDSHAKE: lambda asked: {"mechanisms": [asked.value["mechanism"]]},
            SASL_AUTHENTICATE: lambda _: {},
        }
    )


async def test_the_server_of_the_settings(listing: ScriptedKafka) -> None:
    async with listing:
        listen = ListenAddress("0.0.0.0", listing.port)
        settings = Settings(kafka=KafkaSettings(listen=listen, advertised=f"localhost:{listing.port}"))
        assert await names(GivenKafka(), settings) == ["orders"]
        settings = Settings(kafka=KafkaSettings(listen=ListenAddress("127.0.0.1", listing.port)))
        assert await names(GivenKafka(), settings) == ["orders"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (Settings(), "give --bootstrap HOST:PORT, or settings with"),
        (Settings(kafka=KafkaSettings(listen=ListenAddress("127.0.0.1", 0))), "kafka.listen is a free port"),
    ],
)
async def test_settings_that_do_not_say_where(settings: Settings, said: str) -> None:
    with pytest.raises(UnusableQuestion, match=said):
        await names(GivenKafka(), settings)


async def test_what_is_no_address() -> None:
    with pytest.raises(UnusableQuestion, match="expected HOST:PORT"):
        await names(GivenKafka("a b"))


async def test_a_password_of_a_file(listing: ScriptedKafka, tmp_path: Path) -> None:
    (tmp_path / "pw").write_text("pass word\r\nmore\n")
    async with listing:
        alice = GivenCredentials(user="alice", password_file=tmp_path / "pw")
        server = GivenKafka(listing.address, mechanism="PLAIN", credentials=alice)
        assert await names(server) == ["orders"]
        assert listing.of(SASL_AUTHENTICATE) == [{"auth_bytes": b"\0alice\0pass word"}]


async def test_a_token_of_a_file(listing: ScriptedKafka, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a.b.c\n")
    async with listing:
        server = GivenKafka(listing.address, credentials=GivenCredentials(token_file=tmp_path / "token"))
        assert await names(server) == ["orders"]
        assert listing.of(SASL_HANDSHAKE) == [{"mechanism": "OAUTHBEARER"}]


async def test_scram_is_asked_for_without_a_mechanism(listing: ScriptedKafka, tmp_path: Path) -> None:
    (tmp_path / "pw").write_text("secret")
    async with listing:
        alice = GivenCredentials(user="alice", password_file=tmp_path / "pw")
        server = GivenKafka(listing.address, credentials=alice)
        with pytest.raises(BrokerCoreError, match="SCRAM-SHA-512") as raised:
            await names(server)
        assert listing.of(SASL_HANDSHAKE) == [{"mechanism": "SCRAM-SHA-512"}]
        assert "secret" not in str(raised.value)
    assert "secret" not in repr(server)


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ({"user": "alice"}, UnusableQuestion, "go together"),
        ({"password_file": "pw"}, UnusableQuestion, "go together"),
        ({"user": "a:b", "password_file": "pw"}, UnusableQuestion, "no colon"),
        ({"user": "alice", "password_file": "none"}, UnusableCredentials, "no such file"),
        ({"user": "alice", "password_file": "empty"}, UnusableCredentials, "no password in its first line"),
        ({"user": "alice", "token_file": "pw"}, UnusableQuestion, "two ways"),
        ({"key": "key"}, UnusableCredentials, "give --cert too"),
    ],
)
async def test_options_that_do_not_go_together(
    tmp_path: Path, given: dict[str, str], kind: type[Exception], said: str
) -> None:
    (tmp_path / "pw").write_text("secret")
    (tmp_path / "empty").write_text("\nsecret")
    options = {name: value if name == "user" else tmp_path / value for name, value in given.items()}
    with pytest.raises(kind, match=said):
        await names(GivenKafka("a:1", credentials=GivenCredentials(**options)))  # type: ignore[arg-type]


async def test_tls(listing: ScriptedKafka, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    listing.tls = authority.issue("node").server_context()
    async with listing:
        assert await names(GivenKafka(listing.address, credentials=GivenCredentials(ca=authority.ca))) == [
            "orders"
        ]
        with pytest.raises(BrokerCoreError, match="name it with --ca FILE"):
            await names(GivenKafka(listing.address, tls=True))


async def test_a_server_that_wants_credentials() -> None:
    answer = {"error_code": ErrorCode.ILLEGAL_SASL_STATE}
    async with ScriptedKafka({LIST_TOPICS: lambda _: answer}) as node:
        with pytest.raises(BrokerCoreError, match="asks for credentials: give --user or --token-file"):
            await names(GivenKafka(node.address))


async def test_a_server_without_the_mechanism(tmp_path: Path) -> None:
    (tmp_path / "pw").write_text("secret")
    answer = {"error_code": ErrorCode.UNSUPPORTED_SASL_MECHANISM, "mechanisms": ["PLAIN"]}
    async with ScriptedKafka({SASL_HANDSHAKE: lambda _: answer}) as node:
        said = "has no SCRAM-SHA-512; it has PLAIN; give one that it has as --mechanism"
        with pytest.raises(BrokerCoreError, match=said):
            alice = GivenCredentials(user="alice", password_file=tmp_path / "pw")
            await names(GivenKafka(node.address, credentials=alice))


async def test_a_server_that_hangs_up_may_want_more() -> None:
    async with ScriptedKafka({API_VERSIONS: lambda _: None}) as node:
        with pytest.raises(
            BrokerCoreError, match="give --user or --token-file, where it asks for credentials; --tls, where"
        ):
            await names(GivenKafka(node.address))


def test_the_answer_is_waited_for_no_longer_than_it_says() -> None:
    async def silent(_asked: object) -> dict[str, object]:
        await asyncio.Event().wait()
        raise AssertionError

    async def ask() -> None:
        async with ScriptedKafka({LIST_TOPICS: silent}) as node:
            with pytest.raises(BrokerCoreError, match=r"within 0\.1 s"):
                await names(GivenKafka(node.address, timeout=0.1))

    asyncio.run(ask())

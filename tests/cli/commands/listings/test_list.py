from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_core.cli.commands.listings.list import service_url
from broker_core.errors import BrokerCoreError
from broker_core.listing.listing_hash import topics_hash
from broker_core.settings import CatalogSettings, PulsarSettings, Settings, load_settings
from tests.cli.conftest import Cli
from tests.cli.server import serving
from tests.support.certificates import Authority
from tests.support.files import file_with
from tests.support.ports import free_port
from tests.support.tokens import SECRET, token

NAMES = [f"persistent://public/default/{name}" for name in ("größe", "orders-eu", "orders-us", "x\x1b[31m")]


@pytest.fixture
def url(cli: Cli, tmp_path: Path) -> Iterator[str]:
    """A server with four topics; its settings select by the property `region`."""
    for name in NAMES:
        cli("topics", "create", name, "--property", f"region={name[-2:]}")
    settings = Settings.model_validate(
        {
            "pulsar": {"listen": "127.0.0.1:0"},
            "catalog": {"path": tmp_path / "broker-core.sqlite", "property_keys": ["region"]},
        }
    )
    with serving(settings) as url:
        yield url


def test_names(cli: Cli, url: str) -> None:
    said = cli("list", "public/default", "--url", url)
    assert (said.code, said.err) == (0, "")
    assert said.out == "".join(f"{name}\n" for name in NAMES)


def test_json(cli: Cli, url: str) -> None:
    said = cli(
        "list", "public/default", "--url", url, "--pattern", "public/default/orders-.*", "--format", "json"
    )
    assert json.loads(said.out) == {
        "namespace": "public/default",
        "mode": "PERSISTENT",
        "topics": NAMES[1:3],
        "topics_hash": topics_hash(NAMES[1:3]),
        "filtered": True,
        "changed": True,
    }


def test_a_hash_that_still_holds(cli: Cli, url: str) -> None:
    current = topics_hash(NAMES)
    said = json.loads(cli("list", "public/default", "--url", url, "--hash", current, "--format", "json").out)
    assert (said["changed"], said["topics"], said["topics_hash"]) == (False, [], current)
    said_in_words = cli("list", "public/default", "--url", url, "--hash", current)
    assert (said_in_words.code, said_in_words.out) == (0, "")
    assert "unchanged" in said_in_words.err


def test_properties_and_modes(cli: Cli, url: str) -> None:
    assert cli("list", "public/default", "--url", url, "--property", "region=us").out == f"{NAMES[2]}\n"
    assert cli("list", "public/default", "--url", url, "--mode", "NON_PERSISTENT").out == ""
    assert len(cli("list", "public/default", "--url", url, "--mode", "all").out.splitlines()) == 4


def test_a_table(cli: Cli, url: str) -> None:
    said = cli("list", "public/default", "--url", url, "--format", "table")
    assert all(name in said.out for name in NAMES[:3])
    assert f"4 topics, hash {topics_hash(NAMES)}\n" in said.out
    by_pattern = cli("list", "public/default", "--url", url, "--format", "table", "--pattern", "nothing")
    assert f"0 topics, hash {topics_hash([])}, pattern applied by the server\n" in by_pattern.out
    assert "\x1b" not in said.out


def test_a_pattern_without_its_namespace_gets_a_hint(cli: Cli, url: str) -> None:
    said = cli("list", "public/default", "--url", url, "--pattern", "orders.*")
    assert (said.code, said.out) == (0, "")
    assert said.err.startswith("broker-core: warning: the topics pattern 'orders.*' can match no topic")
    for form in ("json", "table", "ndjson"):
        assert (
            "such as 'public/default/orders.*'"
            in cli("list", "public/default", "--url", url, "--pattern", "orders.*", "--format", form).err
        )
    assert cli("list", "public/default", "--url", url, "--pattern", "public/default/none").err == ""


def test_details_over_http(cli: Cli, tmp_path: Path) -> None:
    for name, number in (("orders", 2), ("bills", 0)):
        cli("topics", "create", "acme/shop", name, "--partitions", number, "--property", "region=eu")
    config = file_with(
        tmp_path / "f.toml",
        f'[pulsar]\nlisten = "127.0.0.1:0"\n[http]\nlisten = "127.0.0.1:{free_port()}"\n'
        f'[catalog]\npath = "{tmp_path}/broker-core.sqlite"\n',
    )
    asked = ("list", "acme/shop", "--detail", "partitions,properties", "--config", config)
    with serving(load_settings(config, environment={}).settings) as url:
        said = cli(*asked, "--format", "csv", "--pattern", "acme/shop/(?!bills).*")
        assert said.code == 1  # the client cannot apply it either
        assert "(?!bills)" in said.only_error
        said = cli(*asked, "--format", "csv", "--pattern", "acme/shop/o.*")
        assert said.out.splitlines() == [
            "name,partitions,properties",
            *(f'persistent://acme/shop/orders-partition-{n},2,"{{""region"":""eu""}}"' for n in range(2)),
        ]
        shown = cli(*asked, "--format", "table").out
        names = [
            f"persistent://acme/shop/{name}" for name in ("bills", "orders-partition-0", "orders-partition-1")
        ]
        assert f"3 topics, hash {topics_hash(names)}\n" in shown
        assert "--detail is asked over HTTP" in cli(*asked, "--url", url).only_error
        assert cli(*asked).out == cli(*asked, "--format", "table").out
    assert "--format table, json" in cli(*asked, "--format", "names").only_error
    assert "'colour'" in cli("list", "acme/shop", "--detail", "colour", "--format", "csv").only_error
    assert "no [http]" in cli("list", "a/b", "--detail", "topic_id", "--format", "csv").only_error


def test_a_namespace_that_the_server_does_not_show_is_said_with_one_like_it(cli: Cli, tmp_path: Path) -> None:
    for name in ("acme/shop", "acme/secrets", "other/shop"):
        cli("topics", "create", name, "orders")
    (tmp_path / "key").write_bytes(SECRET)
    for role in ("team", "guest"):
        (tmp_path / f"{role}.jwt").write_bytes(token({"sub": role}, key=SECRET, by="HS256"))
    http = f"127.0.0.1:{free_port()}"
    config = file_with(
        tmp_path / "f.toml",
        f'[pulsar]\nlisten = "127.0.0.1:{free_port()}"\n[http]\nlisten = "{http}"\n'
        f'[catalog]\npath = "{tmp_path}/broker-core.sqlite"\n'
        f'[authentication]\nmethods = ["token"]\n[authentication.token]\nkey = "file:{tmp_path}/key"\n'
        'algorithms = ["HS256"]\n[[authorization.rules]]\nroles = ["team"]\n'
        'namespaces = ["acme/shop*", "acme/secret"]\nactions = ["list"]\n',
    )
    with serving(load_settings(config, environment={}).settings) as url:
        as_team = ("--token-file", tmp_path / "team.jwt")
        told = "is not among the namespaces with topics that the server shows"
        for where in (("--config", config), ("--url", f"http://{http}")):
            said = cli("list", "acme/shopp", *where, *as_team)
            assert (said.code, said.out) == (0, "")
            assert said.err == f"broker-core: acme/shopp {told}; did you mean acme/shop?\n"
            # One that may not be listed is not named.
            assert "secrets" not in cli("list", "acme/secret", *where, *as_team).err
            said = cli("list", "acme/shop", "--pattern", "acme/shop/none", *where, *as_team)
            assert (said.code, said.out, said.err) == (0, "", "")
            denied = {
                cli("list", name, *where, "--token-file", tmp_path / "guest.jwt").only_error.replace(name, "")
                for name in ("acme/secrets", "acme/secret")
            }
            assert len(denied) == 1
        assert cli("list", "acme/shopp", "--url", url, *as_team).err == ""  # nobody knows where its /v1 is


def test_an_unfiltered_answer_says_so(cli: Cli, url: str) -> None:
    said = cli("list", "public/default", "--url", url, "--pattern", "public/default/(?!x).*")
    assert len(said.out.splitlines()) == 4
    assert "the server did not apply the pattern" in said.err


def test_what_a_server_refuses_is_one_line(cli: Cli, url: str) -> None:
    said = cli("list", "public/default", "--url", url, "--pattern", "(")
    assert said.only_error.startswith("MetadataError: ")
    assert "'('" in said.only_error


def test_no_server_is_one_line_that_names_it(cli: Cli) -> None:
    port = free_port()
    assert f"127.0.0.1:{port}" in cli("list", "a/b", "--url", f"pulsar://127.0.0.1:{port}").only_error
    assert "'ftp://x'" in cli("list", "a/b", "--url", "ftp://x").only_error
    assert f"127.0.0.1:{port}" in cli("list", "a/b", "--url", f"http://127.0.0.1:{port}").only_error


def test_the_server_of_the_settings_is_asked(cli: Cli, tmp_path: Path) -> None:
    config = tmp_path / "f.toml"
    port = free_port()
    config.write_text(f'[pulsar]\nlisten = "0.0.0.0:{port}"\n')
    assert f"127.0.0.1:{port}" in cli("list", "a/b", "--config", config).only_error
    config.write_text('[pulsar]\nlisten = "127.0.0.1:0"\n')
    assert "give it as --url" in cli("list", "a/b", "--config", config).only_error


@pytest.mark.parametrize(
    ("listen", "url"),
    [
        ("127.0.0.1:6650", "pulsar://127.0.0.1:6650"),
        ("0.0.0.0:1", "pulsar://127.0.0.1:1"),
        ("[::]:1", "pulsar://[::1]:1"),
        ("broker:1", "pulsar://broker:1"),
    ],
)
def test_where_a_server_is_reached(listen: str, url: str) -> None:
    settings = Settings(pulsar=PulsarSettings.model_validate({"listen": listen}), catalog=CatalogSettings())
    assert service_url(settings) == url


def test_with_certificates_the_address_of_tls_is_asked() -> None:
    table = {"listen": "0.0.0.0:6651", "certificate": "a.crt", "key": "a.key"}

    def asked(*, tls: bool = True, **more: str) -> str:
        pulsar = {"listen": "0.0.0.0:6650", "tls": {**table, **more}}
        return service_url(Settings.model_validate({"pulsar": pulsar}), tls=tls)

    assert asked(advertised="lookup.example.com") == "pulsar+ssl://lookup.example.com:6651"
    assert asked(listen="192.0.2.1:6651", advertised="") == "pulsar+ssl://192.0.2.1:6651"
    assert asked(tls=False, advertised="lookup.example.com") == "pulsar://127.0.0.1:6650"
    assert service_url(Settings(), tls=True) == service_url(Settings())
    with pytest.raises(BrokerCoreError, match=r"pulsar\.tls\.listen is a free port"):
        asked(listen="127.0.0.1:0")


def test_an_unknown_authority_is_told_with_the_option_that_names_it(cli: Cli, tmp_path: Path) -> None:
    issued, other = Authority(tmp_path).issue("server"), Authority(tmp_path, "other")
    settings = Settings.model_validate(
        {
            "pulsar": {
                "listen": "127.0.0.1:0",
                "tls": {
                    "listen": f"127.0.0.1:{(port := free_port())}",
                    "certificate": str(issued.certificate),
                    "key": str(issued.key),
                },
            },
            "catalog": {"path": tmp_path / "broker-core.sqlite"},
        }
    )
    with serving(settings):
        asked = ("list", "public/default", "--url", f"pulsar+ssl://127.0.0.1:{port}")
        assert "name it with --ca FILE" in cli(*asked).err
        assert f"{other.ca} does not have its authority" in cli(*asked, "--ca", other.ca).err
        assert cli(*asked, "--ca", tmp_path / "authority.pem").code == 0


def test_a_free_port_cannot_be_guessed() -> None:
    with pytest.raises(BrokerCoreError, match="--url"):
        service_url(Settings(pulsar=PulsarSettings.model_validate({"listen": "127.0.0.1:0"})))

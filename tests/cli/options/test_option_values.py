from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.cli.options.option_values import (
    UnusableQuestion,
    parse_address,
    parse_mode,
    parse_namespace,
    parse_properties,
)
from broker_core.names import Mode
from tests.cli.conftest import Cli
from tests.support.files import file_with


def test_properties_are_pairs_and_each_key_is_given_once() -> None:
    assert parse_properties(["a=1", "b=x=y", "c="]) == {"a": "1", "b": "x=y", "c": ""}
    with pytest.raises(UnusableQuestion, match="--property 'a=2': 'a' is given twice"):
        parse_properties(["a=1", "b=x=y", "a=2"])
    assert parse_properties(None) == {}


@pytest.mark.parametrize("pair", ["a", "=b", ""])
def test_what_is_no_pair_is_named(pair: str) -> None:
    with pytest.raises(UnusableQuestion) as caught:
        parse_properties([pair])
    assert str(caught.value) == f"--property {pair!r}: expected KEY=VALUE"


def test_modes_as_pulsar_writes_them_and_as_people_do() -> None:
    assert parse_mode("NON_PERSISTENT") is parse_mode("non-persistent") is Mode.NON_PERSISTENT
    with pytest.raises(UnusableQuestion, match="'most'"):
        parse_mode("most")


def test_a_namespace_has_two_parts() -> None:
    assert str(parse_namespace("public/default")) == "public/default"
    with pytest.raises(UnusableQuestion, match="expected tenant/namespace"):
        parse_namespace("public")


WRONG: dict[str, list[str]] = {
    "mode": ["explain", "a/b", "--mode", "foo"],
    "mode of list": ["list", "a/b", "--mode", "foo"],
    "property": ["explain", "a/b", "--property", "foo"],
    "property of a topic": ["topics", "create", "a/b", "x", "--property", "foo"],
    "namespace": ["explain", "bad"],
    "namespace to import into": ["topics", "import", "bad", "-"],
    "topic": ["topics", "create", "a/b", "x/y"],
    "url": ["list", "a/b", "--url", "ftp://x"],
    "address": ["serve", "--pulsar", "127.0.0.1:x"],
    "unknown option": ["explain", "a/b", "--nope"],
}


@pytest.mark.parametrize("arguments", WRONG.values(), ids=WRONG)
def test_a_wrong_option_or_argument_is_two(cli: Cli, arguments: list[str]) -> None:
    said = cli(*arguments)
    assert said.only_error
    assert said.code == 2


def test_what_a_setting_or_a_file_says_is_one(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = file_with(tmp_path / "names.txt", "a/b\n")
    assert cli("topics", "import", "a/b", wrong).code == 1
    assert cli("topics", "show", "a/b", "--catalog", "absent.sqlite").code == 1
    assert cli("topics", "show", "a/b", "--config", "absent.toml").code == 1
    monkeypatch.setenv("BROKER_CORE_PULSAR__LISTEN", "127.0.0.1:x")
    assert cli("serve").code == 1


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("203.0.113.7", "203.0.113.7:0"),
        ("203.0.113.7:6650", "203.0.113.7:6650"),
        ("::1", "[::1]:0"),
        ("[::1]", "[::1]:0"),
        ("[::1]:77", "[::1]:77"),
        ("client.example", "client.example:0"),
        ("client.example:77", "client.example:77"),
    ],
)
def test_addresses(given: str, address: str) -> None:
    assert parse_address(given) == address


@pytest.mark.parametrize("given", ["", ":1", "a:b", "a:70000", "a:-1", "a:²"])
def test_what_is_no_address(given: str) -> None:
    with pytest.raises(UnusableQuestion, match="expected HOST or HOST:PORT"):
        parse_address(given)

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Cli


def properties(cli: Cli, topic: str) -> object:
    return json.loads(cli("topics", "show", "a/b", topic, "--format", "json").out)["properties"]


@pytest.fixture(autouse=True)
def _filled(cli: Cli) -> None:
    cli("topics", "create", "a/b", "orders", "--partitions", "3", "--property", "team=a")
    cli("topics", "create", "a/b", "bills", "--property", "team=b")


def test_keys_are_set_and_taken_away(cli: Cli) -> None:
    said = cli("topics", "set-properties", "a/b", "orders", "region=eu", "k=a=b")
    assert said.out == "changed the properties of 1 of 1 topic (3 names)\n"
    assert properties(cli, "orders") == {"team": "a", "region": "eu", "k": "a=b"}
    assert cli("topics", "set-properties", "persistent://a/b/orders-partition-1", "--unset", "k").code == 0
    assert properties(cli, "orders") == {"team": "a", "region": "eu"}
    assert cli("topics", "set-properties", "a/b/orders", "x=1", "--replace").code == 0
    assert properties(cli, "orders") == {"x": "1"}
    assert cli("topics", "set-properties", "a/b/orders", "--replace").code == 0
    assert properties(cli, "orders") == {}
    assert json.loads(cli("topics", "show", "a/b", "--format", "json").out)["names"] == 4


def test_of_a_pattern(cli: Cli) -> None:
    dry = cli("topics", "set-properties", "a/b", "region=eu", "--pattern", "a/b/.*s", "--dry-run")
    assert dry.out == "would change the properties of 2 of 2 topics (4 names)\n"
    assert properties(cli, "bills") == {"team": "b"}
    assert cli("topics", "set-properties", "a/b", "region=eu", "--pattern", "a/b/.*s").code == 0
    assert properties(cli, "bills") == {"team": "b", "region": "eu"}
    again = cli("topics", "set-properties", "a/b", "region=eu", "--pattern", "a/b/.*s")
    assert again.out == "changed the properties of 0 of 2 topics (4 names)\n"


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["a/b", "absent", "k=v"], 1, "There is no topic persistent://a/b/absent"),
        (["a/b", "k=v"], 2, "No property is given"),
        (["a/b"], 2, "No property is given"),
        (["a/b", "orders"], 2, "No property is given"),
        (["a/b", "orders", "k"], 2, "argument 'k': expected KEY=VALUE"),
        (["a/b", "orders", "k=v", "--unset", "k"], 2, "both set and unset"),
        (["a/b/orders", "k=v", "--pattern", "x"], 2, "topics of a namespace"),
        (["a/b", "k=v", "--pattern", "(?!x)"], 1, "Unsupported topics pattern"),
        (["a/b", "k=v", "--pattern", "orders"], 1, "such as 'a/b/orders'"),
        (["a/b", "--replace"], 2, "is a namespace: name the topic as well"),
    ],
)
def test_what_cannot_be(cli: Cli, arguments: list[str], code: int, reason: str) -> None:
    said = cli("topics", "set-properties", *arguments)
    assert said.code == code
    assert reason in said.only_error

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from broker_core.listing.listing_hash import topics_hash
from tests.cli.conftest import Cli, InstallPlugin
from tests.support.files import file_with

NAMES = [f"persistent://public/default/orders-{region}" for region in ("eu", "us")]
PLUGINS = """
from broker_core import TopicListingResult, hookimpl

@hookimpl
def broker_core_list_topics(request, properties):
    if "fail" in properties:
        raise RuntimeError("no database here")
    if properties.get("who") != "me":
        return TopicListingResult.pass_through()
    return TopicListingResult.success([f"persistent://{request.namespace}/mine"])
"""


@pytest.fixture
def config(cli: Cli, tmp_path: Path) -> Path:
    for name in [*NAMES, "persistent://public/default/x"]:
        cli("topics", "create", name)
    return file_with(tmp_path / "broker-core.toml", '[plugins]\nenabled = ["first", "second"]\n')


def test_the_plan_and_the_default_lister(cli: Cli, tmp_path: Path, config: Path) -> None:
    config.write_text("")
    said = cli(
        "explain",
        "public/default",
        "--config",
        config,
        "--pattern",
        "public/default/orders-.*",
        "--format",
        "json",
    ).printed
    report = json.loads(said)
    assert report["chain"] == []
    assert (report["lister"], report["plan"], report["topics"]) == ("catalog", "range", 2)
    assert report["topics_hash"] == topics_hash(NAMES)
    assert report["filtered"] is True
    assert report["bytes"] > 0


def test_the_chain(cli: Cli, config: Path, install_plugin: InstallPlugin) -> None:
    install_plugin("first", PLUGINS.replace('"me"', '"first"'))
    install_plugin("second", PLUGINS)
    asked = ["explain", "public/default", "--config", config, "--format", "json"]
    chain = json.loads(cli(*asked, "--property", "who=me").out)["chain"]
    assert [(step["plugin"], step["answer"]) for step in chain] == [
        ("first", "pass_through"),
        ("second", "success"),
    ]
    assert all(step["ms"] >= 0 for step in chain)
    report = json.loads(cli(*asked, "--property", "who=first").out)
    assert [step["answer"] for step in report["chain"]] == ["success", "not_asked"]
    assert (report["lister"], report["topics"]) == ("first", 1)


def test_a_failure_is_explained_and_is_a_failure(
    cli: Cli, config: Path, install_plugin: InstallPlugin
) -> None:
    install_plugin("first", PLUGINS)
    install_plugin("second", PLUGINS)
    asked = ["explain", "public/default", "--config", config, "--property", "fail=1"]
    said = cli(*asked, "--format", "json")
    assert said.code == 1
    report = json.loads(said.out)
    assert [step["answer"] for step in report["chain"]] == ["error", "not_asked"]
    assert "no database here" in report["chain"][0]["error"]
    assert said.err.startswith("broker-core: MetadataError: plugin 'first'")
    assert said.err.count("\n") == 1
    table = cli(*asked)
    assert table.code == 1
    assert "no database here" in table.out


def test_the_table(cli: Cli, config: Path, install_plugin: InstallPlugin) -> None:
    install_plugin("first", PLUGINS)
    install_plugin("second", PLUGINS)
    said = cli(
        "explain", "public/default", "--config", config, "--pattern", "public/default/orders-.*"
    ).printed
    rows = [line.split() for line in said.splitlines()]
    assert ["plan", "range"] in rows
    assert ["lister", "catalog"] in rows
    assert ["topics", "2"] in rows
    assert any(row[:3] == ["first", "lists", "pass_through"] for row in rows)


@pytest.mark.parametrize("enabled", [[], ["first"]])
def test_a_catalogue_that_is_not_there_is_an_error_and_is_not_made(
    cli: Cli, tmp_path: Path, install_plugin: InstallPlugin, enabled: list[str]
) -> None:
    install_plugin("first", PLUGINS)
    config = file_with(tmp_path / "elsewhere.toml", f"[plugins]\nenabled = {enabled}\n")
    typo = tmp_path / "typo.sqlite"
    explained = cli("explain", "public/default", "--config", config, "--catalog", typo)
    assert explained.only_error == cli("topics", "export", "public/default", "--catalog", typo).only_error
    assert not typo.exists()


def test_plugins_can_be_explained_before_a_server_made_its_catalogue(
    cli: Cli, tmp_path: Path, install_plugin: InstallPlugin
) -> None:
    install_plugin("mine", PLUGINS)
    config = file_with(
        tmp_path / "elsewhere.toml", '[plugins]\nenabled = ["mine"]\n[catalog]\npath = "later.sqlite"\n'
    )
    asked = ["explain", "public/default", "--config", config, "--format", "json"]
    report = json.loads(cli(*asked, "--property", "who=me").out)
    assert (report["lister"], report["topics"]) == ("mine", 1)
    assert json.loads(cli(*asked).out)["lister"] == "catalog"
    assert not (tmp_path / "later.sqlite").exists()
    config.write_text("")
    assert "There is no catalogue" in cli("explain", "public/default", "--config", config).only_error


def test_what_cannot_be_explained_is_one_line(cli: Cli, config: Path, tmp_path: Path) -> None:
    assert "plugin 'first' is enabled" in cli("explain", "public/default", "--config", config).only_error
    config.write_text("")
    assert "'('" in cli("explain", "public/default", "--config", config, "--pattern", "(").only_error
    asked = ["explain", "public/default", "--config", config, "--pattern", "(", "--format", "json"]
    report = json.loads(cli(*asked).out)
    assert (report["topics_pattern"], report["pattern"], report["code"]) == ("(", None, "MetadataError")
    assert "'('" in report["error"]
    broken = file_with(tmp_path / "broken.sqlite", b"no database" * 100)
    assert str(broken) in cli("explain", "public/default", "--catalog", broken).only_error


ASKED = """
from broker_core import TopicListingResult, hookimpl

@hookimpl
def broker_core_list_topics(request):
    asker = request.asker
    name = f"{asker.role}-{asker.remote_address}-{asker.client_version}-{asker.transport}"
    return TopicListingResult.success([f"persistent://{request.namespace}/{name}"], filtered=True)
"""


def test_who_asks_can_be_said(cli: Cli, config: Path, install_plugin: InstallPlugin) -> None:
    install_plugin("who-asks", ASKED)
    config.write_text('[plugins]\nenabled = ["who-asks"]\n')
    asked = ["explain", "public/default", "--config", config, "--format", "json"]
    given = ["--role", "alice", "--address", "203.0.113.7", "--client-version", "Pulsar-Java-v4.2.4"]
    pattern = ["--pattern", "public/default/alice-203.0.113.7:0-Pulsar-Java-v4.2.4-explain"]
    report = json.loads(cli(*asked, *given, *pattern).out)
    assert (report["topics"], report["warnings"]) == (1, [])
    assert report["asker"] == {
        "role": "alice",
        "original_principal": None,
        "address": "203.0.113.7:0",
        "client_version": "Pulsar-Java-v4.2.4",
    }
    without = json.loads(cli(*asked, *pattern).out)
    assert (without["asker"]["role"], without["asker"]["address"]) == (None, "127.0.0.1:0")
    assert without["topics"] == 0
    assert "says that it filtered" in without["warnings"][0]
    table = cli("explain", "public/default", "--config", config, *pattern).out
    assert "warning: plugin 'who-asks' says that it filtered" in table
    assert "--address 'x:y'" in cli(*asked, "--address", "x:y").only_error


def test_a_page_and_details(cli: Cli, config: Path) -> None:
    config.write_text("")
    asked = ["explain", "public/default", "--config", config, "--format", "json"]
    report = json.loads(cli(*asked, "--limit", "1", "--want", "partitions", "--want", "created").out)
    assert (report["page"], report["wants"]) == ({"start": None, "limit": 1}, ["created", "partitions"])
    assert (report["topics"], report["next"]) == (1, NAMES[1])
    assert report["details"]["topics"] == 1
    assert set(report["details"]["columns"]) == {"created", "partitions"}
    (first,) = report["details"]["first"]
    assert (first["topic"], first["partitions"]) == (NAMES[0], 0)
    assert datetime.fromisoformat(first["created"]).utcoffset() == timedelta(0)
    (first,) = json.loads(cli(*asked, "--limit", "1", "--want", "topic_id").out)["details"]["first"]
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", first["topic_id"])
    report = json.loads(cli(*asked, "--start", NAMES[1]).out)
    assert report["page"] == {"start": NAMES[1], "limit": 1000}
    assert (report["topics"], report["next"], report["details"]) == (2, None, None)
    table = cli("explain", "public/default", "--config", config, "--limit", "1").out
    assert "next" in table
    assert NAMES[1] in table
    assert "colour" in cli(*asked, "--want", "colour").only_error
    assert "orders" in cli(*asked, "--start", "orders").only_error
    assert cli(*asked, "--limit", "0").code == 2


GATE = """
from broker_core import Refused, hookimpl

@hookimpl
def broker_core_authorize(access):
    return None if access.asker.role == "alice" else Refused(f"{access.action} is for alice")
"""


def test_gates_are_asked_as_whoever_is_said(cli: Cli, config: Path, install_plugin: InstallPlugin) -> None:
    install_plugin("gate", GATE)
    config.write_text('[plugins]\nenabled = ["gate"]\n')
    asked = ["explain", "public/default", "--config", config]
    said = cli(*asked, "--format", "json")
    assert (said.code, said.err) == (1, "broker-core: AuthorizationError: list is for alice\n")
    report = json.loads(said.out)
    assert [(step["plugin"], step["answer"]) for step in report["gates"]] == [("gate", "refused")]
    assert (report["cause"], report["chain"], report["topics"]) == ("denied", [], None)
    report = json.loads(cli(*asked, "--role", "alice", "--format", "json").out)
    assert ([step["answer"] for step in report["gates"]], report["topics"]) == (["allowed"], 3)
    rows = [line.split() for line in cli(*asked, "--role", "alice").out.splitlines()]
    assert any(row[:3] == ["gate", "authorizes", "allowed"] for row in rows)


VERSIONED = """
from broker_core import TopicListingResult, hookimpl

@hookimpl
def broker_core_depends_on():
    return set()

@hookimpl
def broker_core_version(request):
    return "v7"

@hookimpl
def broker_core_list_topics(request):
    return TopicListingResult.success([f"persistent://{request.namespace}/mine"])
"""
MASK = """
from broker_core import hookimpl

@hookimpl
def broker_core_visible(request, topics):
    return None
"""


def test_versions_and_what_is_kept(cli: Cli, config: Path, install_plugin: InstallPlugin) -> None:
    install_plugin("versioned", VERSIONED)
    install_plugin("remembers", PLUGINS)
    config.write_text(
        '[plugins]\nenabled = ["remembers", "versioned"]\n[plugins.remembers]\non_failure = "stale"\n'
    )
    asked = ["explain", "public/default", "--config", config]
    report = json.loads(cli(*asked, "--format", "json").out)
    assert [(step["answer"], step.get("version")) for step in report["chain"]] == [
        ("pass_through", None),
        ("success", "v7"),
    ]
    assert report["kept"] == [
        {"plugin": "remembers", "for": "failure"},
        {"plugin": "versioned", "for": "version"},
    ]
    table = cli(*asked).out
    assert "success, new at version v7" in table
    assert "plugin: versioned; for: version" in table


def test_nothing_is_kept_without_a_version(cli: Cli, config: Path, install_plugin: InstallPlugin) -> None:
    install_plugin("forgets", PLUGINS)
    install_plugin("shows-all", MASK)
    config.write_text('[plugins]\nenabled = ["forgets", "shows-all"]\n')
    report = json.loads(
        cli("explain", "public/default", "--config", config, "--property", "who=me", "--format", "json").out
    )
    assert (report["lister"], report["kept"]) == ("forgets", [])


def test_what_a_kafka_client_would_be_shown(cli: Cli, config: Path) -> None:
    config.write_text('[kafka]\nlisten = "127.0.0.1:0"\nsuper_users = ["User:root"]\n')
    asked = ["explain", "public/default", "--config", config, "--role", "ann"]
    kafka = json.loads(cli(*asked, "--format", "json").out)["kafka"]
    assert (kafka["authorizer"], kafka["topics"], kafka["hidden_by_acls"]) == ("on", 0, 3)
    assert "hidden_by_acls: 3" in cli(*asked).out

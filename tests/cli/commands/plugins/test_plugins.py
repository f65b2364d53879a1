from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from broker_core.settings import load_settings
from tests.cli.conftest import Cli, InstallPlugin
from tests.cli.server import serving
from tests.support.ports import free_port

LISTER = """
from broker_core import hookimpl

@hookimpl{options}
def broker_core_list_topics(request):
    return None
"""
BROKEN = "raise RuntimeError('no database here')\n"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "broker-core.toml"


def _plugins(cli: Cli, config: Path, *, code: int = 0) -> dict[str, dict[str, Any]]:
    said = cli("plugins", "--config", config, "--format", "json")
    assert said.code == code
    assert not said.err
    return {plugin["name"]: plugin for plugin in json.loads(said.out)}


def test_enabled_ones_come_in_the_order_of_the_chain(
    cli: Cli, config: Path, install_plugin: InstallPlugin
) -> None:
    for name in ("a-lister", "b-lister", "c-lister"):
        install_plugin(name, LISTER.format(options=""))
    config.write_text('[plugins]\nenabled = ["c-lister", "a-lister"]\n[plugins.c-lister]\ndeadline = "2s"\n')
    plugins = _plugins(cli, config)
    assert [name for name in plugins if name.endswith("lister")] == ["c-lister", "a-lister", "b-lister"]
    first = plugins["c-lister"]
    assert (first["distribution"], first["version"]) == ("dist-of-c-lister", "1.2.3")
    assert (first["order"], first["state"], first["error"]) == (1, "enabled", None)
    assert first["hooks"] == ["broker_core_list_topics"]
    assert first["deadline"] == 2.0
    assert (plugins["a-lister"]["order"], plugins["a-lister"]["state"]) == (2, "enabled")
    assert (plugins["b-lister"]["order"], plugins["b-lister"]["state"]) == (None, "disabled")


def test_a_broken_plugin_is_shown_and_breaks_nothing_else(
    cli: Cli, config: Path, install_plugin: InstallPlugin
) -> None:
    install_plugin("good", LISTER.format(options=""))
    install_plugin("bad", BROKEN)
    install_plugin("off", BROKEN)
    config.write_text('[plugins]\nenabled = ["bad", "good", "absent"]\n[plugins.good]\ndedline = 1\n')
    plugins = _plugins(cli, config, code=1)
    assert plugins["bad"]["state"] == "error"
    assert "dist-of-bad" in plugins["bad"]["error"]
    assert "no database here" in plugins["bad"]["error"]
    assert plugins["good"]["state"] == "error"
    assert "did you mean 'deadline'" in plugins["good"]["error"]
    assert plugins["absent"]["state"] == "error"
    assert "no installed distribution" in plugins["absent"]["error"]
    assert plugins["off"]["state"] == "disabled"
    assert "no database here" in plugins["off"]["error"]


def test_what_a_plugin_says_of_what_it_works_on_is_an_error(
    cli: Cli, config: Path, install_plugin: InstallPlugin
) -> None:
    says = "\n@hookimpl\ndef broker_core_problems(settings):\n    {}\n"
    install_plugin("well", LISTER.format(options="") + says.format("return []"))
    install_plugin("ill", LISTER.format(options="") + says.format("return ['a file is cut', 'two\\nlines']"))
    install_plugin("mad", LISTER.format(options="") + says.format("raise OSError('no disk')"))
    config.write_text('[plugins]\nenabled = ["well", "ill", "mad"]\n')
    plugins = _plugins(cli, config, code=1)
    assert (plugins["well"]["state"], plugins["well"]["error"]) == ("enabled", None)
    assert (plugins["ill"]["state"], plugins["ill"]["error"]) == ("error", "a file is cut; two lines")
    assert plugins["ill"]["hooks"] == ["broker_core_list_topics", "broker_core_problems"]
    assert plugins["mad"]["state"] == "error"
    assert "no disk" in plugins["mad"]["error"]
    config.write_text('[plugins]\nenabled = ["well"]\n')
    assert _plugins(cli, config)["ill"]["error"] is None  # nobody works with it


def test_a_disabled_plugin_says_what_it_needs(cli: Cli, config: Path, install_plugin: InstallPlugin) -> None:
    model = "\nfrom pydantic import BaseModel\nclass Own(BaseModel):\n    url: str\n    limit: int\n"
    settings = "\n@hookimpl\ndef broker_core_settings():\n    return Own\n"
    install_plugin("needy", model + LISTER.format(options="") + settings)
    config.write_text("")
    needy = _plugins(cli, config)["needy"]
    assert needy["state"] == "disabled"
    assert needy["error"] == "to be enabled it needs plugins.needy.url and plugins.needy.limit"
    config.write_text('[plugins.needy]\nurl = "x"\nlimit = "many"\n')
    assert "cannot use its settings: plugins.needy.limit" in _plugins(cli, config)["needy"]["error"]
    config.write_text('[plugins]\nenabled = ["needy"]\n')
    needy = _plugins(cli, config, code=1)["needy"]
    assert "cannot use its settings: plugins.needy.url: field required" in needy["error"]


def test_an_order_that_contradicts_a_hook_is_a_warning(
    cli: Cli, config: Path, install_plugin: InstallPlugin
) -> None:
    install_plugin("calm", LISTER.format(options=""))
    install_plugin("pushy", LISTER.format(options="(tryfirst=True)"))
    config.write_text('[plugins]\nenabled = ["calm", "pushy"]\n')
    plugins = _plugins(cli, config)
    assert "tryfirst" in plugins["pushy"]["warnings"][0]
    assert plugins["calm"]["warnings"] == []


def test_the_table(cli: Cli, config: Path, install_plugin: InstallPlugin) -> None:
    install_plugin("a-lister", LISTER.format(options=""))
    install_plugin("bad", BROKEN)
    config.write_text('[plugins]\nenabled = ["a-lister", "bad"]\n')
    said = cli("plugins", "--config", config)
    assert said.code == 1  # the server would not start
    row = next(line for line in said.out.splitlines() if "dist-of-a-lister" in line)
    assert row.split() == [
        "1",
        "a-lister",
        "dist-of-a-lister",
        "1.2.3",
        "enabled",
        "list_topics",
        "address",
        "client",
        "pattern",
        "principal",
        "properties",
    ]
    assert "error" in next(line for line in said.out.splitlines() if "dist-of-bad" in line)


def test_one_text_is_one_problem_and_what_is_none_is_one_too(
    cli: Cli, config: Path, install_plugin: InstallPlugin
) -> None:
    says = "\n@hookimpl\ndef broker_core_problems(settings):\n    return {}\n"
    install_plugin("text", LISTER.format(options="") + says.format("'the disk is full'"))
    install_plugin("number", LISTER.format(options="") + says.format("5"))
    install_plugin("none", LISTER.format(options="") + says.format("None"))
    config.write_text('[plugins]\nenabled = ["text", "number", "none"]\n')
    plugins = _plugins(cli, config, code=1)
    assert plugins["text"]["error"] == "the disk is full"
    assert "problems are a list of strings" in plugins["number"]["error"]
    assert plugins["none"]["state"] == "enabled"


def test_the_calls_at_a_running_broker_are_shown(
    cli: Cli, config: Path, install_plugin: InstallPlugin
) -> None:
    blocks = LISTER.format(options="").replace("def broker", "async def broker")
    # It computes: what is counted of a sleep may be less than the sleep.
    computes = (
        "from time import thread_time as now\n    end = now() + 0.15\n    while now() < end:\n        pass"
    )
    blocks = blocks.replace("return None", computes)
    install_plugin("before", LISTER.format(options=""))
    install_plugin("blocks", blocks)
    http = f"127.0.0.1:{free_port()}"
    config.write_text(f'[http]\nlisten = "{http}"\n[plugins]\nenabled = ["before", "blocks"]\n')
    assert _plugins(cli, config)["blocks"]["served"] is None  # nothing runs yet
    options = {"--pulsar": (("pulsar", "listen"), "127.0.0.1:0")}
    with serving(load_settings(config, options=options).settings) as url:
        assert cli("list", "public/default", "--url", url).code == 0
        plugins = _plugins(cli, config)
        served = plugins["blocks"]["served"]
        assert served["calls"]["list_topics"]["loop"]["blocked"] == 1
        assert [served["order"], plugins["blocks"]["order"]] == [2, 2]  # the same number everywhere
        assert plugins["before"]["order"] == plugins["before"]["served"]["order"] == 1
        table = cli("plugins", "--config", config).out
        assert "Calls at the running broker" in table
        elsewhere = cli("plugins", "--broker", http).out
        assert "blocks" in elsewhere
    assert "Connection refused" in cli("plugins", "--broker", http).only_error

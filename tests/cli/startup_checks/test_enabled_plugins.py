from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.cli.startup_checks.enabled_plugins import plugin_checks, property_checks
from broker_core.settings import PluginsSettings
from tests.cli.conftest import InstallPlugin
from tests.cli.startup_checks.findings import levels, settings, text

HOOK = """
from broker_core import Check, hookimpl
from pydantic import BaseModel

class Own(BaseModel):
    store: str = "here"

@hookimpl
def broker_core_settings():
    return Own

@hookimpl
{}
"""


def plugins(name: str, **table: object) -> PluginsSettings:
    return PluginsSettings.model_validate({"enabled": [name]} | ({name: table} if table else {}))


@pytest.mark.parametrize("define", ["def", "async def"])
def test_a_plugin_says_what_it_sees(install_plugin: InstallPlugin, define: str) -> None:
    install_plugin(
        "sees",
        HOOK.format(
            f"{define} broker_core_check(settings):\n    return [Check.warning('store', settings.store)]"
        ),
    )
    found = list(plugin_checks(plugins("sees", store="there")))
    assert levels(found) == {"plugins.sees": "ok", "plugins.sees.store": "warning"}
    assert text(found, "plugins.sees.store") == "there"


def test_without_the_hook_its_problems_are_errors(install_plugin: InstallPlugin) -> None:
    install_plugin("unwell", HOOK.format("def broker_core_problems(settings):\n    return ['it is ill']"))
    found = list(plugin_checks(plugins("unwell", deadline="40s")))
    assert levels(found) == {"plugins.unwell": "error", "plugins.unwell.deadline": "warning"}
    assert "it is ill" in text(found, "plugins.unwell")


@pytest.mark.parametrize(
    ("name", "body", "said"),
    [
        ("raises", "raise OSError('no disk')", "no disk"),
        ("speaks", "return ['x']", "gave a str, not a Check"),
    ],
)
def test_a_plugin_that_errs(install_plugin: InstallPlugin, name: str, body: str, said: str) -> None:
    install_plugin(name, HOOK.format(f"def broker_core_check(settings):\n    {body}"))
    found = list(plugin_checks(plugins(name)))
    assert levels(found) == {f"plugins.{name}": "error"}
    assert said in text(found, f"plugins.{name}")


def test_plugins_that_are_not_there(install_plugin: InstallPlugin) -> None:
    install_plugin("mine", "")
    found = list(
        plugin_checks(
            PluginsSettings.model_validate({"enabled": ["postgre"], "mine": {"x": 1}, "absent": {"x": 1}})
        )
    )
    assert levels(found) == {"plugins.postgre": "error", "plugins.mine": "warning", "plugins.absent": "error"}
    assert "did you mean 'postgres'?" in text(found, "plugins.postgre")


@pytest.mark.parametrize(
    ("name", "declares", "said"),
    [
        ("undeclared", "", "does not declare"),
        ("selecting", "return ['properties']", "depend on properties"),
        ("forall", "return []", None),
    ],
)
def test_a_plugin_that_stands_in_the_way_of_watches_is_told_of(
    install_plugin: InstallPlugin, name: str, declares: str, said: str | None
) -> None:
    body = "def broker_core_list_topics(request):\n    return None"
    if declares:
        body += f"\n\n@hookimpl\ndef broker_core_depends_on():\n    {declares}"
    install_plugin(name, HOOK.format(body))
    found = list(plugin_checks(plugins(name)))
    if said is None:
        assert levels(found) == {f"plugins.{name}": "ok"}
    else:
        assert levels(found)[f"plugins.{name}.depends_on"] == "warning"
        assert said in text(found, f"plugins.{name}.depends_on")


@pytest.mark.parametrize(
    ("hooks", "tables", "none_selects"),
    [
        ("", {}, True),
        ("", {"catalog": {"property_keys": ["region"]}}, False),
        (
            "",
            {"upstream": {"service_url": "pulsar://b:6650"}, "catalog": {"property_keys": ["region"]}},
            True,
        ),
        ("", {"upstream": {"service_url": "pulsar://b:6650", "listing_depends_on": ["properties"]}}, False),
        ("def broker_core_list_topics(request):\n    return None", {}, False),  # it may read any
        ("def broker_core_authorize(access):\n    return None", {}, True),
        (
            """def broker_core_visible(request, topics):
    return None

@hookimpl
def broker_core_depends_on():
    return ['principal']""",
            {},
            True,
        ),
    ],
)
def test_that_no_property_selects_is_said(
    install_plugin: InstallPlugin, hooks: str, tables: dict[str, dict[str, object]], none_selects: bool
) -> None:
    if hooks:
        name = f"hooked-{len(hooks)}"  # a module is imported once
        install_plugin(name, HOOK.format(hooks))
        tables = tables | {"plugins": {"enabled": [name]}}
    found = list(property_checks(settings(**tables)))
    assert levels(found) == ({"properties": "ok"} if none_selects else {})


def test_of_a_plugin_that_is_not_there_nothing_is_said() -> None:
    assert list(property_checks(settings(plugins={"enabled": ["absent"]}))) == []


def test_two_plugins_at_one_address_are_found_as_by_the_start(
    install_plugin: InstallPlugin, tmp_path: Path
) -> None:
    """And so is an address of the server, and files that cannot be served."""
    for name, made in (
        ("onesite", "HttpSite('/status')"),
        ("samesite", "HttpSite('/status')"),
        ("coresite", "HttpSite('/v1')"),
        ("lostsite", f"HttpSite('/fourth', files='{tmp_path}/absent')"),
    ):
        hook = HOOK.format(f"def broker_core_http_routes(settings):\n    return {made}")
        install_plugin(name, f"from broker_core import HttpSite\n{hook}")
    enabled = PluginsSettings.model_validate({"enabled": ["onesite", "samesite", "coresite", "lostsite"]})
    found = list(plugin_checks(enabled, serves_http=True))
    assert levels(found) == {
        "plugins.onesite": "ok",
        "plugins.samesite": "error",
        "plugins.coresite": "error",
        "plugins.lostsite": "error",
    }
    assert "has a site at /status, and so has plugin 'onesite'" in text(found, "plugins.samesite")
    assert "has a site at /v1, which the server has itself" in text(found, "plugins.coresite")
    assert "with the files of 'absent', which is no folder" in text(found, "plugins.lostsite")
    assert {each.level for each in plugin_checks(enabled)} == {"ok"}, "without [http] nothing is served"

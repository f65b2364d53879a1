"""Loading plugins: the operator's order, and errors that name the plugin and its distribution."""

from __future__ import annotations

import functools
import re
from types import SimpleNamespace
from typing import ClassVar

import pytest
from pydantic import BaseModel, create_model

from broker_core import hookimpl
from broker_core.plugins.failures import PluginLoadError
from broker_core.plugins.load.registry import PluginRegistry
from tests.plugins.conftest import Distribution
from tests.support.plugins import PluginOf, loaded

LISTER = """
from broker_core import hookimpl

@hookimpl
def broker_core_list_topics(request):
    return None
"""


def lister(request: object) -> None: ...


def test_no_plugins() -> None:
    registry = PluginRegistry.load()
    assert (len(registry), list(registry), registry.describe(), registry.warnings) == (0, [], [], [])


def test_the_operators_list_is_the_order(distribution: Distribution) -> None:
    distribution(
        "acme-plugins", "1.2", {"a": "acme_a", "b": "acme_b", "off": "acme_no"}, acme_a=LISTER, acme_b=LISTER
    )
    registry = PluginRegistry.load(
        ["b", "mine", "a"], {"a": {"deadline": "2s"}}, given={"mine": PluginOf(), "z": PluginOf()}
    )
    assert [plugin.name for plugin in registry] == ["b", "mine", "a", "z"]
    assert [plugin["order"] for plugin in registry.describe()] == [1, 2, 3, 4]
    assert registry["a"].options.deadline == 2.0
    assert "off" not in registry
    assert registry["a"].origin == "acme-plugins 1.2"
    assert registry["z"].origin is None
    assert registry.describe()[0] == {
        "name": "b",
        "distribution": "acme-plugins",
        "version": "1.2",
        "order": 1,
        "hooks": ["broker_core_list_topics"],
        "namespaces": ["*"],
        "deadline": 5.0,
        "on_failure": "error",
        "max_stale": 60.0,
        "verify_filtered": "always",
        "depends_on": ["address", "client", "pattern", "principal", "properties"],
        "warnings": [],
        "state": "enabled",
    }


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (
            "def broker_core_list_topic(request): ...",
            "unknown hook 'broker_core_list_topic'.*did you mean 'broker_core_list_topics'",
        ),
        (
            "def broker_core_list_topics(requests): ...",
            "takes 'requests', an argument .*: it has request, namespace, .*did you mean 'request'",
        ),
        (
            "def broker_core_settings(): raise ValueError('broken')",
            "failed in broker_core_settings: ValueError: broken",
        ),
        ("def broker_core_list_topics(request): yield", "broker_core_list_topics is a generator"),
    ],
)
def test_errors_name_plugin_and_distribution(distribution: Distribution, source: str, problem: str) -> None:
    distribution(
        "acme-plugins",
        "1.2",
        {"acme": "acme_wrong"},
        acme_wrong=f"from broker_core import hookimpl\n@hookimpl\n{source}",
    )
    with pytest.raises(
        PluginLoadError, match=rf"^plugin 'acme' \(distribution acme-plugins 1\.2\) .*{problem}"
    ) as caught:
        PluginRegistry.load(["acme"])
    assert "\n" not in str(caught.value)


def test_a_wrong_table_is_named(distribution: Distribution) -> None:
    distribution("acme-plugins", "1.2", {"acme": "acme_a"}, acme_a=LISTER)
    with pytest.raises(PluginLoadError) as caught:
        PluginRegistry.load(["acme"], {"acme": {"dedline": "2s"}})
    assert str(caught.value) == (
        "plugin 'acme' (distribution acme-plugins 1.2) cannot use its settings: plugins.acme.dedline: unknown key, "
        "did you mean 'deadline'?"
    )


def test_a_table_of_no_plugin_is_an_error(distribution: Distribution) -> None:
    distribution("acme-plugins", "1.2", {"acme": "acme_a", "off": "acme_no"}, acme_a=LISTER)
    with pytest.raises(PluginLoadError) as caught:
        PluginRegistry.load(["acme"], {"acmee": {}, "off": {}})
    assert str(caught.value) == (
        "plugin 'acmee' has a table in the settings, but is not installed (did you mean 'acme'?)"
    )
    assert not PluginRegistry.load(["acme"], {"off": {}}).warnings


@pytest.mark.parametrize(("plugin", "what"), [(None, "None"), (PluginOf, "the class PluginOf")])
def test_what_is_no_plugin(plugin: object, what: str) -> None:
    with pytest.raises(PluginLoadError, match=f"plugin 'p' is {what}: a plugin is a module or an instance"):
        loaded(plugin)


def test_twice_the_same() -> None:
    registry = PluginRegistry()
    plugin = PluginOf()
    registry.register("p", plugin)
    with pytest.raises(PluginLoadError, match="plugin 'p' is named twice"):
        registry.register("p", PluginOf())
    with pytest.raises(PluginLoadError, match="plugin 'q' is named twice, or is the same object"):
        registry.register("q", plugin)


def test_one_hook_twice() -> None:
    plugin = SimpleNamespace(
        broker_core_list_topics=hookimpl(lister),
        other=hookimpl(specname="broker_core_list_topics")(lambda request: None),
    )
    with pytest.raises(PluginLoadError, match="implements broker_core_list_topics twice"):
        loaded(plugin)


def test_an_implementation_under_another_name() -> None:
    plugin = SimpleNamespace(other=hookimpl(specname="broker_core_list_topics")(lambda request: None))
    assert loaded(plugin).hooks == ("broker_core_list_topics",)


def test_a_hook_that_this_broker_may_not_have() -> None:
    plugin = SimpleNamespace(broker_core_from_the_future=hookimpl(optionalhook=True)(lambda: None))
    assert loaded(plugin).hooks == ()


def test_a_refused_plugin_leaves_nothing_behind() -> None:
    registry = PluginRegistry()
    with pytest.raises(PluginLoadError):
        registry.register("p", SimpleNamespace(broker_core_nothing=hookimpl(lambda: None)))
    registry.register("p", PluginOf(list_topics=lister))
    assert len(registry) == 1


def test_a_forgotten_marker_is_a_warning() -> None:
    plugin = PluginOf(list_topics=lister)
    plugin.broker_core_visible = lambda request, topics: None  # type: ignore[attr-defined]
    plugin.broker_core_constant = 3  # type: ignore[attr-defined]
    assert loaded(plugin).warnings == ("defines broker_core_visible without @hookimpl: it is never called",)
    assert loaded(SimpleNamespace()).warnings == ("implements no hook",)


def test_tryfirst_and_trylast_that_the_order_overrules() -> None:
    def plugin(**options: bool) -> object:
        return SimpleNamespace(broker_core_list_topics=hookimpl(**options)(lambda request: None))  # type: ignore[call-overload]

    registry = PluginRegistry.load(given={"a": plugin(trylast=True), "b": plugin(tryfirst=True)})
    overruled = "but is number {} of 2 in the operator's order, which counts"
    hook = "broker_core_list_topics"
    assert registry.warnings == [
        f"plugin 'a' wants its {hook} to be called last (trylast), {overruled.format(1)}",
        f"plugin 'b' wants its {hook} to be called first (tryfirst), {overruled.format(2)}",
    ]
    assert PluginRegistry.load(given={"b": plugin(tryfirst=True), "a": plugin(trylast=True)}).warnings == []


def test_plain_hooks_are_called_by_name() -> None:
    class Own(BaseModel):
        url: str = "x"

    plugin = loaded(PluginOf(commands=lambda app: app.append("group"), settings=lambda: Own), url="y")
    app: list[str] = []
    plugin.call_plain("broker_core_commands", app=app)
    assert app == ["group"]
    assert plugin.options.settings == Own(url="y")
    assert plugin.call_plain("broker_core_shutdown") is None


@pytest.mark.parametrize("name", ["topics", "serve", "plugins", "enabled"])
def test_a_name_that_something_else_has_is_refused(name: str, distribution: Distribution) -> None:
    distribution("acme-plugins", "1.2", {name: "acme_taken"}, acme_taken=LISTER)
    refused = rf"plugin '{name}' \(distribution acme-plugins 1.2\) cannot have this name"
    with pytest.raises(PluginLoadError, match=refused) as caught:
        PluginRegistry.load([name])
    assert f"name its entry point otherwise, '{name}-plugin' say" in str(caught.value)
    with pytest.raises(PluginLoadError, match="cannot have this name"):
        PluginRegistry.load(given={name: PluginOf()})


@pytest.mark.parametrize("name", ["", "..", "a b", "p/q", "-x", "x" * 65, "p\n", "é"])
def test_names_are_keys_labels_and_commands(name: str) -> None:
    with pytest.raises(PluginLoadError, match="cannot have this name: letters"):
        PluginRegistry.load(given={name: SimpleNamespace()})


def test_a_model_that_fails_is_an_error_of_its_plugin() -> None:
    class Model(BaseModel):
        def model_post_init(self, _: object) -> None:
            raise KeyError("no such region")

    plugin = PluginOf(settings=lambda: Model)
    with pytest.raises(
        PluginLoadError, match="cannot use its settings: its model failed: KeyError: 'no such"
    ):
        PluginRegistry.load(given={"p": plugin})


def test_what_is_named_like_a_hook_and_is_no_function_is_a_warning() -> None:
    plugin = SimpleNamespace(broker_core_list_topics=functools.partial(print))
    (loaded,) = PluginRegistry.load(given={"p": plugin})
    assert (
        "defines broker_core_list_topics as a partial, not as a function: it is never called"
        in loaded.warnings
    )


@pytest.mark.parametrize(
    ("live", "why"),
    [
        (None, "the model of its settings names no live keys"),
        (frozenset(), "the model of its settings names no live keys"),
        ({"mosd"}, "'mosd', which the model of its settings calls live, is no key of it"),
        ({"namespaces"}, "'namespaces', which the model of its settings calls live, needs a restart"),
    ],
)
def test_live_keys_are_checked_if_a_plugin_follows_them(live: object, why: str) -> None:
    own = create_model("Own", most=(int, 1))
    if live is not None:
        own.live = live  # type: ignore[attr-defined]
    assert loaded(PluginOf(settings=lambda: own)).live == frozenset()
    with pytest.raises(PluginLoadError, match=f"^plugin 'p' has broker_core_reloaded, but {re.escape(why)}"):
        loaded(PluginOf(settings=lambda: own, reloaded=lambda settings: None))


def test_live_keys_are_of_the_plugin_or_of_the_core() -> None:
    class Own(BaseModel):
        live: ClassVar = frozenset({"most", "deadline"})

        most: int = 1

    assert loaded(PluginOf(settings=lambda: Own, reloaded=lambda settings: None)).live == Own.live

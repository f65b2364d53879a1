"""The plugins of a namespace: by hook, in the operator's order."""

from __future__ import annotations

from broker_core import NamespaceName
from broker_core.plugins.call.hook_caller import HookCaller
from broker_core.plugins.call.plugin_runner import PluginRunner
from broker_core.plugins.load.registry import PluginRegistry
from broker_core.plugins.namespace_chain import NamespaceChains
from tests.support.plugins import PluginOf

LIST, VISIBLE, VERSION = "broker_core_list_topics", "broker_core_visible", "broker_core_version"
AUTHORIZE = "broker_core_authorize"


def chains(plugins: dict[str, object], tables: dict[str, dict[str, object]]) -> NamespaceChains:
    registry = PluginRegistry.load(given=plugins, tables=tables)
    callers = {
        plugin.name: {hook: HookCaller(plugin, hook, PluginRunner(plugin.name)) for hook in plugin.hooks}
        for plugin in registry
    }
    return NamespaceChains(registry, callers)


def nothing() -> None: ...


def test_each_plugin_is_asked_about_its_namespaces() -> None:
    found = chains(
        {
            "a": PluginOf(list_topics=nothing, version=nothing),
            "b": PluginOf(authorize=nothing, list_topics=nothing, visible=nothing),
            "c": PluginOf(version=nothing),
        },
        {"b": {"namespaces": ["acme/*"]}},
    )
    assert found.hooks == {AUTHORIZE, LIST, VISIBLE, VERSION}
    acme, globex = found.of(NamespaceName("acme", "x")), found.of(NamespaceName("globex", "x"))
    assert [caller.name for caller in acme.of(LIST)] == ["a", "b"]
    assert [caller.name for caller in acme.of(VERSION)] == ["a", "c"]
    assert [caller.name for caller in globex.of(LIST)] == ["a"]
    assert [caller.name for caller in acme.of(AUTHORIZE)] == ["b"]
    assert globex.of(AUTHORIZE) == globex.of(VISIBLE) == ()
    assert [(name, caller is None) for name, caller in globex.listers] == [("a", False), ("b", True)]
    assert [plugin.name for plugin, _ in globex.describers] == ["a"]


def test_what_shapes_answers_is_known() -> None:
    found = chains(
        {"a": PluginOf(visible=nothing), "b": PluginOf(version=nothing)}, {"a": {"namespaces": ["acme/*"]}}
    )
    assert found.of(NamespaceName("acme", "x")).shapes_answers
    assert not found.of(NamespaceName("globex", "x")).shapes_answers
    assert not found.of(NamespaceName("acme", "x")).lists


def test_many_namespaces_are_not_remembered_for_ever() -> None:
    found = chains({"a": PluginOf(list_topics=nothing)}, {"a": {"namespaces": ["acme/*"]}})
    for number in range(5000):
        assert found.of(NamespaceName("acme", str(number))).lists
    assert len(found._chains) <= 4096

"""The hooks are a contract: their names, their arguments, and which questions each may get."""

from __future__ import annotations

from pluggy import PluginManager

from broker_core.plugin_api import PROJECT
from broker_core.plugin_api.hookspecs import HookSpecs, ListingOutcome, hookimpl

ARGUMENTS = {
    "broker_core_list_topics": ("request", "namespace", "mode", "topics_pattern", "properties"),
    "broker_core_describe_topics": ("request",),
    "broker_core_visible": ("request", "topics"),
    "broker_core_authorize": ("access",),
    "broker_core_authenticate": ("method", "data", "peer"),
    "broker_core_version": ("request",),
    "broker_core_depends_on": (),
    "broker_core_settings": (),
    "broker_core_startup": ("broker", "settings"),
    "broker_core_reloaded": ("settings",),
    "broker_core_change_log": (),
    "broker_core_shutdown": (),
    "broker_core_listing_served": ("request", "outcome"),
    "broker_core_http_routes": ("settings",),
    "broker_core_commands": ("app",),
    "broker_core_check": ("settings",),
    "broker_core_problems": ("settings",),
}


def test_the_hooks_and_their_arguments() -> None:
    manager = PluginManager(PROJECT)
    manager.add_hookspecs(HookSpecs)
    found = {}
    for name, caller in vars(manager.hook).items():
        assert caller.spec is not None
        found[name] = tuple(caller.spec.argnames)
    assert found == ARGUMENTS


def test_every_hook_says_what_it_is() -> None:
    for name in ARGUMENTS:
        assert (getattr(HookSpecs, name).__doc__ or "").strip()


def test_the_marker_is_of_this_project() -> None:
    @hookimpl(tryfirst=True)
    def broker_core_shutdown() -> None: ...

    assert getattr(broker_core_shutdown, f"{PROJECT}_impl")["tryfirst"] is True


def test_the_words_of_the_contract() -> None:
    outcome = ListingOutcome("served", "catalog", 3, True, "0a0b0c0d", 0.001)
    assert outcome.error is None

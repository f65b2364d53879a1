"""The errors of plugins name the plugin, and tell a client no more than it should know."""

from __future__ import annotations

from broker_core.errors import ServerError
from broker_core.plugins.failures import ChainStep, PluginFailed, PluginLoadError


def test_a_load_error_is_one_line_with_plugin_and_distribution() -> None:
    error = PluginLoadError("tenant-filter", "acme-plugins 1.2", "has an unusable hook:\n  foo\n  bar")
    assert str(error) == (
        "plugin 'tenant-filter' (distribution acme-plugins 1.2) has an unusable hook: foo bar"
    )
    assert str(PluginLoadError("p", None, "is odd")) == "plugin 'p' is odd"


def test_a_failure_is_a_metadata_error_of_its_plugin() -> None:
    failure = PluginFailed(
        "p", "failed: KeyError", reason="plugin_error", detail="plugin 'p' failed: KeyError: 'x'"
    )
    assert str(failure) == "plugin 'p' failed: KeyError"
    assert (failure.plugin, failure.code, failure.reason) == ("p", ServerError.MetadataError, "plugin_error")
    assert failure.detail.endswith("'x'")
    assert PluginFailed("p", "is slow", reason="plugin_deadline").detail == "plugin 'p' is slow"


def test_a_step_that_was_not_taken() -> None:
    assert ChainStep("p", "not_asked") == ChainStep("p", "not_asked", 0.0, None)

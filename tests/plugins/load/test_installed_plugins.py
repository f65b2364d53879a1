"""Entry points: finding the installed plugins, and importing only the enabled one."""

from __future__ import annotations

import pytest

from broker_core.plugins.failures import PluginLoadError
from broker_core.plugins.load.installed_plugins import (
    choose,
    did_you_mean,
    import_plugin,
    installed_plugins,
    origin_text,
)
from tests.plugins.conftest import Distribution


def test_entry_points_are_found_and_not_imported(distribution: Distribution) -> None:
    distribution(
        "acme-plugins", "1.2", {"acme": "acme_broken", "audit": "acme_broken:audit"}, acme_broken="1/0"
    )
    found = [plugin for plugin in installed_plugins() if plugin.distribution == "acme-plugins"]
    assert [(plugin.name, plugin.version) for plugin in found] == [("acme", "1.2"), ("audit", "1.2")]
    assert found[0].origin == "acme-plugins 1.2"
    with pytest.raises(PluginLoadError) as caught:
        import_plugin(found[0])
    assert str(caught.value) == (
        "plugin 'acme' (distribution acme-plugins 1.2) cannot be imported from 'acme_broken': "
        "ZeroDivisionError: division by zero"
    )


def test_a_module_that_wants_to_end_the_process_does_not(distribution: Distribution) -> None:
    distribution("acme-plugins", "1.2", {"acme": "acme_exit"}, acme_exit="raise SystemExit(3)")
    with pytest.raises(PluginLoadError, match="SystemExit: 3"):
        import_plugin(choose("acme", installed_plugins()))


def test_a_module_or_an_instance(distribution: Distribution) -> None:
    distribution(
        "acme-plugins", "1.2", {"acme": "acme_good", "one": "acme_good:one"}, acme_good="one = object()"
    )
    module = import_plugin(choose("acme", installed_plugins()))
    assert import_plugin(choose("one", installed_plugins())) is module.one  # type: ignore[attr-defined]


def test_a_name_that_is_not_installed(distribution: Distribution) -> None:
    distribution("acme-plugins", "1.2", {"tenant-filter": "acme_good"})
    with pytest.raises(PluginLoadError) as caught:
        choose("tenant-fliter", installed_plugins())
    assert "plugin 'tenant-fliter' is enabled, but no installed distribution" in str(caught.value)
    assert str(caught.value).endswith("(did you mean 'tenant-filter'?)")
    with pytest.raises(PluginLoadError, match="no plugin is installed"):
        choose("tenant-filter", [])


def test_a_name_that_two_distributions_have(distribution: Distribution) -> None:
    distribution("acme-plugins", "1.2", {"acme": "acme_good"})
    distribution("other-plugins", "0.1", {"acme": "acme_other"})
    with pytest.raises(
        PluginLoadError, match=r"is installed twice, by acme-plugins 1\.2 and other-plugins 0\.1"
    ):
        choose("acme", installed_plugins())


def test_texts() -> None:
    assert origin_text("acme", "1") == "acme 1"
    assert origin_text(None, None) is None
    assert did_you_mean("visble", ["visible", "other"]) == " (did you mean 'visible'?)"
    assert not did_you_mean("zzz", ["visible"])

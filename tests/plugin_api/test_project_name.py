from __future__ import annotations

import broker_core
from broker_core.plugin_api.project_name import PROJECT


def test_it_is_the_packages_and_the_markers() -> None:
    assert broker_core.__name__ == PROJECT
    assert broker_core.hookimpl.project_name == PROJECT

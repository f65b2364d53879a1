"""Whether plugins have a say in a namespace. Which log is exact is shown by the tests of the changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker_core.access.asker import Asker
from broker_core.broker.opened_core import opened_pipeline
from broker_core.names import NamespaceName
from broker_core.reloads import LiveSettings
from broker_core.servers.http.api.namespaces.plugin_views import is_plain
from broker_core.servers.http.api.services import ApiServices
from broker_core.settings import Settings
from tests.support.plugins import PluginOf


@pytest.mark.parametrize(
    ("plugin", "plain"),
    [
        (PluginOf(startup=lambda: None), True),
        (PluginOf(list_topics=lambda: None), False),
        (PluginOf(visible=lambda: None), False),
    ],
)
async def test_the_catalogue_alone_says_what_there_is_where_no_plugin_lists_or_hides(
    tmp_path: Path, plugin: PluginOf, plain: bool
) -> None:
    settings = Settings.model_validate({"catalog": {"path": tmp_path / "c.sqlite"}})
    something: Any = object()
    async with opened_pipeline(settings, plugins={"p": plugin}, create=True) as pipeline:
        services = ApiServices(
            pipeline, pipeline.permits, something, something, LiveSettings(settings), catalog=something
        )
        assert is_plain(services, Asker(), NamespaceName("a", "b")) is plain

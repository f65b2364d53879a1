from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.catalog import AsyncCatalog, SqliteCatalog
from broker_core.reloads import LiveSettings
from broker_core.servers.http.api.problem_details import RequestRefused
from broker_core.servers.http.api.services import ApiServices, needs_catalog
from broker_core.service import Find
from broker_core.settings import HttpSettings, Settings
from tests.support.pipelines import Made, made


def services(parts: Made, catalog: AsyncCatalog | None) -> ApiServices:
    find = Find(parts.pipeline, catalog)
    return ApiServices(
        parts.pipeline, parts.permits, parts.metrics, find, LiveSettings(Settings()), catalog=catalog
    )


async def test_an_operation_for_the_catalogue_says_so_before_a_cluster(tmp_path: Path) -> None:
    async with made() as parts:
        with SqliteCatalog(tmp_path / "topics.sqlite") as file:
            catalog = AsyncCatalog(file)
            assert needs_catalog(services(parts, catalog)) is catalog
        with pytest.raises(RequestRefused) as refused:
            needs_catalog(services(parts, None))
        assert refused.value.problem.status == 501
        assert services(parts, None).http == HttpSettings()

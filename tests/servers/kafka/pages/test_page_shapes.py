from __future__ import annotations

import pytest

from broker_core.servers.kafka.pages.page_shapes import shape_of
from broker_core.wire.kafka import APIS, Api
from broker_core.wire.kafka.fields import Cursor, Versions

PAGED = [api for api in APIS.values() if any(isinstance(field.kind, Cursor) for field in api.request.fields)]


@pytest.mark.parametrize("api", PAGED, ids=lambda api: api.name)
def test_the_versions_with_a_cursor_have_a_shape_with_its_fields(api: Api) -> None:
    field = next(field for field in api.request.fields if field.name == "cursor")
    assert isinstance(field.kind, Cursor)
    names = tuple(inside.name for inside in field.kind.fields if inside.tag is None)
    for version in range(api.versions.first, api.versions.last + 1):
        shape = shape_of(api, version)
        assert (shape is not None) == (version in Versions.parse(field.versions))
        assert shape is None or shape.fields == names

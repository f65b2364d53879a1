"""Listings of a module with ``TINY_CHUNK`` are made twice: of chunks as they are, and of tiny ones, which are many."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.chunks import tiny_chunks


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    size = getattr(metafunc.module, "TINY_CHUNK", None)
    if size is not None:
        metafunc.fixturenames.insert(0, "_chunk_bytes")
        metafunc.parametrize(
            "_chunk_bytes", [None, size], indirect=True, scope="module", ids=["usual-chunks", "tiny-chunks"]
        )


@pytest.fixture(scope="module")
def _chunk_bytes(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.param is None:
        yield
    else:
        with tiny_chunks(request.param):
            yield

"""A catalogue, whose namespaces are read as snapshots."""

from __future__ import annotations

from tests.catalog.conftest import catalog

__all__ = ["catalog"]

"""Mirroring a cluster, or the embedded catalogue, into the database."""

from broker_core_postgres.fill.sync.catalog_source import CatalogSource
from broker_core_postgres.fill.sync.cluster_source import ClusterSource
from broker_core_postgres.fill.sync.differences import Difference, as_json, as_line
from broker_core_postgres.fill.sync.mirror import Mirror, MirrorReport
from broker_core_postgres.fill.sync.mirror_source import MirrorSource
from broker_core_postgres.fill.sync.pulsar_admin import PARALLEL, TIMEOUT, AdminAddress, PulsarAdmin
from broker_core_postgres.fill.sync.retry import Retry
from broker_core_postgres.fill.sync.scope import Scope
from broker_core_postgres.fill.sync.verification import VerifyReport, verify

__all__ = [
    "PARALLEL",
    "TIMEOUT",
    "AdminAddress",
    "CatalogSource",
    "ClusterSource",
    "Difference",
    "Mirror",
    "MirrorReport",
    "MirrorSource",
    "PulsarAdmin",
    "Retry",
    "Scope",
    "VerifyReport",
    "as_json",
    "as_line",
    "verify",
]

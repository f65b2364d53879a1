"""Listings from the database: which rows, their SQL, their pages, and the hash of the last answer."""

from broker_core_postgres.listing.describe_topics import PostgresDescriber
from broker_core_postgres.listing.lister import PostgresLister
from broker_core_postgres.listing.listing_sql import PAGE_NAMES, RowSource, first_page_statement
from broker_core_postgres.listing.own_relation import (
    ID_OF_RELATION,
    OwnRelation,
    RelationRefused,
    check_relation,
)
from broker_core_postgres.listing.query_metrics import QueryMetrics, family
from broker_core_postgres.listing.row_conditions import RowConditions

__all__ = [
    "ID_OF_RELATION",
    "PAGE_NAMES",
    "OwnRelation",
    "PostgresDescriber",
    "PostgresLister",
    "QueryMetrics",
    "RelationRefused",
    "RowConditions",
    "RowSource",
    "check_relation",
    "family",
    "first_page_statement",
]

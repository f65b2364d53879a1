"""The rows of a table that are in the namespaces of questions, as a condition that connectors can push down."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

from broker_core_spark.format import DOMAIN_ORDER

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["in_namespaces"]

#: Full names are compared with prefixes up to so many namespaces, which skips row groups of Parquet. With more they are
#: looked up in a set, row by row.
_PREFIXES: Final = 16


def in_namespaces(
    name: Column, namespace: Column | None, namespaces: Sequence[str], default: str | None = None
) -> Column:
    """Whether a row is in one of the namespaces, or may be: then reading it raises its error.

    ``namespace`` is the column for local names, ``default`` the namespace of local names without one. A full name has
    its own namespace. A name with neither is kept, because its namespace is unknown.
    """
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    if len(namespaces) <= _PREFIXES:
        prefixes = [f"{domain}://{one}/" for one in namespaces for domain in DOMAIN_ORDER]
        full = reduce(or_, [name.startswith(prefix) for prefix in prefixes], F.lit(False))
    else:
        place = F.substring_index(F.substring_index(name, "/", 4), "://", -1)
        full = place.isin(*namespaces)
    if namespace is not None:
        local = namespace.isin(*namespaces)
        without = namespace.isNull()
        if default is None or default in namespaces:
            # Full names without a namespace beside them, and local names of the default one.
            return local | (without & (full | ~name.contains("/")))
        return local | (without & full)
    if default is not None:
        return full | ~name.contains("/") if default in namespaces else full
    return full

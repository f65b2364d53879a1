"""Names of datasets as OpenLineage has them, without secrets: a namespace, which is the place, and a name in it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from broker_core_spark.batch.source_address import is_table_name
from broker_core_spark.batch.source_redaction import redacted_source

__all__ = ["dataset_name"]

#: What a build reads of a database.
_TOPICS_VIEW: Final = "broker_core.batch_v1_topics"


def dataset_name(address: str) -> tuple[str, str]:
    """(namespace, name) of a source or a target of a build.

    A file is ``file`` and its absolute path, a key of a bucket ``s3://BUCKET`` and the key. A database is
    ``postgres://HOST:PORT`` and the view that a build reads. A table of the session is ``spark`` and its name: its
    catalogue is not known.
    """
    shown = redacted_source(address)
    scheme, separator, rest = shown.partition("://")
    if not separator:
        if is_table_name(shown):
            return "spark", shown.removeprefix("table:")
        return "file", str(Path(shown).absolute())
    place, _, name = rest.partition("/")
    if scheme == "file":
        return "file", f"/{name}"
    if scheme in ("postgresql", "postgres"):
        hosts = place if ":" in place or place in ("", "...") else f"{place}:5432"
        return f"postgres://{hosts}", f"{name}.{_TOPICS_VIEW}" if name else _TOPICS_VIEW
    return f"{scheme}://{place}", name.strip("/") or "/"

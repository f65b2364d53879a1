"""Lists of names as catalogues: a file, or the listing of a running server, such as that of a gateway before a Kafka
cluster. They are imported into a temporary embedded catalogue.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from broker_core.catalog import CatalogError, SqliteCatalog, import_topics
from broker_core.names import NamespaceName
from broker_core.plugin_cli import RunningBroker
from broker_core_spark.batch.build_errors import InvalidCatalogue
from broker_core_spark.batch.sources.catalogue_source import CatalogueSnapshot, CatalogueSource
from broker_core_spark.batch.sources.sqlite_catalogue import EmbeddedSnapshot

__all__ = ["NamesSource", "ServerSource"]

_PAGE: Final = 10_000  # names, the most of a page of /v1


@dataclass(frozen=True, slots=True)
class NamesSource(CatalogueSource):
    """A static catalogue: a file of names, one a line, or of JSON lines with properties.

    The rules are as in ``broker-core topics import``. Errors name it by ``shown``.
    """

    path: Path
    namespace: NamespaceName
    shown: str

    @contextmanager
    def snapshot(self) -> Iterator[CatalogueSnapshot]:
        """The names that are in the file now."""
        with tempfile.TemporaryDirectory(prefix="broker-core-spark-") as folder:
            try:
                with SqliteCatalog(Path(folder) / "names.sqlite", create=True) as catalog:
                    with self.path.open("rb") as lines:
                        repeats = import_topics(catalog, self.namespace, lines).repeats
                    with catalog.state() as state:
                        yield EmbeddedSnapshot(
                            state, unversioned="a list of names has no versions", repeats=repeats
                        )
            except CatalogError as error:
                raise InvalidCatalogue(f"{self.shown}: {error}") from error
            except OSError as error:
                raise InvalidCatalogue(f"Cannot read {self.shown}: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class ServerSource(CatalogueSource):
    """A static catalogue: the topics of a namespace that a server lists for the role that asks.

    They are read page by page over HTTP, with the properties that select topics there.
    """

    server: RunningBroker
    namespace: NamespaceName

    def check(self) -> None:
        """Raise :exc:`~broker_core.plugin_cli.BrokerUnreachable` unless the server lists topics of the namespace, and
        :exc:`InvalidCatalogue` if there are none: the name may be wrong, or the role may see none.
        """
        self._page(1, None)

    @contextmanager
    def snapshot(self) -> Iterator[CatalogueSnapshot]:
        """The topics that are listed now. What was there throughout the reading is in it once."""
        with tempfile.TemporaryDirectory(prefix="broker-core-spark-") as folder:
            file = Path(folder) / "names.jsonl"
            with file.open("w", encoding="utf-8") as lines:
                cursor: str | None = ""
                while cursor is not None:
                    rows, cursor = self._page(_PAGE, cursor or None)
                    lines.writelines(f"{json.dumps(row)}\n" for row in rows)
            with NamesSource(file, self.namespace, self.server.url).snapshot() as snapshot:
                yield snapshot

    def _page(self, limit: int, cursor: str | None) -> tuple[list[dict[str, object]], str | None]:
        """The names with their properties, and the cursor of the next page."""
        path = f"/v1/namespaces/{quote(str(self.namespace))}/topics?mode=all&detail=properties&limit={limit}"
        page = self.server.json(path if cursor is None else f"{path}&cursor={quote(cursor, safe='')}")
        try:
            rows: list[dict[str, object]] = [
                {"name": row["name"], "properties": row["properties"]} for row in page["items"]
            ]
            following = page["next"]
            if not (following is None or (rows and isinstance(following, str) and following != cursor)):
                raise TypeError
        except (KeyError, TypeError):
            raise InvalidCatalogue(
                f"{self.server.url} lists no topics as a server of this release does"
            ) from None
        if not rows and cursor is None:
            raise InvalidCatalogue(
                f"{self.server.url} lists no topics of {self.namespace}: the name may be wrong, or there are none "
                "for the role that asks"
            )
        return rows, following

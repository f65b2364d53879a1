"""ApiVersions: which APIs this server has. It is answered in every version, since it is how clients find theirs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from broker_core.servers.kafka.requests.call import HandlerRow, KafkaCall
from broker_core.wire.kafka import (
    API_VERSIONS,
    FETCH,
    INIT_PRODUCER_ID,
    LIST_TOPICS,
    PRODUCE,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Api,
    ErrorCode,
    Fields,
)

__all__ = ["api_versions_row", "unsupported"]

#: The APIs that a gateway answers itself.
_OWN: Final = frozenset(
    api.key
    for api in (
        API_VERSIONS,
        FETCH,
        INIT_PRODUCER_ID,
        LIST_TOPICS,
        PRODUCE,
        SASL_AUTHENTICATE,
        SASL_HANDSHAKE,
    )
)
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def api_versions_row(rows: Callable[[], Iterable[HandlerRow]]) -> HandlerRow:
    """The row of ApiVersions, which lists all ``rows``."""

    def answer(call: KafkaCall) -> Fields:
        if call.version >= 3 and not all(
            _SOFTWARE.fullmatch(call.body[name])
            for name in ("client_software_name", "client_software_version")
        ):
            return {"error_code": ErrorCode.INVALID_REQUEST}
        shows_listing = call.services.options.kafka.advertise_list_topics
        shown = (row for row in rows() if row.api is not LIST_TOPICS or shows_listing)
        keys = [_row(row.api, row.shown_from) for row in sorted(shown, key=lambda row: row.api.key)]
        front = call.services.front
        if front is not None and front.cluster.versions:
            keys = [both for row in keys if (both := _of_both(row, front.cluster.versions)) is not None]
        return {"api_keys": keys}

    return HandlerRow(API_VERSIONS, answer)


def _of_both(row: Fields, versions: Mapping[int, tuple[int, int]]) -> Fields | None:
    """The versions of a relayed API that the cluster behind a gateway has too; ``None``: none."""
    if row["api_key"] in _OWN:
        return row
    first, last = versions.get(row["api_key"], (0, -1))
    first, last = max(first, row["min_version"]), min(last, row["max_version"])
    return {**row, "min_version": first, "max_version": last} if first <= last else None


def unsupported() -> Fields:
    """The answer, of version 0, to a version of ApiVersions that is not understood: the versions that are."""
    return {
        "error_code": ErrorCode.UNSUPPORTED_VERSION,
        "api_keys": [_row(API_VERSIONS)],
    }


def _row(api: Api, shown_from: int | None = None) -> Fields:
    first = api.versions.first if shown_from is None else shown_from
    return {"api_key": api.key, "min_version": first, "max_version": api.versions.last}

"""The brokers of the upstream cluster: connections to each, as the gateway makes them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from broker_core.plugin_api import Check

if TYPE_CHECKING:
    from broker_core.settings import Settings

__all__ = ["upstream_checks"]

#: Seconds until a broker has answered.
_CONNECT: Final = 5.0


def upstream_checks(settings: Settings) -> Iterator[Check]:
    """Findings from a connection to every broker of the service URL with the gateway's credentials."""
    from broker_core.client import ClientError
    from broker_core.snapshots import StoredSnapshots
    from broker_core.upstream.pulsar import UpstreamCluster, UpstreamOptions

    upstream = settings.upstream
    assert upstream is not None
    warning = upstream.token_warning
    if warning is not None:
        yield Check.warning("upstream.token", warning)
    if upstream.admin_url is None:
        yield Check.ok(
            "upstream.admin_url",
            "not set: listings have the non-persistent topics of the one broker that is asked",
        )

    folder = upstream.snapshots.folder
    if folder is not None:
        problem = StoredSnapshots.of_cluster(folder).problem()
        if problem is None:
            shown = os.path.abspath(folder)  # noqa: PTH100 - without its ".."
            yield Check.ok("upstream.snapshots.folder", f"{shown} can be used, or made")
        else:
            yield Check.warning(
                "upstream.snapshots.folder", f"{problem}; the brokers list all again after a restart"
            )

    async def all_of() -> dict[str, str | None]:
        cluster = UpstreamCluster(
            UpstreamOptions(upstream, settings.pulsar, connect_timeout=_CONNECT),
            identifies=settings.authentication.is_on,
        )

        async def tried(address: tuple[str, int]) -> str | None:
            try:
                await cluster.probe(address)
            except (ClientError, OSError, TimeoutError) as error:
                return str(error) or type(error).__name__
            return None

        found = await asyncio.gather(*map(tried, cluster.health.addresses))
        return dict(zip(cluster.health.states(), found, strict=True))

    problems = asyncio.run(all_of())
    reached = any(problem is None for problem in problems.values())
    for address, problem in problems.items():
        if problem is None:
            yield Check.ok("upstream.service_url", f"{address} answers")
        else:
            yield Check(
                "warning" if reached else "error",
                "upstream.service_url",
                problem if address in problem else f"{address}: {problem}",
            )

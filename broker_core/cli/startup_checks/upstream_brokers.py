"""The brokers of the upstream cluster: each is asked for a connection."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from broker_core.plugin_api.check_findings import Check

if TYPE_CHECKING:
    from broker_core.quantities import ListenAddress
    from broker_core.settings import UpstreamSettings

__all__ = ["upstream_checks"]

#: Seconds until a broker has answered.
_CONNECT: Final = 5.0


def upstream_checks(upstream: UpstreamSettings) -> list[Check]:
    """Every broker of the service URL is asked for a connection."""
    from broker_core.client import ClientError, LookupClient, ServiceUrl
    from broker_core.quantities import ListenAddress

    async def tried(address: ListenAddress) -> str | None:
        try:
            async with LookupClient(
                f"pulsar://{address}", connect_timeout=_CONNECT, operation_timeout=_CONNECT
            ):
                return None
        except (ClientError, OSError, TimeoutError) as error:
            return str(error) or type(error).__name__

    async def all_of(addresses: list[ListenAddress]) -> list[str | None]:
        return await asyncio.gather(*map(tried, addresses))

    addresses = [ListenAddress(*address) for address in ServiceUrl.parse(upstream.service_url).addresses]
    problems = asyncio.run(all_of(addresses))
    reached = any(problem is None for problem in problems)
    return [
        Check.ok("upstream.service_url", f"{address} answers")
        if problem is None
        else Check("warning" if reached else "error", "upstream.service_url", f"{address}: {problem}")
        for address, problem in zip(addresses, problems, strict=True)
    ]

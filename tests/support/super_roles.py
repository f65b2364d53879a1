"""A server of HTTP and Kafka with a super role, one of the rules, and their passwords, for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests.support.api_serving import ApiServed, Said, api_served
from tests.support.htpasswd import write_htpasswd

__all__ = ["SUPER_TABLES", "Supers", "supers_served"]

#: What rules can allow a role.
SUPER_TABLES: dict[str, Any] = {
    "authorization": {
        "super_roles": ["chief"],
        "rules": [
            {"roles": ["admin"], "namespaces": ["*"], "actions": ["list", "lookup", "monitor", "admin"]}
        ],
    },
    "kafka": {"listen": "127.0.0.1:0", "sasl": {"mechanisms": ["PLAIN", "SCRAM-SHA-512"]}},
}


class Supers:
    """Asks ``served`` as the super role, or as another one."""

    def __init__(self, served: ApiServed) -> None:
        self.served = served

    async def ask(self, path: str, method: str = "GET", *, role: str = "chief", **options: Any) -> Said:
        headers = {"Authorization": aiohttp.encode_basic_auth(role, "secret")}
        return await self.served.ask(f"/v1/access/kafka/{path}", method, headers=headers, **options)


@asynccontextmanager
async def supers_served(folder: Path, **tables: Any) -> AsyncIterator[Supers]:
    users = write_htpasswd(folder / "users", chief="secret", admin="secret")
    authentication = {"methods": ["basic"], "basic": {"file": str(users)}}
    async with api_served(folder, authentication=authentication, **SUPER_TABLES | tables) as served:
        yield Supers(served)

"""An authenticator whose credentials say what becomes of them."""

from __future__ import annotations

import asyncio

from broker_core.access.authentication import AuthenticationFailed, Authenticator
from broker_core.access.peer import Peer
from broker_core.access.principal import Principal, Verified
from broker_core.settings import AuthenticationSettings

__all__ = ["ScriptedAuthenticator"]


class ScriptedAuthenticator(Authenticator):
    """The data ``alice`` is the role alice, ``alice@5`` ends at second 5, ``!expired`` fails for that reason.

    Data of the method ``slow`` has to be awaited, until :attr:`gate` is open.
    """

    def __init__(self, **settings: object) -> None:
        super().__init__(AuthenticationSettings.model_validate(settings))
        self.enabled = True
        self.asked: list[tuple[str | None, bytes, Peer]] = []
        self.gate = asyncio.Event()
        self.most = 0
        self._under_way = 0

    def authenticate(self, method: str | None, data: bytes, peer: Peer) -> Verified:
        self.asked.append((method, data, peer))
        return self._slowly(data) if method == "slow" else self._principal(data)

    async def _slowly(self, data: bytes) -> Principal:
        self._under_way += 1
        self.most = max(self.most, self._under_way)
        try:
            await self.gate.wait()
            return self._principal(data)
        finally:
            self._under_way -= 1

    @staticmethod
    def _principal(data: bytes) -> Principal:
        text = data.decode()
        if text == "bug":
            raise KeyError("bug")
        if not text or text.startswith("!"):
            raise AuthenticationFailed(text[1:] or "no_credentials", "says the script")
        role, _, end = text.partition("@")
        return Principal(role, float(end) if end else None)

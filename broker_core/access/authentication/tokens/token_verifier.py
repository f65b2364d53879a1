"""The method ``token``: JSON Web Tokens with a signature by a key of ours.

Nothing is kept by the text of a token: one token has many spellings, and each is verified anew (some 50 µs).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from broker_core.access.authentication.failures import AuthenticationFailed
from broker_core.access.authentication.tokens.check_header_and_claims import check_header, principal_of
from broker_core.access.authentication.tokens.compact_token import CompactToken, MalformedToken, read_json
from broker_core.access.authentication.tokens.token_keys import TokenKeys
from broker_core.access.peer import Peer
from broker_core.access.principal import Principal, Verified
from broker_core.settings import TokenSettings

__all__ = ["TokenVerifier"]

#: Bytes of a token that is verified on the event loop, at most: less than a millisecond.
_AT_ONCE: Final = 64 * 1024
#: Bytes of a token that is kept for its client, at most: one with a larger token must send it again after a reload.
_KEPT: Final = 16 * 1024


class TokenVerifier:
    """Verifies tokens by the settings. Raises :exc:`OSError` or :exc:`ValueError` for keys that cannot be used."""

    def __init__(self, settings: TokenSettings, *, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._clock = clock
        self._keys = TokenKeys.read(settings)
        # Large tokens wait for each other: nobody keeps more than one thread busy with them.
        self._one_large = asyncio.Lock()

    @property
    def files(self) -> tuple[Path, ...]:
        """The file of the key or of the set."""
        source = self._settings.jwks or self._settings.key
        return () if source is None or source.path is None else (source.path,)

    def verify(self, data: bytes, peer: Peer) -> Verified:  # noqa: ARG002 - a token says it all
        """The principal of a token, awaited for a large one; raises :exc:`AuthenticationFailed`."""
        return self._verify_large(data) if len(data) > _AT_ONCE else self._verify(data)

    async def _verify_large(self, data: bytes) -> Principal:
        async with self._one_large:
            return await asyncio.to_thread(self._verify, data)

    def evidence(self, data: bytes, peer: Peer) -> bytes | TokenKeys:  # noqa: ARG002 - a token says it all
        """The token itself, or for a large one the keys that verified it."""
        return data if len(data) <= _KEPT else self._keys

    def upholds(self, role: str, evidence: object) -> bool:
        """Whether the token is still good, with the same role."""
        if not isinstance(evidence, bytes):
            return evidence is self._keys
        try:
            return self._verify(evidence).role == role
        except AuthenticationFailed:
            return False

    def reload(self) -> None:
        """Read the keys again; raises if they cannot be used, and the former ones stay."""
        self._keys = TokenKeys.read(self._settings)

    def close(self) -> None:
        """Do nothing."""

    def _verify(self, data: bytes) -> Principal:
        if not data:
            raise AuthenticationFailed("no_credentials", "the client sends no token")
        try:
            token = CompactToken.parse(data)
            algorithm, key_id = check_header(token.header)
            problem = self._keys.problem(algorithm, key_id, token.signed, token.signature)
            if problem is not None:
                raise AuthenticationFailed("bad_token", problem)
            claims = read_json(token.payload, "payload")
        except MalformedToken as error:
            raise AuthenticationFailed("bad_token", str(error)) from None
        return principal_of(claims, self._settings, self._clock())

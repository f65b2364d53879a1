"""The authenticators (``broker_core_authenticate``): plugins that know further methods of authentication.

They are asked one by one in the operator's order; the first principal counts. A plugin that fails refuses the client:
another one, or an anonymous role, must not admit a client that it would have refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from broker_core.access import AuthenticationFailed, Peer, Principal
from broker_core.errors import ListingFailed
from broker_core.plugins.call.hook_caller import HookCaller
from broker_core.plugins.raised_exceptions import shown_kind

__all__ = ["AUTHENTICATE", "authenticated_by"]

AUTHENTICATE: Final = "broker_core_authenticate"


async def authenticated_by(
    authenticators: Sequence[HookCaller], method: str, data: bytes, peer: Peer
) -> Principal | None:
    """The principal of a client, ``None`` if no plugin knows it; raises :exc:`AuthenticationFailed`."""
    for authenticator in authenticators:
        try:
            principal, _ = await authenticator.call(peer, _check, method=method, data=data, peer=peer)
        except ListingFailed as failure:
            # Its text has nothing of the plugin's exception, which may quote the credentials.
            raise AuthenticationFailed("plugin", failure.message) from None
        if principal is not None:
            assert isinstance(principal, Principal)
            return principal
    return None


def _check(answer: object, _peer: Peer) -> tuple[Principal | None, str]:
    if answer is None:
        return None, "pass_through"
    if type(answer) is not Principal:
        raise TypeError(
            f"it returned {shown_kind(answer)}, not None or a Principal: write `return Principal(role)`"
        )
    return answer, "authenticated"

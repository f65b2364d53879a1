"""The rules of proxies: which roles may name an original principal, and which one."""

from __future__ import annotations

from collections.abc import Collection

from broker_core.access.authentication.failures import InvalidRoles

__all__ = ["check_roles"]


def check_roles(
    proxy_roles: Collection[str], role: str, original_principal: str | None, proxy_version: str | None
) -> None:
    """Refuse the roles of an authenticated client that Pulsar's broker refuses, as :exc:`InvalidRoles`.

    A proxy role must name an original principal that is no proxy role; any other role must name none, not even itself.
    A client that is no proxy may give an empty name, which no rule allows anything.
    docs/reference/pulsar-behaviour.md#authentication
    """
    is_proxy = role in proxy_roles
    if is_proxy:
        if not original_principal or original_principal in proxy_roles:
            raise InvalidRoles("Invalid roles.", role)
    elif original_principal:
        raise InvalidRoles("Invalid roles.", role)
    elif proxy_version is not None:
        raise InvalidRoles("Must not set proxyVersion without connecting as a ProxyRole.", role)

"""The effect of plugins and rules on a namespace: whether a client sees exactly what the catalogue has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from broker_core.access import Asker
from broker_core.change_log import ChangeLog
from broker_core.names import NamespaceName
from broker_core.servers.http.api.problem_details import RequestRefused, refused
from broker_core.servers.http.api.services import ApiServices, needs_catalog

__all__ = ["exact_log", "is_plain", "plain_ones", "source_of", "sources_of"]

#: The words that answers may depend on without hiding anything: clients choose the values.
_CHOSEN: Final = ("pattern", "properties", "property:")


def is_plain(services: ApiServices, asker: Asker, namespace: NamespaceName) -> bool:
    """Whether the catalogue holds the topics of a namespace, no plugin lists any, and none is hidden from an asker."""
    pipeline = services.pipeline
    return not (
        services.catalog is None or pipeline.dispatcher.lists(namespace) or pipeline.hides(asker, namespace)
    )


def plain_ones(
    services: ApiServices, asker: Asker, namespaces: Sequence[NamespaceName]
) -> Sequence[NamespaceName]:
    """The namespaces of which :func:`is_plain` is true: found out at once if nothing hides anything."""
    pipeline = services.pipeline
    if services.catalog is not None and not (pipeline.dispatcher.shapes_answers or pipeline.authorization.on):
        return namespaces
    return [namespace for namespace in namespaces if is_plain(services, asker, namespace)]


def sources_of(services: ApiServices, namespaces: Sequence[NamespaceName]) -> list[str]:
    """:func:`source_of` of many namespaces."""
    if not services.pipeline.dispatcher.shapes_answers:
        return [services.pipeline.lister.name] * len(namespaces)
    return [source_of(services, namespace) for namespace in namespaces]


def source_of(services: ApiServices, namespace: NamespaceName) -> str:
    """The source of a namespace's topics: the first plugin that is asked to list it, else the default lister."""
    pipeline = services.pipeline
    return next(iter(pipeline.dispatcher.lister_hook.plugins(namespace)), pipeline.lister.name)


async def exact_log(services: ApiServices, asker: Asker, namespace: NamespaceName) -> ChangeLog:
    """The change log of exactly the topics that a client sees of a namespace.

    That is the catalogue's, the log of the cluster's snapshots for this client, or the log of the plugin that lists the
    namespace. Raises the error 409 if masks or rules hide topics, or the plugin has no change log or its answers depend
    on the asker; 501 before a cluster without snapshots.
    """
    dispatcher = services.pipeline.dispatcher
    if services.pipeline.authorization.filter(asker, str(namespace)) is not None:
        raise _no_log("rules hide topics of this namespace from this role, and a change log has all of them")
    if dispatcher.masks(namespace):
        raise _no_log("plugins hide topics of this namespace, and a change log has all of them")
    plugin = next((plugin for plugin, _ in dispatcher.describe_hook.plugins(namespace) if plugin.lists), None)
    if plugin is None:
        logs = None if services.cluster is None else services.cluster.logs
        if logs is not None:
            return await logs(asker, namespace)
        needs_catalog(services)
        assert services.change_log is not None
        return services.change_log
    name = plugin.name
    found = next((each for each in dispatcher.change_logs if each.name == name), None)
    if found is None:
        raise _no_log(f"plugin {name!r} lists this namespace, and has no change log")
    if not all(word.startswith(_CHOSEN) for word in dispatcher.dependencies.of(name)):
        raise _no_log(f"the listings of plugin {name!r} depend on the client, and its change log does not")
    if not (await found.version(namespace)).number:
        raise _no_log(f"plugin {name!r} has never held this namespace, and may leave it to others")
    return found


def _no_log(why: str) -> RequestRefused:
    return refused(409, f"{why}: follow the listing itself")

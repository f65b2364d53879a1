"""The hooks of broker-core: all that a plugin can implement, and the marker to implement it with.

Hooks are pluggy's (project name ``broker_core``): an implementation is a function of the hook's name, marked with
``@hookimpl``, that takes as many of the hook's arguments as it names. Unlike in pluggy, the first plugin of the
operator's list ``[plugins] enabled`` is asked first, and plugins are asked one after the other, each with a deadline.

Which thread calls what. A hook that is ``async def`` runs on the broker's event loop and must not block it. A plain
function runs in a thread of the plugin's own small pool, several at once, so it may block, and must be thread-safe;
``broker_core_settings``, ``broker_core_depends_on``, ``broker_core_http_routes`` and ``broker_core_commands`` are
called once, before the first request, and must return at once; ``broker_core_problems`` is for the command line only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from pluggy import HookimplMarker, HookspecMarker

from broker_core.errors import Cause
from broker_core.plugin_api.hook_facts import HookFacts, facts, facts_of
from broker_core.plugin_api.project_name import PROJECT

if TYPE_CHECKING:
    import pyarrow as pa
    import typer
    from pydantic import BaseModel

    from broker_core.access import Access, Peer, Principal, Refused
    from broker_core.change_log import ChangeLog
    from broker_core.listing import Details
    from broker_core.names import Mode, NamespaceName
    from broker_core.plugin_api.check_findings import Check
    from broker_core.plugin_api.describe_request import DescribeRequest
    from broker_core.plugin_api.http_site import HttpSite
    from broker_core.plugin_api.listing_request import ListingRequest
    from broker_core.plugin_api.listing_result import TopicListingResult

__all__ = ["HookSpecs", "ListingOutcome", "hookimpl", "hookspec"]

hookspec = HookspecMarker(PROJECT)
hookimpl = HookimplMarker(PROJECT)


@dataclass(frozen=True, slots=True)
class ListingOutcome:
    """The end of one listing, as observers see it (``broker_core_listing_served``).

    ``outcome`` is ``"served"``, ``"unchanged"`` or ``"error"``; ``lister`` the plugin that answered, ``"catalog"`` or
    ``"upstream"`` (``None`` if none did); ``topics`` how many names were sent; ``seconds`` from the request's arrival
    to its answer; ``error`` the message that the client got if it was refused; ``stale_seconds`` the age of a former
    answer that was sent because a plugin failed (``on_failure = "stale"``); ``cause`` why it was refused:
    ``Cause.DENIED`` if the client may not ask.
    """

    outcome: str
    lister: str | None
    topics: int
    filtered: bool
    topics_hash: str | None
    seconds: float
    error: str | None = None
    stale_seconds: float | None = None
    cause: Cause | None = None


class HookSpecs(Protocol):
    """The hooks, with the arguments that each may name."""

    @hookspec
    @facts("success", "pass_through", "unchanged", "refused", shapes_answers=True)
    def broker_core_list_topics(
        self,
        request: ListingRequest,
        namespace: NamespaceName,
        mode: Mode,
        topics_pattern: str | None,
        properties: Mapping[str, str],
    ) -> TopicListingResult | Awaitable[TopicListingResult | None] | None:
        """List the topics of a namespace, or pass (PIP-452's question). Sync or async.

        ``None`` and ``TopicListingResult.pass_through()`` leave the question to the next plugin, and at last to the
        catalogue or the brokers upstream; ``TopicListingResult.success(topics)`` answers it;
        ``TopicListingResult.unchanged(topics_hash)`` is legal if ``request.topics_hash`` has that hash.
        ``topics_pattern`` is the pattern as the client sent it; ``request.pattern`` the compiled one.
        """

    @hookspec
    @facts("success", "pass_through")
    def broker_core_describe_topics(
        self, request: DescribeRequest
    ) -> Awaitable[Details | None] | Details | None:
        """Say what is known of some topics besides their names: of the topics that exist, and of no others.

        Asked in the order of the chain, of the namespaces that the plugin lists: ``None`` leaves the question to the
        next plugin, and at last to the catalogue or the brokers upstream. A topic that the details lack does not exist.
        A plugin that lists and has no such hook is asked to list instead. Sync or async.
        """

    @hookspec
    @facts("mask", "pass_through", shapes_answers=True)
    def broker_core_visible(
        self, request: ListingRequest, topics: pa.LargeStringArray
    ) -> Any | Awaitable[Any | None] | None:
        """Say which of ``topics`` (full names) the asker may see: a boolean Arrow or numpy array, or ``None``: all.

        For filters that do not list themselves. The mask of a name must not depend on the other names of ``topics``: a
        large namespace is shown in slices. The masks of all plugins are ANDed, before the topics hash is computed. A
        mask that fails fails the listing, whatever ``on_failure`` says. Sync or async.
        """

    @hookspec
    @facts("allowed", "refused", shapes_answers=True, fails_alone=True)
    def broker_core_authorize(self, access: Access) -> Refused | Awaitable[Refused | None] | None:
        """Refuse an access (``Refused("why")``), or let it pass (``None``).

        Asked before everything else, and each time: no decision is kept. Every gate must let it pass. One that raises,
        takes too long or answers anything else refuses, whatever ``on_failure`` says. Sync or async.
        """

    @hookspec
    @facts("authenticated", "pass_through", fails_alone=True, secret=True)
    def broker_core_authenticate(
        self, method: str, data: bytes, peer: Peer
    ) -> Principal | Awaitable[Principal | None] | None:
        """Identify a client by its credentials: a ``Principal``, or ``None`` if this plugin does not know it.

        Asked for methods that are none of ``[authentication] methods``, when a client connects and when it renews its
        credentials; ``method`` is ``"none"`` for a client that names none. The first principal counts. If no plugin
        gives one, the client is refused; without a method it may be anonymous. A plugin that raises, takes too long or
        answers anything else refuses the client, whatever ``on_failure`` says. No answer is kept. Sync or async.
        """

    @hookspec
    @facts("version", "none")
    def broker_core_version(self, request: ListingRequest) -> str | Awaitable[str | None] | None:
        """Name the version of this plugin's answer to a request, before the work. Sync or async.

        Asked before ``broker_core_list_topics`` and ``broker_core_visible``; what it returns is the version of what
        they return. If an answer of this version is kept, they are not asked. Same version, same question (in what
        ``broker_core_depends_on`` names), same answer. ``None`` is no version: the plugin is asked, and nothing is
        kept. It must be cheap, for it is asked for each listing; its failure counts as one of the hook that would be
        asked.
        """

    @hookspec
    @facts(plain=True)
    def broker_core_depends_on(self) -> Collection[str]:
        """Say what this plugin's answers and masks depend on, in words.

        ``"pattern"``, ``"properties"`` (``"property:NAME"`` is one of them), ``"principal"``, ``"client"`` (what it is)
        and ``"address"`` (where it is); :mod:`broker_core.plugin_api.depends_on` has the fields of each. Caches key on
        these words, and on all of them if the hook is not implemented.
        """

    @hookspec
    @facts(plain=True)
    def broker_core_settings(self) -> type[BaseModel]:
        """Return the pydantic model of the plugin's own table ``[plugins.NAME]``; it is checked at start.

        Fields named ``deadline``, ``namespaces``, ``on_failure``, ``max_stale`` and ``verify_filtered`` give the
        plugin's own defaults for the settings that the core has for every plugin.
        """

    @hookspec
    def broker_core_startup(self, broker: Any, settings: Any) -> Awaitable[None] | None:
        """Prepare: before the first request, in the operator's order. Raising stops the start. Sync or async.

        ``settings`` is an instance of the model of ``broker_core_settings`` (``None`` without one). ``broker`` has
        ``topics_changed(namespace)``, ``version(namespace)``, ``changes(namespace, since)``, ``change_logs()``,
        ``questions()`` and ``metrics_registry``.
        """

    @hookspec
    def broker_core_reloaded(
        self, settings: Any
    ) -> Callable[[], object] | Awaitable[Callable[[], object] | None] | None:
        """Check other settings while the server runs, and return a function that puts them in force.

        The model of ``broker_core_settings`` names the keys that are live: ``live: ClassVar = frozenset({"limit"})``.
        ``settings`` is an instance of it, in which only the live keys differ. Raising refuses the reload of all
        settings, so the hook itself changes nothing. The function is called on the event loop, in one turn with
        whatever else changes, or never; it must return at once and not fail. Sync or async.
        """

    @hookspec
    def broker_core_change_log(self) -> ChangeLog | Awaitable[ChangeLog | None] | None:
        """Offer the change log of the topics that this plugin holds, to plugins that follow it.

        Called once, right after the plugin's own ``broker_core_startup``; ``None`` is none. Sync or async.
        """

    @hookspec
    def broker_core_shutdown(self) -> Awaitable[None] | None:
        """Let go of everything: after the last request, in reverse order. Sync or async."""

    @hookspec
    @facts("observed")
    def broker_core_listing_served(
        self, request: ListingRequest, outcome: ListingOutcome
    ) -> Awaitable[None] | None:
        """Observe a listing that was answered or refused. The client does not wait; a failure is only counted."""

    @hookspec
    @facts(plain=True, fails_alone=True)
    def broker_core_http_routes(self, settings: Any) -> HttpSite | None:
        """Return what the plugin serves over HTTP: files, routes, screens of the explorer; ``None`` is nothing.

        Called once at the start, after ``broker_core_startup``, if the server has ``[http]``. ``settings`` is an
        instance of the model of ``broker_core_settings``. A path that the server or another plugin has stops the start.
        """

    @hookspec
    @facts(plain=True)
    def broker_core_commands(self, app: typer.Typer) -> None:
        """Add commands to the group ``broker-core NAME`` of the command line."""

    @hookspec
    def broker_core_check(self, settings: Any) -> Iterable[Check] | Awaitable[Iterable[Check]]:
        """Look at what this plugin needs (a database, files), and say what is right and what is wrong.

        For ``broker-core check``, which calls it in a process of its own, before a server starts: it changes nothing,
        may wait, and is given up after some seconds. The names of the checks are those of settings, or words of the
        plugin's own. Sync or async.
        """

    @hookspec
    @facts(plain=True)
    def broker_core_problems(self, settings: Any) -> Collection[str] | None:
        """Say what is wrong with what this plugin works on, a line each; nothing if all is well.

        For ``broker-core plugins``, which calls it in a process of its own and never in a server: it may wait.
        """


#: The facts of each hook, by its name.
HOOK_FACTS: Final[Mapping[str, HookFacts]] = facts_of(HookSpecs, f"{PROJECT}_")

"""Failures of plugins: a plugin does not load, or one of its answers fails."""

from __future__ import annotations

from dataclasses import dataclass

from broker_core.errors import BrokerCoreError, Cause, ListingFailed, ServerError

__all__ = ["ChainStep", "PluginFailed", "PluginLoadError", "RefusedByPlugin", "RestFailed"]


class PluginLoadError(BrokerCoreError):
    """A plugin cannot be used, so the broker does not start. One line that names the plugin and its distribution.

    ``missing`` are the settings (``plugins.NAME.KEY``) that must be set, if nothing else is wrong.
    """

    def __init__(
        self, plugin: str, distribution: str | None, problem: str, *, missing: tuple[str, ...] = ()
    ) -> None:
        self.missing = missing
        self.plugin = plugin
        self.distribution = distribution
        origin = f" (distribution {distribution})" if distribution else ""
        super().__init__(f"plugin {plugin!r}{origin} {' '.join(problem.split())}")


@dataclass(frozen=True, slots=True)
class ChainStep:
    """The answer of one plugin of the chain.

    ``answer`` is ``"success"``, ``"pass_through"``, ``"unchanged"``, ``"refused"``, ``"mask"``, ``"allowed"``,
    ``"error"`` or ``"not_asked"``;
    ``seconds`` its duration; ``error`` a description of the failure for the operator (it may quote the plugin's
    exception). If ``stale`` is not ``None``, a former answer, so many seconds old, replaces that failure. ``kept``: the
    plugin was not asked, since its ``version`` is that of the kept answer. ``why`` is the plugin's reason for passing.
    ``shown`` is how many of the names a mask shows.
    """

    plugin: str
    answer: str
    seconds: float = 0.0
    error: str | None = None
    stale: float | None = None
    kept: bool = False
    version: str | None = None
    why: str | None = None
    shown: int | None = None


class PluginFailed(ListingFailed):
    """A plugin gave no usable answer.

    ``reason`` says how, as a label of metrics: ``plugin_error`` (it raised), ``plugin_deadline``, ``plugin_breaker``
    (it is not asked after too many failures), ``plugin_threads`` (its threads are all taken), ``plugin_answer`` (it
    returned an invalid answer). The message goes to the client and only names the kind of an exception, whose text may
    be confidential. ``detail`` has the text, for the log and for ``explain``.
    """

    def __init__(
        self,
        plugin: str,
        message: str,
        *,
        reason: str,
        detail: str | None = None,
        cause: Cause = Cause.PLUGIN,
        code: ServerError | None = None,
        counts: bool = True,
    ) -> None:
        super().__init__(
            f"plugin {plugin!r} {message}",
            cause=cause,
            code=cause.pulsar if code is None else code,
            reason=reason,
            plugin=plugin,
            counts=counts,
        )
        self.detail = detail or self.message


class RefusedByPlugin(ListingFailed):
    """A plugin has decided to refuse an answer: it is not a failure, and nothing can replace it.

    ``reason`` is ``gate`` (of ``broker_core_authorize``) or ``refused`` (of a lister). The client gets the message as
    the plugin wrote it.
    """

    def __init__(self, plugin: str, message: str, cause: Cause, *, reason: str) -> None:
        super().__init__(message, cause=cause, reason=reason, plugin=plugin, counts=False)


class RestFailed(ListingFailed):
    """The rest of the chain, which a plugin asked (``request.rest()``), failed: not its own failure, and final.

    It has the message of the failure of the later plugin; ``detail`` is as for :class:`PluginFailed`.
    """

    def __init__(self, failure: PluginFailed) -> None:
        super().__init__(
            failure.message,
            cause=failure.cause,
            code=failure.code,
            reason=failure.reason,
            plugin=failure.plugin,
            counts=failure.counts,
        )
        self.detail = failure.detail

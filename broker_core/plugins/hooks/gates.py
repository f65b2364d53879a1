"""The gates (``broker_core_authorize``): a client passes only if every gate has allowed it.

Gates are asked one by one in the operator's order; the first refusal or failure ends it. Every failure of a gate keeps
the gate closed: an exception, its deadline, its breaker, an invalid answer. No decision is cached.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import structlog

from broker_core.access import Access, Refused
from broker_core.errors import Cause, ListingFailed, ServerError
from broker_core.plugins.call.hook_caller import HookCaller
from broker_core.plugins.failures import ChainStep, PluginFailed, RefusedByPlugin
from broker_core.plugins.raised_exceptions import bounded, shown_kind

__all__ = ["AUTHORIZE", "pass_gates"]

log = structlog.get_logger(__name__)

AUTHORIZE: Final = "broker_core_authorize"


async def pass_gates(gates: Sequence[HookCaller], access: Access, steps: list[ChainStep] | None) -> None:
    """Ask whether ``access`` is allowed. ``steps`` gets one entry for each gate that was asked.

    Raises :exc:`RefusedByPlugin` if a gate refuses it, :exc:`PluginFailed` if one fails.
    """
    clock = asyncio.get_running_loop().time
    for gate in gates:
        started = clock()
        try:
            refused, word = await gate.call(access, _check, access=access)
        except ListingFailed as failure:
            closed = _closed(gate.name, failure)
            step = ChainStep(gate.name, "error", clock() - started, closed.detail)
            if steps is not None:
                steps.append(step)
            try:
                raise closed from failure
            finally:
                del closed  # in its own traceback
        step = ChainStep(gate.name, word, clock() - started)
        if steps is not None:
            steps.append(step)
        if refused is not None:
            message = bounded(refused.message)
            log.info(
                "gate refuses",
                plugin=gate.name,
                action=access.action,
                namespace=str(access.namespace),
                role=access.asker.role,
                peer=access.asker.remote_address,
                message=message,
            )
            raise RefusedByPlugin(gate.name, message, refused.cause, reason="gate")


def _closed(plugin: str, failure: ListingFailed) -> PluginFailed:
    """The failure of a gate, which lets no client pass, whatever it raised.

    No decision was made against the client, so the cause is the plugin. Clients of Pulsar get the code of a denial.
    """
    name = f"plugin {plugin!r} "
    said = failure.message
    said = said.removeprefix(name) if said.startswith(name) else f"failed: {said}"
    return PluginFailed(
        plugin,
        said,
        reason=failure.reason,
        detail=failure.detail if isinstance(failure, PluginFailed) else None,
        code=ServerError.AuthorizationError,
        counts=failure.counts,
    )


def _check(answer: object, _access: Access) -> tuple[Refused | None, str]:
    if answer is None:
        return None, "allowed"
    if type(answer) is not Refused:
        raise TypeError(f"it returned {shown_kind(answer)}, not None or a Refused: {_instead(answer)}")
    # Set without any check, they may be anything.
    if not isinstance(answer.message, str) or not isinstance(answer.cause, Cause):
        raise TypeError("it returned a Refused whose fields were changed")
    return answer, "refused"


def _instead(answer: object) -> str:
    if answer is True:
        return "write `return None` to let it pass"
    return 'write `return Refused("why")` to refuse, `return None` to let it pass'

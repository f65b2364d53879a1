"""The operations of an HTTP API as routes: parameters, credentials, rights and errors of each request."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any, Final

from aiohttp import hdrs, web

from broker_core.access import Asker
from broker_core.memory import SMALL_ANSWER
from broker_core.servers.http.api.api_request import ApiRequest, awaits_leave, check_body, check_expectation
from broker_core.servers.http.api.bounded_answer import HeldAnswer
from broker_core.servers.http.api.listing_problems import report_refusal
from broker_core.servers.http.api.operation import HttpOperation
from broker_core.servers.http.api.parameters import read_parameters
from broker_core.servers.http.api.problem_details import Problem, problem_of, problem_response
from broker_core.servers.http.api.services import ApiServices
from broker_core.servers.http.http_access import Right
from broker_core.servers.http.served_connection import abort, client_of
from broker_core.service import Attempt, AuditRow, Outcome, QuotaTurn

__all__ = ["Admit", "HttpApi"]

#: Returns the asker, or raises the error 401 or 403: called with a request and the needed right.
Admit = Callable[[web.Request, Right], Awaitable[Asker]]

#: The key of a request's turn of the quotas.
_TURN: Final = web.RequestKey("quota turn", QuotaTurn)


class HttpApi:
    """Operations below one path (``prefix``), with errors of one form.

    ``admit`` gives the asker, ``read`` the values of parameters.
    """

    def __init__(
        self,
        prefix: str,
        operations: Iterable[HttpOperation],
        services: ApiServices,
        admit: Admit,
        *,
        form: Callable[[Problem], web.Response] = problem_response,
        read: Callable[[web.Request, HttpOperation], Mapping[str, Any]] = read_parameters,
    ) -> None:
        self.prefix = prefix
        self.operations = tuple(operations)
        self._services = services
        self._admit = admit
        self._form = form
        self._read = read
        services.http_metrics.expect(each.operation_id for each in self.operations)

    def routes(self) -> list[web.RouteDef]:
        """The route of each operation; aiohttp lets one with GET take HEAD too."""
        return [
            web.route(each.method, each.route, self._handler(each), expect_handler=check_expectation)
            for each in self.operations
        ]

    def failure(self, error: Exception, request: web.Request) -> web.StreamResponse:
        """The response for an error outside the operations, such as an unknown path."""
        return self._form(problem_of(error, request))

    def _handler(self, operation: HttpOperation) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            started = time.perf_counter()
            metrics = self._services.http_metrics
            parts = request.match_info
            attempt = Attempt(
                operation.changes,
                namespace=f"{parts['tenant']}/{parts['namespace']}" if operation.has_namespace else "",
                target=request.path
                if operation.changes == "ask_plugin"
                else parts.get("topic") or parts.get("topic_id") or parts.get("user") or "",
            )
            status, size, problem = None, 0, None
            metrics.under_way += 1
            try:
                try:
                    response = await self._answer(operation, request, attempt)
                except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an error
                    if _is_cut(error, request):
                        return _cut(error, request)
                    problem = problem_of(error, request)
                    response = self._refused(problem, request)
                status, size = response.status, _size_to_come(response)
                return response
            finally:
                metrics.under_way -= 1
                size += request.writer.output_size
                metrics.answered(operation.operation_id, status, time.perf_counter() - started, size)
                client_of(request).sent(size)
                if (turn := request.get(_TURN)) is not None:
                    turn.spent(size)
                attempt.ended(_rows(attempt, status, problem))

        return handle

    async def _answer(
        self, operation: HttpOperation, request: web.Request, attempt: Attempt
    ) -> web.StreamResponse:
        """Let the client in, and answer; the refusal of a listing is reported."""
        tracing = self._services.pipeline.sinks.tracing
        with nullcontext() if tracing is None else tracing.under(request.headers):
            admit = partial(self._admit, request, operation.needs)
            asker = await admit()
            self._services.pages.check(request, changes=operation.changes is not None)
            attempt.asker = asker
            client_of(request).identified(asker)
            try:
                return await self._answer_to(asker, operation, request, admit, attempt)
            except Exception as error:
                if operation.question is not None and not _is_cut(error, request):
                    report_refusal(self._services, operation.question(request), asker, error)
                raise

    async def _answer_to(
        self,
        asker: Asker,
        operation: HttpOperation,
        request: web.Request,
        admit: Callable[[], Awaitable[Asker]],
        attempt: Attempt,
    ) -> web.StreamResponse:
        values = self._read(request, operation)
        api_request = ApiRequest(request, self._services, asker, values, operation.body, admit, attempt)
        namespace = str(api_request.namespace()) if operation.has_namespace else ""
        with client_of(request).asking(operation.operation_id, namespace):
            await self._wait_for_quotas(request, asker, namespace)
            with self._services.admission.place(asker):
                if operation.needs.action is not None:
                    await api_request.authorize(operation.needs.action)
                check_body(request, operation.body)
                response = await operation.handler(api_request)
                # What was changed is not refused for lack of memory.
                return (
                    await _written_under_permits(api_request, response)
                    if operation.changes is None
                    else response
                )

    async def _wait_for_quotas(self, request: web.Request, asker: Asker, namespace: str) -> None:
        """Wait for the turn of a request; raises :exc:`~broker_core.errors.QuotaExceeded`."""
        services = self._services
        if services.quotas.on:
            turn = services.quotas.turn(asker, namespace, most_waiting=services.admission.most_waiting)
            if turn is not None:
                await turn.begin()
                request[_TURN] = turn

    def _refused(self, problem: Problem, request: web.Request) -> web.Response:
        response = self._form(problem)
        if self._services.admission.draining or awaits_leave(request):
            response.force_close()
        return response


async def _written_under_permits(request: ApiRequest, response: web.StreamResponse) -> web.StreamResponse:
    """A response as it is if its body is small or under way; else it is written here, under permits to its end."""
    body = _body_to_come(response)
    if not isinstance(body, bytes) or len(body) <= SMALL_ANSWER or request.http.method == hdrs.METH_HEAD:
        return response
    async with HeldAnswer(request) as held:
        await held.hold(len(body))
        return await held.write_made(body, {**response.headers}, response.status)


def _is_cut(error: Exception, request: web.Request) -> bool:
    """Whether an error ends the connection: the client is gone, or has a part of its answer."""
    return request.writer.output_size > 0 or isinstance(error, ConnectionError)


def _cut(error: Exception, request: web.Request) -> web.Response:
    """End the connection: the client is gone, or only this shows it that its partly sent answer is not whole.

    The response is for aiohttp, which would log an exception: it cannot be sent.
    """
    if not isinstance(error, ConnectionError):
        problem_of(error, request)  # which logs unforeseen errors
    abort(request)
    return web.Response(status=500)


def _rows(attempt: Attempt, status: int | None, problem: Problem | None) -> list[AuditRow]:
    """The rows of a request's result. ``status`` is the response's; ``None``: the client left before there was one."""
    outcome: Outcome = "abandoned" if status is None else "done"
    if status is not None and status >= 400:
        outcome = "refused" if status < 500 or status == 501 else "failed"
    cause = "" if problem is None else problem.cause.name
    fields = attempt.fields if outcome == "done" else {}
    if outcome == "done" and attempt.rows:
        return [row._replace(fields={"status": status, **row.fields}) for row in attempt.rows]
    return [AuditRow(attempt.target, outcome, cause, {"status": status, **fields})]


def _size_to_come(response: web.StreamResponse) -> int:
    """Bytes of the body that is written when the handler has returned."""
    body = _body_to_come(response)
    return len(body) if isinstance(body, bytes | bytearray) else 0


def _body_to_come(response: web.StreamResponse) -> object:
    """The body that is written when the handler has returned; ``None`` if it is written already."""
    return response.body if isinstance(response, web.Response) and not response.prepared else None

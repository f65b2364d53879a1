"""Warnings about a question over HTTP: a header, a member of the answer, or the error in its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from broker_core.compact_json import ascii_json
from broker_core.errors import Cause
from broker_core.pipeline import QuestionWarning
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.operation import Parameter
from broker_core.servers.http.api.parameters import flag
from broker_core.servers.http.api.problem_details import refused

__all__ = ["UNFILTERED", "WARNINGS", "require_filtered", "warning_headers", "warning_members"]

#: The header with the warnings as a JSON array in ASCII, for the forms that have no place for them.
WARNINGS: Final = "Topics-Warnings"
UNFILTERED: Final = Parameter(
    "unfiltered",
    "Whether a pattern that the server does not apply (RE2 cannot run it, or `patterns.evaluate` is false) gets all "
    "topics, which the client filters then; otherwise it is the error 400.",
    read=flag,
    schema={"type": "boolean", "default": False},
    default=False,
)


def require_filtered(request: ApiRequest, warnings: Sequence[QuestionWarning]) -> None:
    """Raise the error 400 if the server did not apply the pattern, and the client does not say that it will."""
    for warning in warnings:
        if warning.kind == "unfiltered" and not request.values.get(UNFILTERED.name):
            raise refused(
                400,
                f"{warning.text}; unfiltered=true asks for all of them",
                Cause.PATTERN,
                retry_with="unfiltered=true",
            )


def warning_headers(warnings: Sequence[QuestionWarning]) -> dict[str, str]:
    """The header, if there is something to say."""
    texts = _texts(warnings)
    return {WARNINGS: ascii_json(texts)} if texts else {}


def warning_members(warnings: Sequence[QuestionWarning]) -> dict[str, Any]:
    """The member of a JSON object, if there is something to say."""
    texts = _texts(warnings)
    return {"warnings": texts} if texts else {}


def _texts(warnings: Sequence[QuestionWarning]) -> list[str]:
    """All warnings but the one that a client expects by ``unfiltered``."""
    return [warning.text for warning in warnings if warning.kind != "unfiltered"]

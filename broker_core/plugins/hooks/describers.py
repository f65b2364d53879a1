"""What ``broker_core_describe_topics`` returns: details, or nothing."""

from __future__ import annotations

import pyarrow as pa

from broker_core.listing.details import Details

__all__ = ["checked_details"]


def checked_details(answer: object, _request: object) -> tuple[Details | None, str]:
    """The details and the word for them; raises :exc:`TypeError` for what is none. Their values are checked later."""
    if answer is None:
        return None, "pass_through"
    if type(answer) is not Details:
        instead = ": write Details(batch)" if isinstance(answer, pa.RecordBatch) else ""
        raise TypeError(f"it returned a {type(answer).__name__}, not broker_core.Details or None{instead}")
    return answer, "success"

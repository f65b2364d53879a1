"""Checks of the answers of ``broker_core_visible``: boolean masks over the column of names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from broker_core.counted import counted

__all__ = ["checked_mask"]


def checked_mask(answer: object, length: int) -> Any | None:
    """The mask as an Arrow boolean array of ``length``, or ``None`` if the plugin answered that all is visible.

    Takes Arrow arrays, chunked ones too, and one-dimensional numpy arrays, of booleans only: an array of indices, or of
    0 and 1, would not filter as intended. Raises :exc:`TypeError` or :exc:`ValueError`.
    """
    if answer is None:
        return None
    if isinstance(answer, np.ndarray):
        if answer.dtype != np.bool_ or answer.ndim != 1:
            raise TypeError(
                f"the mask is a numpy array of {answer.dtype}, {answer.ndim}-dimensional, not of bool"
            )
        answer = pa.array(answer)
    elif isinstance(answer, pa.ChunkedArray):
        answer.validate(full=True)
        answer = answer.combine_chunks()
    if not isinstance(answer, pa.Array):
        instead = ": write pyarrow.array(mask)" if isinstance(answer, list | tuple) else ""
        raise TypeError(
            f"the mask is a {type(answer).__name__}, not an Arrow or numpy array of booleans{instead}"
        )
    if not pa.types.is_boolean(answer.type):
        raise TypeError(f"the mask is an Arrow array of {answer.type}, not of booleans")
    answer.validate(full=True)
    if len(answer) != length:
        raise ValueError(f"the mask has {counted(len(answer), 'value')} for {counted(length, 'topic')}")
    if answer.null_count:
        raise ValueError(
            f"the mask has {counted(answer.null_count, 'null')}: it must say true or false for each topic"
        )
    return answer

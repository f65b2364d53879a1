"""One check in a thread, bounded in time; an exception becomes a finding."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Final

from broker_core.cli.error_line import one_line
from broker_core.errors import BrokerCoreError
from broker_core.plugin_api import Check
from broker_core.redaction import without_credentials

__all__ = ["PATIENCE", "bounded"]

#: Seconds that one check may take.
PATIENCE: Final = 15.0


def bounded(name: str, check: Callable[[], Iterable[Check]], *, patience: float = PATIENCE) -> list[Check]:
    """The findings of a check; an error in their place if it fails, or has not ended after ``patience`` seconds."""
    found: list[Check] = []

    def run() -> None:
        try:
            found.extend(check())
        except BrokerCoreError as error:
            found.append(Check.error(name, str(error)))
        except Exception as error:  # noqa: BLE001 - a plugin's fault, or ours: the others are still looked at
            found.append(Check.error(name, f"the check failed: {type(error).__name__}: {error}"))

    # A daemon: a check that hangs must not keep the command from ending.
    thread = threading.Thread(target=run, name=f"check {name}", daemon=True)
    thread.start()
    thread.join(patience)
    late = [Check.error(name, f"no result within {patience:g} s")] if thread.is_alive() else []
    return [
        Check(each.level, each.name, without_credentials(one_line(each.text)))
        for each in [*list(found), *late]
    ]

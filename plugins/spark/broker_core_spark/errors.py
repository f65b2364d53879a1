"""What can be wrong with a generation or with the place where generations are kept."""

from __future__ import annotations

from broker_core.errors import BrokerCoreError

__all__ = ["DamagedFile", "InvalidGeneration", "NoSuchGeneration", "StoreFailed"]


class InvalidGeneration(BrokerCoreError):
    """A file of a generation is not what it must be: ``file`` says which, ``reason`` what is wrong with it.

    Raised for truncated, corrupted, swapped and foreign files, and for those of a version that is not known here.
    """

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(f"{file}: {reason}")
        self.file = file
        self.reason = reason

    def __reduce__(self) -> tuple[type[InvalidGeneration], tuple[str, str]]:
        """Errors come back from other processes (Spark's workers) as pickles."""
        return type(self), (self.file, self.reason)


class NoSuchGeneration(BrokerCoreError):
    """No generation of that name is in the store, or none at all; or the name is the start of several."""


class StoreFailed(BrokerCoreError):
    """The store could not be read or written, or is no place for generations; the message says why."""


class DamagedFile(StoreFailed):
    """What is stored under a name is not what it must be: too short, too long, or no regular file at all."""

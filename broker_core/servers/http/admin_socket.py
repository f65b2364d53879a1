"""The unix socket of the operator: a file that only the user of the server can connect to.

Only this user, or root, on this machine can connect to it, so no credentials are asked for.
"""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path
from typing import Final

from broker_core.errors import BrokerCoreError

__all__ = ["AdminSocket", "AdminSocketError", "AdminSocketInUse", "check_place"]

_BACKLOG: Final = 64
#: Bytes of a path that the address of a unix socket has room for (``sun_path`` without its last byte), at least.
_LONGEST: Final = 103
#: Seconds in which a server that listens there accepts.
_PATIENCE: Final = 1.0


class AdminSocketError(BrokerCoreError):
    """Failure to listen on ``[admin] socket``; the message names the file and says why."""


class AdminSocketInUse(AdminSocketError):
    """Another process listens there."""


def check_place(path: Path) -> None:
    """Raise :exc:`AdminSocketError` if no socket can be made at ``path``. Nothing is changed."""
    folder = path.parent
    if not folder.is_dir():
        raise _error(path, f"there is no folder {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _error(path, "this user cannot write its folder")
    _check_length(path)
    _is_stale(path)


class AdminSocket:
    """A listening unix socket with the mode 0600, from its making to :meth:`close`.

    A file that a server left behind, which nobody listens on, is replaced. Anything else at the path stays: raises
    :exc:`AdminSocketError`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        _check_length(path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            if _is_stale(path):
                path.unlink()
            # Nobody can connect between bind and chmod: nothing listens yet.
            self.socket.bind(os.fspath(path))
            path.chmod(0o600)
            self._made = _identity(path)
            self.socket.setblocking(False)
            self.socket.listen(_BACKLOG)
        except OSError as error:
            self.socket.close()
            raise _error(path, (error.strerror or str(error)).lower()) from error
        except BaseException:
            self.socket.close()
            raise

    def close(self) -> None:
        """Close the socket, and remove its file unless another one has taken its place. May be called again."""
        self.socket.close()
        try:
            if _identity(self._path) == self._made:
                self._path.unlink()
        except OSError:
            pass  # it is gone already, or its folder is


def _check_length(path: Path) -> None:
    if len(os.fsencode(path)) > _LONGEST:
        raise _error(path, f"the path of a socket has at most {_LONGEST} bytes")


def _is_stale(path: Path) -> bool:
    """Whether a killed server left a file there; raises if the place is taken."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISSOCK(found.st_mode):
        raise _error(path, "there is something else than a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as tried:
        tried.settimeout(_PATIENCE)
        try:
            tried.connect(os.fspath(path))
        except ConnectionRefusedError:
            return True
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _error(path, f"there is a socket that is not answered: {error}") from error
    raise AdminSocketInUse(str(_error(path, "another process listens there")))


def _identity(path: Path) -> tuple[int, int]:
    found = path.lstat()
    return found.st_dev, found.st_ino


def _error(path: Path, reason: str) -> AdminSocketError:
    return AdminSocketError(f"admin.socket: cannot listen on {path}: {reason}")

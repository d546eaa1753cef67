"""Whose socket it is: what goes through it is a whole project, so it must be that of this user, or of root."""

from __future__ import annotations

import os
import socket
import stat
import struct

#: struct ucred: the process, the user, the group that called listen().
_CREDENTIALS = struct.Struct("iII")
_ROOT = 0
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class Stranger(Exception):
    """The socket may be somebody else's; says why."""


def answers(path: str) -> bool:
    """Whether somebody takes connections there."""
    with socket.socket(socket.AF_UNIX) as visitor:
        return visitor.connect_ex(path) == 0


def require_own_socket(path: str) -> str:
    """The path without symlinks, when this user or root listens there and nobody else can put another socket there.

    The second half is what makes the first last: gRPC connects by the path, later and as often as it likes.
    """
    place = os.path.realpath(path)
    directory = os.path.dirname(place)
    try:
        entry = os.lstat(directory)
        with socket.socket(socket.AF_UNIX) as visitor:
            visitor.connect(place)
            peer = visitor.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    except OSError as error:
        raise Stranger(f"nobody answers there: {error.strerror}") from error
    if not _is_trusted(entry.st_uid) or entry.st_mode & _WRITABLE_BY_OTHERS:
        raise Stranger(f"other users can change {directory}")
    _, user, _ = _CREDENTIALS.unpack(peer)
    if not _is_trusted(user):
        raise Stranger(f"it is user {user} who answers there")
    return place


def _is_trusted(user: int) -> bool:
    return user in (os.geteuid(), _ROOT)

"""Another user of this machine, who listens and keeps what arrives."""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Optional, Type

#: Says that it listens, answers nobody, and tells at the end of its input how many bytes came to it.
_LISTENER = """
import os, select, socket, sys

where = sys.argv[1]
listener = socket.socket(socket.AF_UNIX) if where.startswith("/") else socket.socket()
listener.bind(where if where.startswith("/") else ("127.0.0.1", int(where)))
listener.listen()
if where.startswith("/"):
    os.chmod(where, 0o777)
print("listening", flush=True)
others, received = [], b""
while True:
    ready, _, _ = select.select([sys.stdin, listener, *others], [], [])
    for one in ready:
        if one is listener:
            others.append(listener.accept()[0])
        elif one is not sys.stdin:
            piece = one.recv(65536)
            received += piece
            if not piece:
                others.remove(one)
    # Only when nothing else is left to read: what was sent before the end of the input counts.
    if ready == [sys.stdin]:
        break
print(len(received), flush=True)
"""


def other_user() -> int:
    """The user of the tests, or else an id that nobody has: it needs no account. Becoming another takes root."""
    try:
        return pwd.getpwnam("agentfense-test").pw_uid
    except KeyError:
        return 64_999


class Eavesdropper:
    """Listens at a port of loopback, or at a path, as that user."""

    def __init__(self, where: str) -> None:
        self._process = subprocess.Popen(
            # Whatever Python there is: that of the tests may be where the other user cannot go.
            [os.path.realpath(sys.executable), "-I", "-S", "-c", _LISTENER, where],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd="/",
            user=other_user(),
            group=other_user(),
            extra_groups=[],
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"listening\n"

    def received_bytes(self) -> int:
        """Ends it, and gives the number of bytes that anybody sent."""
        printed, _ = self._process.communicate()
        return int(printed)

    def __enter__(self) -> Eavesdropper:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._process.kill()
        self._process.communicate()


def visit(path: Path) -> None:
    """Sends something, as who trusts the socket would."""
    with socket.socket(socket.AF_UNIX) as visitor:
        visitor.connect(str(path))
        visitor.sendall(b"secret")

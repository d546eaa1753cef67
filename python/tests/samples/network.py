"""A network with nobody else in it, so that `localhost:9000` is free and leads to the server of the test.

The server stays outside, so that it needs no more than it always does. The process with the samples goes inside,
listens at 127.0.0.1:9000 and hands the listening socket out; here, outside, it is answered by passing bytes on.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import threading
from contextlib import suppress
from types import TracebackType
from typing import List, Optional, Sequence, Type

ADDRESS = ("127.0.0.1", 9000)

# <linux/sockios.h> and <linux/if.h>
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1


def in_network_of_its_own(command: Sequence[str]) -> List[str]:
    """The command line that runs a command there; an ordinary user is root in there, of nothing else."""
    mapping = [] if os.getuid() == 0 else ["--map-root-user"]
    return ["unshare", "--net", *mapping, "--", *command]


def listen_inside() -> socket.socket:
    """Listens at the usual address; for a process in a new network, where not even the loopback device is up."""
    raise_loopback()
    return socket.create_server(ADDRESS)


def raise_loopback() -> None:
    """Brings up the loopback device of a new network."""
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))


class Door:
    """Connections to a listening socket lead to another address, for as long as it is open."""

    def __init__(self, listener: socket.socket, host: str, port: int) -> None:
        self._listener = listener
        self._target = (host, port)
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Door:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # ends an accept that waits, which close does not
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                inner, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(inner,), daemon=True).start()

    def _connect(self, inner: socket.socket) -> None:
        with inner, socket.create_connection(self._target) as outer:
            for end in (inner, outer):
                # What comes in pieces goes on in pieces, without waiting for the answer to the one before.
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            back = threading.Thread(target=_pass_on, args=(outer, inner), daemon=True)
            back.start()
            _pass_on(inner, outer)
            back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    """Until the source ends, or either of the two breaks; then the target learns it."""
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with suppress(OSError):  # it may be gone already
        target.shutdown(socket.SHUT_WR)

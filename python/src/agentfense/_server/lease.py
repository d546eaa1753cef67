"""One private server for a whole process, for as long as somebody uses it."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import Optional

from agentfense._server.process import ServerProcess
from agentfense._server.program import find_program
from agentfense.exceptions import RuntimeUnavailableError


class _Tenancy:
    """A server and the number of those who use it."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        self.pid = os.getpid()
        self.tenants = 0


class Lease:
    """The use of the private server. The last one that is closed ends it."""

    def __init__(self, house: _House, tenancy: _Tenancy) -> None:
        self._house = house
        self.endpoint = tenancy.server.endpoint
        #: The house's, which holds its lock: None when the lease is over.
        self.tenancy: Optional[_Tenancy] = tenancy

    def close(self) -> None:
        """Any number of times. Returns when the server is gone, if this was the last lease."""
        self._house.leave(self)


class _House:
    """Where the server of this process is kept.

    The lock is held while a server starts or ends. A fork waits for it, so that its copy of this process finds the
    server either not there or complete, and can let go of its pipes: while a copy held them the server would not end.
    """

    def __init__(self) -> None:
        # Reentrant: a handler of a signal may fork while its own thread starts a server.
        self._lock = threading.RLock()
        self._current: Optional[_Tenancy] = None

    def enter(self) -> Lease:
        """Starts a server if there is none, or the one there was has died."""
        with self._lock:
            if self._current is not None and not self._current.server.listens:
                self.clear()
            if self._current is None:
                self._current = _Tenancy(ServerProcess(find_program(os.environ)))
            self._current.tenants += 1
            return Lease(self, self._current)

    def leave(self, lease: Lease) -> None:
        """The last one turns off the light. A lease that was copied by a fork is nobody's."""
        with self._lock:
            tenancy, lease.tenancy = lease.tenancy, None
            if tenancy is None or tenancy.pid != os.getpid():
                return
            tenancy.tenants -= 1
            if tenancy is self._current and tenancy.tenants == 0:
                self.clear()

    def clear(self) -> None:
        """Ends the server, whoever uses it."""
        with self._lock:
            tenancy, self._current = self._current, None
            if tenancy is not None:
                tenancy.server.stop()

    def before_fork(self) -> None:
        """What forks next is a process without a start or an end under way."""
        self._lock.acquire()

    def after_fork_in_parent(self) -> None:
        """Everything goes on."""
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """The copy has no server."""
        tenancy, self._current = self._current, None
        if tenancy is not None:
            tenancy.server.forget()
        self._lock.release()


_HOUSE = _House()
atexit.register(_HOUSE.clear)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_HOUSE.before_fork,
        after_in_parent=_HOUSE.after_fork_in_parent,
        after_in_child=_HOUSE.after_fork_in_child,
    )


def lease() -> Lease:
    """The private server of this process, started if need be. Blocks until it listens; raises ConnectionError."""
    if sys.platform != "linux":
        raise RuntimeUnavailableError(
            f"sandboxes run on Linux, not on {sys.platform}",
            code="RUNTIME_UNAVAILABLE",
            hint="run `agentfense serve` on a Linux machine and name it: AGENTFENSE_ENDPOINT, or the option endpoint",
        )
    return _HOUSE.enter()

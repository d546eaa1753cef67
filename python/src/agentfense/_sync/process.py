# Generated from src/agentfense/_async/process.py by scripts/generate_sync.py: change it there.
"""A process of a sandbox that outlives its call."""

from __future__ import annotations

from typing import Iterator, Union

from agentfense._sync.client import SandboxClient
from agentfense._sync.client_stream import CallStream
from agentfense.types import ProcessEnd, ProcessEvent, ProcessInfo


class SandboxProcess:
    """A process of a sandbox. It lives on without this object, until it ends or the sandbox is stopped.

    `spawn`, `processes` and `process` of a sandbox make one.
    """

    def __init__(self, client: SandboxClient, info: ProcessInfo) -> None:
        """For a sandbox, which makes one."""
        self._client = client
        #: As the server last said.
        self.info = info
        self.number = info.number
        self.tag = info.tag

    def output(self) -> Iterator[ProcessEvent]:
        """What is kept of its output, then what comes, then its end. Attaches with the first read."""
        with self.attach() as events:
            event = events.__next__()
            while event.end is None:
                yield event
                event = events.__next__()
            yield event

    def attach(self, *, skip_kept: bool = False) -> CallStream[ProcessEvent]:
        """The same, attached when it returns: from then on nothing is lost, and a slow reader slows the process.

        With `skip_kept` only what comes from now on.
        """
        return self._client.attach_process(self.info.sandbox_id, self.number, skip_kept=skip_kept)

    def write(self, data: Union[str, bytes]) -> None:
        """Returns when the process has room for it."""
        self._client.send_input(self.info.sandbox_id, self.number, data)

    def end(self) -> None:
        """The process reads the end of its input."""
        self._client.close_input(self.info.sandbox_id, self.number)

    def signal(self, signal: Union[str, int]) -> None:
        """To the process and all that it started: "SIGTERM", "TERM" or 15."""
        self._client.signal_process(self.info.sandbox_id, self.number, signal)

    def kill(self) -> None:
        """Ends the process and all that it started, however it hid."""
        self.signal("SIGKILL")

    def resize(self, columns: int, rows: int) -> None:
        """Gives its terminal another size."""
        self._client.resize_process(self.info.sandbox_id, self.number, columns, rows)

    def wait(self) -> ProcessEnd:
        """How it ended, when it has."""
        info = self._client.wait_process(self.info.sandbox_id, self.number)
        assert info.end is not None, "what was waited for has ended"
        return info.end

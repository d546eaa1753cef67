"""A process of a sandbox that outlives its call."""

from __future__ import annotations

from typing import AsyncIterator, Union

from agentfense._async.client import AsyncSandboxClient
from agentfense._async.client_stream import AsyncCallStream
from agentfense.types import ProcessEnd, ProcessEvent, ProcessInfo


class AsyncSandboxProcess:
    """A process of a sandbox. It lives on without this object, until it ends or the sandbox is stopped.

    `spawn`, `processes` and `process` of a sandbox make one.
    """

    def __init__(self, client: AsyncSandboxClient, info: ProcessInfo) -> None:
        """For a sandbox, which makes one."""
        self._client = client
        #: As the server last said.
        self.info = info
        self.number = info.number
        self.tag = info.tag

    async def output(self) -> AsyncIterator[ProcessEvent]:
        """What is kept of its output, then what comes, then its end. Attaches with the first read."""
        async with await self.attach() as events:
            event = await events.__anext__()
            while event.end is None:
                yield event
                event = await events.__anext__()
            yield event

    async def attach(self, *, skip_kept: bool = False) -> AsyncCallStream[ProcessEvent]:
        """The same, attached when it returns: from then on nothing is lost, and a slow reader slows the process.

        With `skip_kept` only what comes from now on.
        """
        return await self._client.attach_process(self.info.sandbox_id, self.number, skip_kept=skip_kept)

    async def write(self, data: Union[str, bytes]) -> None:
        """Returns when the process has room for it."""
        await self._client.send_input(self.info.sandbox_id, self.number, data)

    async def end(self) -> None:
        """The process reads the end of its input."""
        await self._client.close_input(self.info.sandbox_id, self.number)

    async def signal(self, signal: Union[str, int]) -> None:
        """To the process and all that it started: "SIGTERM", "TERM" or 15."""
        await self._client.signal_process(self.info.sandbox_id, self.number, signal)

    async def kill(self) -> None:
        """Ends the process and all that it started, however it hid."""
        await self.signal("SIGKILL")

    async def resize(self, columns: int, rows: int) -> None:
        """Gives its terminal another size."""
        await self._client.resize_process(self.info.sandbox_id, self.number, columns, rows)

    async def wait(self) -> ProcessEnd:
        """How it ended, when it has."""
        info = await self._client.wait_process(self.info.sandbox_id, self.number)
        assert info.end is not None, "what was waited for has ended"
        return info.end

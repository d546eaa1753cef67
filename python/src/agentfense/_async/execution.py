"""A handle on a command that runs."""

from __future__ import annotations

import time
from datetime import timedelta
from types import TracebackType
from typing import Optional, Type, Union

from typing_extensions import Protocol

from agentfense._async.execution_output import AsyncOutput
from agentfense._face.turn import AsyncTurn
from agentfense._sandbox.output import OutputCallback
from agentfense._sandbox.result import collected_result, killed_end
from agentfense.exceptions import ConnectionError, InvalidConfigurationError, SandboxError
from agentfense.types import CommandEnd, CommandEvent, ExecResult, ExitEvent, StderrEvent, StdoutEvent


class AsyncCommandCall(Protocol):
    """A call that runs a command: what the command prints, in the end how it ended."""

    async def __anext__(self) -> CommandEvent: ...

    async def close(self) -> None:
        """Ends the call, and with it the command."""


class AsyncCommandInput(Protocol):
    """The input of a command that runs."""

    async def send(self, data: bytes) -> None:
        """Returns when it is on its way; at once when nobody reads any more."""

    async def end(self) -> None:
        """Nothing more comes."""


class AsyncExecution:
    """A command that runs. It is on its way when this is made; what it prints waits for whoever reads it:

    =========================  ======================================================================
    who reads                  where an output goes
    =========================  ======================================================================
    a loop over the execution  to the loop, with the exit as last event, and not into the result
    `wait()`                   into the result, as far as no loop has read it, up to 10 MiB of each
                               output; the rest is lost and the result says so (``truncated``)
    a callback                 to the callback and into the result, while somebody loops or waits
    nobody                     nowhere: the command is held up as soon as the connection is full
    =========================  ======================================================================

    One reads at a time: `wait()` takes what a loop elsewhere has not read yet. Leaving a loop leaves the command alone;
    the end of the `with` block ends it, and so does whoever is interrupted while he reads, by the cancellation of his
    task or a KeyboardInterrupt.
    """

    def __init__(
        self,
        command: str,
        call: AsyncCommandCall,
        *,
        stdin: Optional[AsyncCommandInput] = None,
        on_stdout: Optional[OutputCallback] = None,
        on_stderr: Optional[OutputCallback] = None,
    ) -> None:
        """For sandboxes and sessions, which make one."""
        self.command = command
        self._call = call
        self._stdin = stdin
        self._stdin_has_ended = False
        self._stdout = AsyncOutput(on_stdout)
        self._stderr = AsyncOutput(on_stderr)
        self._turn = AsyncTurn()
        self._started_at = time.monotonic()
        self._is_killed = False
        self._failure: Optional[Exception] = None
        self._end: Optional[CommandEnd] = None
        self._exit_was_told = False
        self._result: Optional[ExecResult] = None

    def __aiter__(self) -> AsyncExecution:
        return self

    async def __anext__(self) -> CommandEvent:
        """Gives what the command prints, in the order it comes, then the exit."""
        async with self._turn:
            while self._end is None:
                event = await self._read()
                if not isinstance(event, ExitEvent) and not self._output_of(event).is_heard:
                    return event
            if self._exit_was_told:
                raise StopAsyncIteration
            self._exit_was_told = True
            return ExitEvent(self._end)

    async def wait(self) -> ExecResult:
        """Gives how it ended, with the output that no loop has read.

        A non-zero exit code, a timeout and being killed are results. It raises when the command could not be started or
        the connection was lost.
        """
        async with self._turn:
            while self._end is None:
                event = await self._read()
                if not isinstance(event, ExitEvent) and not self._output_of(event).is_heard:
                    self._output_of(event).kept.add(event.data)
            if self._result is None:
                self._result = collected_result(self.command, self._end, self._stdout.kept, self._stderr.kept)
            return self._result

    async def kill(self) -> None:
        """Ends the command and all it has started. One that is over stays as it ended."""
        self._is_killed = True
        await self._call.close()

    async def send_stdin(self, data: Union[str, bytes]) -> None:
        """Sends input, text as UTF-8. A command that does not read makes it wait; so may one whose output nobody reads.

        Raises InvalidConfigurationError where the input was given when the command was started, or was ended since.
        """
        stdin = self._open_stdin()
        if self._stdin_has_ended:
            raise InvalidConfigurationError("nothing can be sent after the end of the input")
        if self._is_killed or self._end is not None or self._failure is not None:
            raise SandboxError("the command is over and reads no more input", code="COMMAND_FAILED")
        await stdin.send(data.encode() if isinstance(data, str) else data)

    async def end_stdin(self) -> None:
        """Has the command read the end of its input."""
        stdin = self._open_stdin()
        if not self._stdin_has_ended:
            self._stdin_has_ended = True
            await stdin.end()

    async def __aenter__(self) -> AsyncExecution:
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        """Ends the command."""
        await self.kill()

    def __repr__(self) -> str:
        state = "runs" if self._end is None else f"ended with {self._end.exit_code}"
        return f"<{type(self).__name__} {self.command!r} {state}>"

    async def _read(self) -> CommandEvent:
        """Takes one event off the call. What goes wrong here is what everybody hears of who asks later."""
        if self._failure is not None:
            raise self._failure
        try:
            event = await self._receive()
            await self._tell(event)
        except Exception as error:
            self._failure = error
            await self._call.close()
            raise
        except BaseException:
            # Whoever waits for it no longer wants it no longer.
            await self.kill()
            raise
        if isinstance(event, ExitEvent):
            self._end = event.end
            await self._call.close()
        return event

    async def _receive(self) -> CommandEvent:
        try:
            if not self._is_killed:
                return await self._call.__anext__()
        except StopAsyncIteration:
            if not self._is_killed:
                message = f"the server did not say how the command ended: {self.command}"
                raise ConnectionError(message, code="CONNECTION_FAILED") from None
        except SandboxError:
            if not self._is_killed:
                raise
        return ExitEvent(killed_end(timedelta(seconds=time.monotonic() - self._started_at)))

    async def _tell(self, event: CommandEvent) -> None:
        if isinstance(event, ExitEvent):
            await self._stdout.end()
            await self._stderr.end()
        else:
            await self._output_of(event).tell(event.data)

    def _output_of(self, event: Union[StdoutEvent, StderrEvent]) -> AsyncOutput:
        return self._stdout if isinstance(event, StdoutEvent) else self._stderr

    def _open_stdin(self) -> AsyncCommandInput:
        if self._stdin is None:
            raise InvalidConfigurationError("this command takes no more input than it was started with")
        return self._stdin

"""Commands, call by call, against a real server."""

from __future__ import annotations

# async only
import asyncio

# end async only
import time
from datetime import timedelta
from typing import AsyncIterator, Callable, List

import pytest

from agentfense import (
    AsyncSandboxClient,
    CommandExecutionError,
    CommandTimeoutError,
    ConnectionError,
    ExitEvent,
    InvalidConfigurationError,
    StderrEvent,
    StdoutEvent,
)
from agentfense._face.async_face import sleep
from agentfense.types import CommandEvent, SandboxInfo
from tests.server import Server
from tests.support.processes import Sleeper

PATIENCE_SECONDS = 20


async def test_a_command_has_a_result(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    result = await client.exec(sandbox.id, "echo out; echo err >&2; exit 3")
    assert (result.stdout, result.stderr, result.exit_code, result.signal) == ("out\n", "err\n", 3, None)
    assert (result.success, result.timed_out, result.truncated) == (False, False, False)
    assert (result.command, result.output) == ("echo out; echo err >&2; exit 3", "out\n\nerr\n")
    assert result.duration > timedelta(0)
    killed = await client.exec(sandbox.id, "kill -TERM $$")
    assert (killed.exit_code, killed.signal) == (143, "SIGTERM")


async def test_a_program_gets_its_arguments_as_they_are(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    result = await client.exec(sandbox.id, ["printf", "%s|", "a b", "$HOME", "'"])
    assert result.stdout == "a b|$HOME|'|"
    assert result.command == "printf '%s|' 'a b' '$HOME' ''\"'\"''"
    for nonsense in ([], [1], 5):
        with pytest.raises((InvalidConfigurationError, TypeError)):
            await client.exec(sandbox.id, nonsense)  # type: ignore[arg-type]


async def test_input_environment_and_directory(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    result = await client.exec(sandbox.id, "cat; echo $NAME; pwd", "given ", {"NAME": "value"}, "src")
    assert result.stdout == "given value\n/workspace/src\n"
    assert (await client.exec(sandbox.id, "cat", b"\x00\xff")).stdout_bytes == b"\x00\xff"
    with pytest.raises(InvalidConfigurationError) as raised:
        await client.exec(sandbox.id, "true", workdir="nowhere")
    assert raised.value.code == "WORKDIR_UNUSABLE"
    assert (await client.exec(sandbox.id, ["no-such-program"])).exit_code == 127


async def test_output_that_is_no_text(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    result = await client.exec(sandbox.id, r"printf 'a\377b'")
    assert (result.stdout, result.stdout_bytes) == ("a�b", b"a\xffb")


async def test_a_timeout_is_a_result(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    result = await client.exec(sandbox.id, "echo begun; sleep 1000", timeout=1)
    assert (result.timed_out, result.success, result.stdout) == (True, False, "begun\n")
    assert result.command == "echo begun; sleep 1000"
    for nonsense in (0, -1.0, timedelta(0), float("inf"), float("nan")):
        with pytest.raises(InvalidConfigurationError, match="timeout must be a number of seconds above 0"):
            await client.exec(sandbox.id, "true", timeout=nonsense)


async def test_check_raises_what_was_no_success(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    assert (await client.exec(sandbox.id, "true", check=True)).success
    with pytest.raises(CommandExecutionError) as failed:
        await client.exec(sandbox.id, "echo out; echo err >&2; exit 4", check=True)
    error = failed.value
    assert (error.code, error.exit_code, error.stdout, error.stderr) == ("COMMAND_FAILED", 4, "out\n", "err\n")
    assert error.command == "echo out; echo err >&2; exit 4"
    with pytest.raises(CommandTimeoutError) as late:
        await client.exec(sandbox.id, "echo begun; sleep 1000", timeout=timedelta(milliseconds=700), check=True)
    assert (late.value.code, late.value.stdout, late.value.result.timed_out) == ("COMMAND_TIMEOUT", "begun\n", True)
    assert isinstance(late.value, TimeoutError)


async def test_a_stream_tells_output_then_the_end(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    stream = client.exec_stream(sandbox.id, "echo out; sleep 0.2; echo err >&2; exit 5")
    events = [event async for event in stream]
    assert events[:2] == [StdoutEvent(b"out\n"), StderrEvent(b"err\n")]
    [end] = events[2:]
    assert isinstance(end, ExitEvent)
    assert (end.kind, end.exit_code, end.end.timed_out) == ("exit", 5, False)
    assert [event async for event in stream] == []


async def test_a_stream_of_twenty_megabytes(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    size = 0
    async for event in client.exec_stream(sandbox.id, "head -c 20000000 /dev/zero | tr '\\0' x", timeout=60):
        if isinstance(event, StdoutEvent):
            assert event.data.strip(b"x") == b""
            size += len(event.data)
    assert size == 20_000_000


async def test_a_timeout_ends_a_stream_with_an_exit(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    events = [event async for event in client.exec_stream(sandbox.id, "echo begun; sleep 1000", timeout=1)]
    assert isinstance(events[-1], ExitEvent)
    assert events[-1].end.timed_out


async def test_a_stream_that_is_closed_kills_its_command(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    sleeper = Sleeper()
    async with client.exec_stream(sandbox.id, f"{sleeper.command} & wait", timeout=300) as stream:
        await until(sleeper.runs)
    await until(lambda: not sleeper.runs())
    assert [event async for event in stream] == []


async def test_a_loop_that_is_left_kills_its_command(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    sleeper = Sleeper()
    async for _ in client.exec_stream(sandbox.id, f"{sleeper.command} & echo begun; wait", timeout=300):
        break
    await until(lambda: not sleeper.runs())


async def test_input_that_comes_while_it_runs(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    answers: List[bytes] = []

    async def lines() -> AsyncIterator[bytes]:
        yield b"one\n"
        while not answers:
            await sleep(0.01)
        yield b"two\n"

    async for event in client.exec_interactive(sandbox.id, "sed -u s/^/got-/", stdin=lines()):
        if isinstance(event, StdoutEvent):
            answers.append(event.data)
    assert b"".join(answers) == b"got-one\ngot-two\n"


async def test_input_that_fails_is_the_error(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"one\n"
        raise LookupError("no more")

    sleeper = Sleeper()
    with pytest.raises(LookupError, match="no more"):
        [event async for event in client.exec_interactive(sandbox.id, sleeper.command, stdin=broken(), timeout=300)]
    await until(lambda: not sleeper.runs())


async def test_a_command_ends_before_its_input(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"more\n"
            await sleep(0.01)

    events = [event async for event in client.exec_interactive(sandbox.id, "head -n 1", stdin=endless())]
    assert events[0] == StdoutEvent(b"more\n")
    assert isinstance(events[-1], ExitEvent)


async def test_input_is_sent_piece_by_piece(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    command = client._open_command(sandbox.id, ["sed", "-u", "s/^/got-/"], env={"A": "b"}, workdir="src")
    await command.send(b"one\n")
    assert await command.__anext__() == StdoutEvent(b"got-one\n")
    await command.send(b"two\n")
    await command.end()
    rest = [event async for event in command]
    assert rest[0] == StdoutEvent(b"got-two\n")
    assert isinstance(rest[-1], ExitEvent)
    await command.send(b"nobody reads this\n")
    await command.close()


async def test_large_input_goes_all_the_way(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    result = await client.exec(sandbox.id, "wc -c", b"x" * 3_000_000)
    assert result.stdout.strip() == "3000000"
    command = client._open_command(sandbox.id, "wc -c")
    await command.send(b"x" * 3_000_000)
    await command.end()
    assert (await command.__anext__()) == StdoutEvent(b"3000000\n")


async def test_a_server_that_dies_is_told_within_a_second() -> None:
    with Server.start() as server:
        async with AsyncSandboxClient(server.endpoint) as client:
            codebase = await client.create_codebase("project", "tester")
            sandbox = await client.start_sandbox((await client.create_sandbox(codebase.id, preset="full-access")).id)
            stream = client.exec_stream(sandbox.id, "echo begun; sleep 1000", timeout=300)
            assert await stream.__anext__() == StdoutEvent(b"begun\n")
            server.kill()
            died_at = time.monotonic()
            with pytest.raises(ConnectionError) as raised:
                await stream.__anext__()
            assert time.monotonic() - died_at < 1
            assert (raised.value.code, raised.value.retryable) == ("CONNECTION_FAILED", True)
            with pytest.raises(ConnectionError, match="nothing listens at"):
                await client.get_sandbox(sandbox.id)


# async only
async def test_a_server_that_dies_fails_a_command_that_is_waited_for() -> None:
    with Server.start() as server:
        async with AsyncSandboxClient(server.endpoint) as client:
            codebase = await client.create_codebase("project", "tester")
            sandbox = await client.start_sandbox((await client.create_sandbox(codebase.id, preset="full-access")).id)
            sleeper = Sleeper()
            waiting = asyncio.create_task(client.exec(sandbox.id, sleeper.command, timeout=300))
            await until(sleeper.runs)
            server.kill()
            died_at = time.monotonic()
            with pytest.raises(ConnectionError):
                await waiting
            assert time.monotonic() - died_at < 1


async def test_cancelling_a_task_kills_its_command(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    sleeper = Sleeper()
    task = asyncio.create_task(client.exec(sandbox.id, sleeper.command, timeout=300))
    await until(sleeper.runs)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not sleeper.runs())


async def test_cancelling_a_loop_kills_its_command(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    sleeper = Sleeper()

    async def follow() -> List[CommandEvent]:
        return [event async for event in client.exec_stream(sandbox.id, sleeper.command, timeout=300)]

    task = asyncio.create_task(follow())
    await until(sleeper.runs)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not sleeper.runs())


async def test_closing_the_client_fails_what_runs(server: Server, sandbox: SandboxInfo) -> None:
    first, second = Sleeper(), Sleeper()
    client = AsyncSandboxClient(server.endpoint)
    running = asyncio.create_task(client.exec(sandbox.id, first.command, timeout=300))
    reading = asyncio.create_task(client.exec_stream(sandbox.id, second.command, timeout=300).__anext__())
    await until(lambda: first.runs() and second.runs())
    await client.close()
    for task in (running, reading):
        with pytest.raises(ConnectionError, match="the client is closed"):
            await task
    with pytest.raises(ConnectionError, match="the client is closed"):
        await client.get_server_info()


# end async only


async def until(holds: Callable[[], bool]) -> None:
    """Waits for something that is about to happen."""
    given_up_at = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < given_up_at, "it does not happen"
        await sleep(0.05)

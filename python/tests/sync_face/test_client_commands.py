# Generated from tests/async_face/test_client_commands.py by scripts/generate_sync.py: change it there.
"""Commands, call by call, against a real server."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Callable, Iterator, List

import pytest

from agentfense import (
    CommandExecutionError,
    CommandTimeoutError,
    ConnectionError,
    ExitEvent,
    InvalidConfigurationError,
    SandboxClient,
    StderrEvent,
    StdoutEvent,
)
from agentfense._face.sync_face import sleep
from agentfense.types import SandboxInfo
from tests.server import Server
from tests.support.processes import Sleeper

PATIENCE_SECONDS = 20


def test_a_command_has_a_result(client: SandboxClient, sandbox: SandboxInfo) -> None:
    result = client.exec(sandbox.id, "echo out; echo err >&2; exit 3")
    assert (result.stdout, result.stderr, result.exit_code, result.signal) == ("out\n", "err\n", 3, None)
    assert (result.success, result.timed_out, result.truncated) == (False, False, False)
    assert (result.command, result.output) == ("echo out; echo err >&2; exit 3", "out\n\nerr\n")
    assert result.duration > timedelta(0)
    killed = client.exec(sandbox.id, "kill -TERM $$")
    assert (killed.exit_code, killed.signal) == (143, "SIGTERM")


def test_a_program_gets_its_arguments_as_they_are(client: SandboxClient, sandbox: SandboxInfo) -> None:
    result = client.exec(sandbox.id, ["printf", "%s|", "a b", "$HOME", "'"])
    assert result.stdout == "a b|$HOME|'|"
    assert result.command == "printf '%s|' 'a b' '$HOME' ''\"'\"''"
    for nonsense in ([], [1], 5):
        with pytest.raises((InvalidConfigurationError, TypeError)):
            client.exec(sandbox.id, nonsense)  # type: ignore[arg-type]


def test_input_environment_and_directory(client: SandboxClient, sandbox: SandboxInfo) -> None:
    result = client.exec(sandbox.id, "cat; echo $NAME; pwd", "given ", {"NAME": "value"}, "src")
    assert result.stdout == "given value\n/workspace/src\n"
    assert client.exec(sandbox.id, "cat", b"\x00\xff").stdout_bytes == b"\x00\xff"
    with pytest.raises(InvalidConfigurationError) as raised:
        client.exec(sandbox.id, "true", workdir="nowhere")
    assert raised.value.code == "WORKDIR_UNUSABLE"
    assert client.exec(sandbox.id, ["no-such-program"]).exit_code == 127


def test_output_that_is_no_text(client: SandboxClient, sandbox: SandboxInfo) -> None:
    result = client.exec(sandbox.id, r"printf 'a\377b'")
    assert (result.stdout, result.stdout_bytes) == ("a�b", b"a\xffb")


def test_a_timeout_is_a_result(client: SandboxClient, sandbox: SandboxInfo) -> None:
    result = client.exec(sandbox.id, "echo begun; sleep 1000", timeout=1)
    assert (result.timed_out, result.success, result.stdout) == (True, False, "begun\n")
    assert result.command == "echo begun; sleep 1000"
    for nonsense in (0, -1.0, timedelta(0), float("inf"), float("nan")):
        with pytest.raises(InvalidConfigurationError, match="timeout must be a number of seconds above 0"):
            client.exec(sandbox.id, "true", timeout=nonsense)


def test_check_raises_what_was_no_success(client: SandboxClient, sandbox: SandboxInfo) -> None:
    assert client.exec(sandbox.id, "true", check=True).success
    with pytest.raises(CommandExecutionError) as failed:
        client.exec(sandbox.id, "echo out; echo err >&2; exit 4", check=True)
    error = failed.value
    assert (error.code, error.exit_code, error.stdout, error.stderr) == ("COMMAND_FAILED", 4, "out\n", "err\n")
    assert error.command == "echo out; echo err >&2; exit 4"
    with pytest.raises(CommandTimeoutError) as late:
        client.exec(sandbox.id, "echo begun; sleep 1000", timeout=timedelta(milliseconds=700), check=True)
    assert (late.value.code, late.value.stdout, late.value.result.timed_out) == ("COMMAND_TIMEOUT", "begun\n", True)
    assert isinstance(late.value, TimeoutError)


def test_a_stream_tells_output_then_the_end(client: SandboxClient, sandbox: SandboxInfo) -> None:
    stream = client.exec_stream(sandbox.id, "echo out; sleep 0.2; echo err >&2; exit 5")
    events = [event for event in stream]
    assert events[:2] == [StdoutEvent(b"out\n"), StderrEvent(b"err\n")]
    [end] = events[2:]
    assert isinstance(end, ExitEvent)
    assert (end.kind, end.exit_code, end.end.timed_out) == ("exit", 5, False)
    assert [event for event in stream] == []


def test_a_stream_of_twenty_megabytes(client: SandboxClient, sandbox: SandboxInfo) -> None:
    size = 0
    for event in client.exec_stream(sandbox.id, "head -c 20000000 /dev/zero | tr '\\0' x", timeout=60):
        if isinstance(event, StdoutEvent):
            assert event.data.strip(b"x") == b""
            size += len(event.data)
    assert size == 20_000_000


def test_a_timeout_ends_a_stream_with_an_exit(client: SandboxClient, sandbox: SandboxInfo) -> None:
    events = [event for event in client.exec_stream(sandbox.id, "echo begun; sleep 1000", timeout=1)]
    assert isinstance(events[-1], ExitEvent)
    assert events[-1].end.timed_out


def test_a_stream_that_is_closed_kills_its_command(client: SandboxClient, sandbox: SandboxInfo) -> None:
    sleeper = Sleeper()
    with client.exec_stream(sandbox.id, f"{sleeper.command} & wait", timeout=300) as stream:
        until(sleeper.runs)
    until(lambda: not sleeper.runs())
    assert [event for event in stream] == []


def test_a_loop_that_is_left_kills_its_command(client: SandboxClient, sandbox: SandboxInfo) -> None:
    sleeper = Sleeper()
    for _ in client.exec_stream(sandbox.id, f"{sleeper.command} & echo begun; wait", timeout=300):
        break
    until(lambda: not sleeper.runs())


def test_input_that_comes_while_it_runs(client: SandboxClient, sandbox: SandboxInfo) -> None:
    answers: List[bytes] = []

    def lines() -> Iterator[bytes]:
        yield b"one\n"
        while not answers:
            sleep(0.01)
        yield b"two\n"

    for event in client.exec_interactive(sandbox.id, "sed -u s/^/got-/", stdin=lines()):
        if isinstance(event, StdoutEvent):
            answers.append(event.data)
    assert b"".join(answers) == b"got-one\ngot-two\n"


def test_input_that_fails_is_the_error(client: SandboxClient, sandbox: SandboxInfo) -> None:
    def broken() -> Iterator[bytes]:
        yield b"one\n"
        raise LookupError("no more")

    sleeper = Sleeper()
    with pytest.raises(LookupError, match="no more"):
        [event for event in client.exec_interactive(sandbox.id, sleeper.command, stdin=broken(), timeout=300)]
    until(lambda: not sleeper.runs())


def test_a_command_ends_before_its_input(client: SandboxClient, sandbox: SandboxInfo) -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield b"more\n"
            sleep(0.01)

    events = [event for event in client.exec_interactive(sandbox.id, "head -n 1", stdin=endless())]
    assert events[0] == StdoutEvent(b"more\n")
    assert isinstance(events[-1], ExitEvent)


def test_input_is_sent_piece_by_piece(client: SandboxClient, sandbox: SandboxInfo) -> None:
    command = client._open_command(sandbox.id, ["sed", "-u", "s/^/got-/"], env={"A": "b"}, workdir="src")
    command.send(b"one\n")
    assert command.__next__() == StdoutEvent(b"got-one\n")
    command.send(b"two\n")
    command.end()
    rest = [event for event in command]
    assert rest[0] == StdoutEvent(b"got-two\n")
    assert isinstance(rest[-1], ExitEvent)
    command.send(b"nobody reads this\n")
    command.close()


def test_large_input_goes_all_the_way(client: SandboxClient, sandbox: SandboxInfo) -> None:
    result = client.exec(sandbox.id, "wc -c", b"x" * 3_000_000)
    assert result.stdout.strip() == "3000000"
    command = client._open_command(sandbox.id, "wc -c")
    command.send(b"x" * 3_000_000)
    command.end()
    assert (command.__next__()) == StdoutEvent(b"3000000\n")


def test_a_server_that_dies_is_told_within_a_second() -> None:
    with Server.start() as server:
        with SandboxClient(server.endpoint) as client:
            codebase = client.create_codebase("project", "tester")
            sandbox = client.start_sandbox(client.create_sandbox(codebase.id, preset="full-access").id)
            stream = client.exec_stream(sandbox.id, "echo begun; sleep 1000", timeout=300)
            assert stream.__next__() == StdoutEvent(b"begun\n")
            server.kill()
            died_at = time.monotonic()
            with pytest.raises(ConnectionError) as raised:
                stream.__next__()
            assert time.monotonic() - died_at < 1
            assert (raised.value.code, raised.value.retryable) == ("CONNECTION_FAILED", True)
            with pytest.raises(ConnectionError, match="nothing listens at"):
                client.get_sandbox(sandbox.id)


def until(holds: Callable[[], bool]) -> None:
    """Waits for something that is about to happen."""
    given_up_at = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < given_up_at, "it does not happen"
        sleep(0.05)

"""What becomes of a command's output on this side, whoever reads it. The call is the only thing that is not real."""

from __future__ import annotations

# async only
import asyncio

# end async only
from datetime import timedelta
from typing import Iterable, Iterator, List, Union

import pytest

from agentfense import (
    AsyncExecution,
    CommandEnd,
    CommandEvent,
    ConnectionError,
    ExecResult,
    ExitEvent,
    InvalidConfigurationError,
    SandboxError,
    StderrEvent,
    StdoutEvent,
)
from agentfense._sandbox.output import COLLECTED_BYTES
from tests.concurrency.async_face import at_once

PIECE = 64 * 1024


def out(text: str) -> CommandEvent:
    return StdoutEvent(text.encode())


def err(text: str) -> CommandEvent:
    return StderrEvent(text.encode())


def end(exit_code: int = 0) -> CommandEvent:
    return ExitEvent(CommandEnd(exit_code, duration=timedelta(seconds=5)))


class AsyncCall:
    """A call that gives these events, and counts how far it was read."""

    def __init__(self, *events: Union[CommandEvent, BaseException]) -> None:
        self.given = 0
        self.closed = False
        self._events: Iterator[Union[CommandEvent, BaseException]] = iter(events)

    async def __anext__(self) -> CommandEvent:
        if self.closed:
            raise StopAsyncIteration
        for event in self._events:
            if isinstance(event, BaseException):
                raise event
            self.given += 1
            return event
        raise StopAsyncIteration

    async def close(self) -> None:
        self.closed = True


def executing(*events: Union[CommandEvent, BaseException]) -> AsyncExecution:
    return AsyncExecution("the command", AsyncCall(*events))


def many(count: int) -> Iterable[CommandEvent]:
    return [StdoutEvent(bytes(PIECE))] * count


async def all_of(execution: AsyncExecution) -> List[CommandEvent]:
    return [event async for event in execution]


# Waiting.


async def test_wait_gives_what_was_printed_and_how_it_ended() -> None:
    assert await executing(out("one "), err("bad"), out("two"), end(3)).wait() == ExecResult(
        exit_code=3,
        duration=timedelta(seconds=5),
        command="the command",
        stdout="one two",
        stderr="bad",
        stdout_bytes=b"one two",
        stderr_bytes=b"bad",
    )


async def test_a_character_in_two_pieces_is_one_and_what_is_no_utf_8_is_replaced() -> None:
    result = await executing(StdoutEvent(b"\xc3"), StdoutEvent(b"\xbc\xff"), end()).wait()
    assert (result.stdout, result.stdout_bytes) == ("ü\ufffd", b"\xc3\xbc\xff")


async def test_wait_keeps_up_to_10_mib_of_each_output_and_says_that_there_was_more() -> None:
    result = await executing(*many(COLLECTED_BYTES // PIECE), out("lost"), err("kept"), end()).wait()
    assert (len(result.stdout_bytes), result.stderr, result.truncated) == (COLLECTED_BYTES, "kept", True)


async def test_the_result_is_the_same_however_often_it_is_asked_for_also_at_the_same_time() -> None:
    execution = executing(out("x"), end())
    one, two = await at_once([execution.wait, execution.wait])
    assert one is two
    assert await execution.wait() is one


async def test_what_the_call_fails_with_is_what_everybody_hears_who_asks() -> None:
    failure = ConnectionError("the connection is gone")
    execution = executing(out("before"), failure)
    assert await execution.__anext__() == out("before")
    for ask in (execution.__anext__, execution.wait, execution.wait):
        with pytest.raises(ConnectionError) as raised:
            await ask()
        assert raised.value is failure


async def test_output_that_ends_without_an_exit_is_a_lost_connection() -> None:
    with pytest.raises(ConnectionError, match="did not say how the command ended: the command"):
        await executing(out("x")).wait()


# Loops.


async def test_a_loop_has_both_outputs_in_the_order_they_came_then_the_exit() -> None:
    execution = executing(out("1"), err("2"), out("3"), end())
    assert await all_of(execution) == [out("1"), err("2"), out("3"), end()]
    assert await all_of(execution) == []
    result = await execution.wait()
    assert (result.stdout, result.stderr, result.exit_code) == ("", "", 0)


async def test_nothing_is_read_before_somebody_asks() -> None:
    call = AsyncCall(*many(3), end())
    execution = AsyncExecution("the command", call)
    assert call.given == 0
    await execution.__anext__()
    assert call.given == 1


async def test_a_loop_that_is_left_can_be_gone_on_with_and_wait_has_the_rest() -> None:
    execution = executing(out("1"), out("2"), out("3"), err("4"), end())
    async for event in execution:
        assert event == out("1")
        break
    async for event in execution:
        assert event == out("2")
        break
    result = await execution.wait()
    assert (result.stdout, result.stderr) == ("3", "4")
    assert await all_of(execution) == [end()]


# Callbacks.


async def test_callbacks_hear_whole_characters_and_the_result_has_them_too() -> None:
    heard: List[str] = []
    text = "grün".encode()
    call = AsyncCall(StdoutEvent(text[:3]), StdoutEvent(text[3:]), err("bad"), StdoutEvent(b"\xc3"), end())
    execution = AsyncExecution(
        "the command", call, on_stdout=heard.append, on_stderr=lambda piece: heard.append(f"! {piece}")
    )
    result = await execution.wait()
    assert (result.stdout, result.stderr) == ("grün\ufffd", "bad")
    assert heard == ["gr", "ün", "! bad", "\ufffd"]


async def test_what_a_callback_hears_no_loop_sees() -> None:
    heard: List[str] = []
    execution = AsyncExecution("the command", AsyncCall(out("1"), err("2"), end()), on_stdout=heard.append)
    assert await all_of(execution) == [err("2"), end()]
    assert (heard, (await execution.wait()).stdout) == (["1"], "1")


async def test_a_callback_that_raises_ends_the_command_and_is_what_wait_says() -> None:
    call = AsyncCall(out("x"), end())
    failure = RuntimeError("cannot hear")

    def deaf(text: str) -> None:
        raise failure

    execution = AsyncExecution("the command", call, on_stdout=deaf)
    for _ in range(2):
        with pytest.raises(RuntimeError) as raised:
            await execution.wait()
        assert raised.value is failure
    assert call.closed


# async only
async def test_a_callback_may_be_a_coroutine_function_which_is_waited_for() -> None:
    heard: List[str] = []

    async def listen(text: str) -> None:
        await asyncio.sleep(0)
        heard.append(text)

    await AsyncExecution("the command", AsyncCall(out("1"), out("2"), end()), on_stdout=listen).wait()
    assert heard == ["1", "2"]


# end async only
# The end.


async def test_being_killed_is_a_result_with_what_there_was() -> None:
    execution = executing(out("so far"), out("unread"), end())
    await execution.__anext__()
    await execution.kill()
    await execution.kill()
    result = await execution.wait()
    assert (result.exit_code, result.signal, result.success, result.stdout) == (137, "SIGKILL", False, "")
    assert [event.kind for event in await all_of(execution)] == ["exit"]


async def test_after_the_end_killing_changes_nothing() -> None:
    execution = executing(end(4))
    await execution.wait()
    async with execution:
        await execution.kill()
    assert (await execution.wait()).exit_code == 4


async def test_leaving_the_block_kills_also_by_an_exception_which_is_what_is_heard() -> None:
    call = AsyncCall(out("x"))
    with pytest.raises(ZeroDivisionError):
        async with AsyncExecution("the command", call):
            raise ZeroDivisionError
    assert call.closed


async def test_whoever_is_interrupted_while_reading_ends_the_command() -> None:
    call = AsyncCall(out("x"), KeyboardInterrupt())
    execution = AsyncExecution("the command", call)
    with pytest.raises(KeyboardInterrupt):
        await execution.wait()
    assert call.closed
    assert (await execution.wait()).exit_code == 137


# Input.


class AsyncInput:
    """What a command was sent."""

    def __init__(self) -> None:
        self.sent: List[bytes] = []

    async def send(self, data: bytes) -> None:
        self.sent.append(data)

    async def end(self) -> None:
        self.sent.append(b"")


async def test_input_is_sent_as_it_is_up_to_its_end_and_nothing_after() -> None:
    stdin = AsyncInput()
    execution = AsyncExecution("cat", AsyncCall(end()), stdin=stdin)
    await execution.send_stdin("grün ")
    await execution.send_stdin(b"\x00\xff")
    await execution.end_stdin()
    await execution.end_stdin()
    assert stdin.sent == ["grün ".encode(), b"\x00\xff", b""]
    with pytest.raises(InvalidConfigurationError, match="nothing can be sent after the end of the input"):
        await execution.send_stdin("x")


async def test_a_command_that_is_over_takes_no_input_and_one_with_given_input_never_does() -> None:
    stdin = AsyncInput()
    execution = AsyncExecution("cat", AsyncCall(end()), stdin=stdin)
    await execution.wait()
    with pytest.raises(SandboxError, match="the command is over") as raised:
        await execution.send_stdin("late")
    assert (raised.value.code, stdin.sent) == ("COMMAND_FAILED", [])
    with pytest.raises(InvalidConfigurationError, match="no more input than it was started with"):
        await executing(end()).send_stdin("x")

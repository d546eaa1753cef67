# Generated from tests/async_face/test_execution_reading.py by scripts/generate_sync.py: change it there.
"""What becomes of a command's output on this side, whoever reads it. The call is the only thing that is not real."""

from __future__ import annotations

from datetime import timedelta
from typing import Iterable, Iterator, List, Union

import pytest

from agentfense import (
    CommandEnd,
    CommandEvent,
    ConnectionError,
    ExecResult,
    Execution,
    ExitEvent,
    InvalidConfigurationError,
    SandboxError,
    StderrEvent,
    StdoutEvent,
)
from agentfense._sandbox.output import COLLECTED_BYTES
from tests.concurrency.sync_face import at_once

PIECE = 64 * 1024


def out(text: str) -> CommandEvent:
    return StdoutEvent(text.encode())


def err(text: str) -> CommandEvent:
    return StderrEvent(text.encode())


def end(exit_code: int = 0) -> CommandEvent:
    return ExitEvent(CommandEnd(exit_code, duration=timedelta(seconds=5)))


class Call:
    """A call that gives these events, and counts how far it was read."""

    def __init__(self, *events: Union[CommandEvent, BaseException]) -> None:
        self.given = 0
        self.closed = False
        self._events: Iterator[Union[CommandEvent, BaseException]] = iter(events)

    def __next__(self) -> CommandEvent:
        if self.closed:
            raise StopIteration
        for event in self._events:
            if isinstance(event, BaseException):
                raise event
            self.given += 1
            return event
        raise StopIteration

    def close(self) -> None:
        self.closed = True


def executing(*events: Union[CommandEvent, BaseException]) -> Execution:
    return Execution("the command", Call(*events))


def many(count: int) -> Iterable[CommandEvent]:
    return [StdoutEvent(bytes(PIECE))] * count


def all_of(execution: Execution) -> List[CommandEvent]:
    return [event for event in execution]


# Waiting.


def test_wait_gives_what_was_printed_and_how_it_ended() -> None:
    assert executing(out("one "), err("bad"), out("two"), end(3)).wait() == ExecResult(
        exit_code=3,
        duration=timedelta(seconds=5),
        command="the command",
        stdout="one two",
        stderr="bad",
        stdout_bytes=b"one two",
        stderr_bytes=b"bad",
    )


def test_a_character_in_two_pieces_is_one_and_what_is_no_utf_8_is_replaced() -> None:
    result = executing(StdoutEvent(b"\xc3"), StdoutEvent(b"\xbc\xff"), end()).wait()
    assert (result.stdout, result.stdout_bytes) == ("ü\ufffd", b"\xc3\xbc\xff")


def test_wait_keeps_up_to_10_mib_of_each_output_and_says_that_there_was_more() -> None:
    result = executing(*many(COLLECTED_BYTES // PIECE), out("lost"), err("kept"), end()).wait()
    assert (len(result.stdout_bytes), result.stderr, result.truncated) == (COLLECTED_BYTES, "kept", True)


def test_the_result_is_the_same_however_often_it_is_asked_for_also_at_the_same_time() -> None:
    execution = executing(out("x"), end())
    one, two = at_once([execution.wait, execution.wait])
    assert one is two
    assert execution.wait() is one


def test_what_the_call_fails_with_is_what_everybody_hears_who_asks() -> None:
    failure = ConnectionError("the connection is gone")
    execution = executing(out("before"), failure)
    assert execution.__next__() == out("before")
    for ask in (execution.__next__, execution.wait, execution.wait):
        with pytest.raises(ConnectionError) as raised:
            ask()
        assert raised.value is failure


def test_output_that_ends_without_an_exit_is_a_lost_connection() -> None:
    with pytest.raises(ConnectionError, match="did not say how the command ended: the command"):
        executing(out("x")).wait()


# Loops.


def test_a_loop_has_both_outputs_in_the_order_they_came_then_the_exit() -> None:
    execution = executing(out("1"), err("2"), out("3"), end())
    assert all_of(execution) == [out("1"), err("2"), out("3"), end()]
    assert all_of(execution) == []
    result = execution.wait()
    assert (result.stdout, result.stderr, result.exit_code) == ("", "", 0)


def test_nothing_is_read_before_somebody_asks() -> None:
    call = Call(*many(3), end())
    execution = Execution("the command", call)
    assert call.given == 0
    execution.__next__()
    assert call.given == 1


def test_a_loop_that_is_left_can_be_gone_on_with_and_wait_has_the_rest() -> None:
    execution = executing(out("1"), out("2"), out("3"), err("4"), end())
    for event in execution:
        assert event == out("1")
        break
    for event in execution:
        assert event == out("2")
        break
    result = execution.wait()
    assert (result.stdout, result.stderr) == ("3", "4")
    assert all_of(execution) == [end()]


# Callbacks.


def test_callbacks_hear_whole_characters_and_the_result_has_them_too() -> None:
    heard: List[str] = []
    text = "grün".encode()
    call = Call(StdoutEvent(text[:3]), StdoutEvent(text[3:]), err("bad"), StdoutEvent(b"\xc3"), end())
    execution = Execution(
        "the command", call, on_stdout=heard.append, on_stderr=lambda piece: heard.append(f"! {piece}")
    )
    result = execution.wait()
    assert (result.stdout, result.stderr) == ("grün\ufffd", "bad")
    assert heard == ["gr", "ün", "! bad", "\ufffd"]


def test_what_a_callback_hears_no_loop_sees() -> None:
    heard: List[str] = []
    execution = Execution("the command", Call(out("1"), err("2"), end()), on_stdout=heard.append)
    assert all_of(execution) == [err("2"), end()]
    assert (heard, execution.wait().stdout) == (["1"], "1")


def test_a_callback_that_raises_ends_the_command_and_is_what_wait_says() -> None:
    call = Call(out("x"), end())
    failure = RuntimeError("cannot hear")

    def deaf(text: str) -> None:
        raise failure

    execution = Execution("the command", call, on_stdout=deaf)
    for _ in range(2):
        with pytest.raises(RuntimeError) as raised:
            execution.wait()
        assert raised.value is failure
    assert call.closed


# The end.


def test_being_killed_is_a_result_with_what_there_was() -> None:
    execution = executing(out("so far"), out("unread"), end())
    execution.__next__()
    execution.kill()
    execution.kill()
    result = execution.wait()
    assert (result.exit_code, result.signal, result.success, result.stdout) == (137, "SIGKILL", False, "")
    assert [event.kind for event in all_of(execution)] == ["exit"]


def test_after_the_end_killing_changes_nothing() -> None:
    execution = executing(end(4))
    execution.wait()
    with execution:
        execution.kill()
    assert execution.wait().exit_code == 4


def test_leaving_the_block_kills_also_by_an_exception_which_is_what_is_heard() -> None:
    call = Call(out("x"))
    with pytest.raises(ZeroDivisionError):
        with Execution("the command", call):
            raise ZeroDivisionError
    assert call.closed


def test_whoever_is_interrupted_while_reading_ends_the_command() -> None:
    call = Call(out("x"), KeyboardInterrupt())
    execution = Execution("the command", call)
    with pytest.raises(KeyboardInterrupt):
        execution.wait()
    assert call.closed
    assert execution.wait().exit_code == 137


# Input.


class Input:
    """What a command was sent."""

    def __init__(self) -> None:
        self.sent: List[bytes] = []

    def send(self, data: bytes) -> None:
        self.sent.append(data)

    def end(self) -> None:
        self.sent.append(b"")


def test_input_is_sent_as_it_is_up_to_its_end_and_nothing_after() -> None:
    stdin = Input()
    execution = Execution("cat", Call(end()), stdin=stdin)
    execution.send_stdin("grün ")
    execution.send_stdin(b"\x00\xff")
    execution.end_stdin()
    execution.end_stdin()
    assert stdin.sent == ["grün ".encode(), b"\x00\xff", b""]
    with pytest.raises(InvalidConfigurationError, match="nothing can be sent after the end of the input"):
        execution.send_stdin("x")


def test_a_command_that_is_over_takes_no_input_and_one_with_given_input_never_does() -> None:
    stdin = Input()
    execution = Execution("cat", Call(end()), stdin=stdin)
    execution.wait()
    with pytest.raises(SandboxError, match="the command is over") as raised:
        execution.send_stdin("late")
    assert (raised.value.code, stdin.sent) == ("COMMAND_FAILED", [])
    with pytest.raises(InvalidConfigurationError, match="no more input than it was started with"):
        executing(end()).send_stdin("x")

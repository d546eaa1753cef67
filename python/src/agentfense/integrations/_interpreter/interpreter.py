"""A Python that runs in a sandbox, as this process sees it.

Whatever comes from there may be made up by the code that runs there. It is read as JSON, up to a size, and nothing else
is done with it.
"""

from __future__ import annotations

import importlib.resources
import json
import secrets
from dataclasses import dataclass
from threading import Timer
from typing import Any, Mapping, Optional

from agentfense import Sandbox
from agentfense._tools.bounds import keep_ends, repaired

_LARGEST_ANSWER_BYTES = 16 * 1024 * 1024
_LONGEST_NUMBER = 4000
# What the worker adds to logs that it cut.
_NOTE_CHARACTERS = 100
# The worker ends code that takes too long; one that does not get it done in this time is ended itself.
_GRACE_SECONDS = 10.0
_START_SECONDS = 60.0
# Without the directory it starts in, where a project may have modules of any name; the worker puts it back.
_START = "import sys; sys.path.pop(0); exec(compile(sys.argv.pop(1), '<worker>', 'exec'), {'__name__': '__main__'})"
_NO_ANSWER = "the interpreter gave an answer that is none, and was ended"


@dataclass(frozen=True)
class Answer:
    """What became of a request."""

    #: What was printed.
    logs: str
    #: JSON.
    value: Any
    #: The value is the final answer.
    is_final: bool
    #: What went wrong, or None.
    error: Optional[str]


class InterpreterEnded(Exception):
    """It is no more, and its variables are gone."""


class Interpreter:
    """A Python that runs in a sandbox and keeps its variables from one request to the next."""

    def __init__(self, sandbox: Sandbox, python: str, max_output: int) -> None:
        """Starts it. `python` is the name of the program there, `max_output` the characters kept of what is printed."""
        token = secrets.token_hex(16)
        worker = importlib.resources.files(__package__).joinpath("worker.py").read_text(encoding="utf-8")
        argv = [python, "-u", "-c", _START, worker, token, str(max_output)]
        self._token = token.encode()
        self._max_output = max_output
        self._unread = b""
        self._is_late = False
        self._terminal = sandbox.terminal(argv=argv, env={"PYTHONIOENCODING": "utf-8"})
        self._within(_START_SECONDS, None)

    def ask(self, request: Mapping[str, Any], seconds: Optional[float]) -> Answer:
        """Has it do something, and ends it when that fails in any way: nobody knows then what it answers next."""
        answer = self._sound(self._within(None if seconds is None else seconds + _GRACE_SECONDS, request))
        if answer is None:
            self.close()
            raise InterpreterEnded(_NO_ANSWER)
        return answer

    def close(self) -> None:
        """Ends it with all that it has started."""
        self._terminal.kill()

    def _within(self, seconds: Optional[float], request: Optional[Mapping[str, Any]]) -> object:
        timer = None if seconds is None else Timer(seconds, self._end_late)
        try:
            if timer is not None:
                timer.daemon = True
                timer.start()
            if request is not None:
                self._terminal.write(json.dumps(request) + "\n")
            return self._read()
        except BaseException:
            self.close()
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def _end_late(self) -> None:
        self._is_late = True
        self.close()

    def _read(self) -> object:
        """The next line that has the token in it: others are none of the worker's."""
        while True:
            _, is_answer, text = self._line().rpartition(self._token)
            if is_answer:
                try:
                    return _repaired(json.loads(text, parse_int=_number))
                except (ValueError, RecursionError):
                    raise InterpreterEnded(_NO_ANSWER) from None

    def _line(self) -> bytes:
        line = bytearray()
        piece = self._unread
        while b"\n" not in piece:
            line += piece
            if len(line) > _LARGEST_ANSWER_BYTES:
                raise InterpreterEnded("the interpreter gave an answer that is too large, and was ended")
            try:
                piece = next(self._terminal)
            except StopIteration:
                raise InterpreterEnded(self._ending(bytes(line))) from None
        end, _, self._unread = piece.partition(b"\n")
        return bytes(line + end)

    def _ending(self, unfinished: bytes) -> str:
        if self._is_late:
            return "the interpreter did not answer in time, and was ended"
        last_words = unfinished[-1000:].decode("utf-8", "replace").strip()
        return f"the interpreter ended with exit code {self._terminal.exit_code}{last_words and ': '}{last_words}"

    def _sound(self, answer: object) -> Optional[Answer]:
        """An answer that is one; else None."""
        fields: Mapping[str, Any] = answer if isinstance(answer, dict) else {}
        logs, is_final, error = fields.get("logs"), fields.get("is_final", False), fields.get("error")
        if not (isinstance(logs, str) and isinstance(is_final, bool) and isinstance(error, (str, type(None)))):
            return None
        limit = self._max_output + _NOTE_CHARACTERS
        return Answer(keep_ends(logs, limit), fields.get("value"), is_final, error and keep_ends(error, limit))


def _number(digits: str) -> int:
    """Reading a number takes the square of its length, until Python 3.11 put an end to it."""
    if len(digits) > _LONGEST_NUMBER:
        raise ValueError("too long")
    return int(digits)


def _repaired(value: Any) -> Any:
    """The same, in text that can be sent to a model."""
    if isinstance(value, str):
        return repaired(value)
    if isinstance(value, list):
        return [_repaired(item) for item in value]
    if isinstance(value, dict):
        return {repaired(key): _repaired(item) for key, item in value.items()}
    return value

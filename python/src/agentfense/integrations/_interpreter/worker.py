"""The program that runs code inside a sandbox. Only its text leaves this package: nothing here imports it.

It gets requests and gives answers through its terminal, each a line of JSON. An answer has a token in front that it was
started with, for somebody else may write to the terminal too; an empty answer says that it is ready.

    {"do": "run", "code": "1 + 1", "name": "<step 1>", "seconds": 60}      seconds: null is for ever
    {"do": "define", "code": "class …", "name": "<tools>", "seconds": 60}  the same, and takes final_answer from there
    {"do": "set", "variables": {"x": 1}}
    {"do": "install", "packages": ["numpy"]}

    {"logs": "what was printed", "value": 2, "is_final": false, "error": null}

The value of an answer is plain JSON, of whatever the code ended with.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import json
import linecache
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
import tty
import types
from typing import Any, BinaryIO, Callable, Dict, List, Optional, Tuple

LARGEST_ANSWER = 8 * 1024 * 1024


class FinalAnswer(BaseException):
    """Ends the code: what `final_answer` was called with."""


class TimeIsUp(BaseException):
    """Ends the code: it took too long."""


def main(token: str, max_logs: int) -> None:
    requests, answers = take_terminal()
    logs = Logs(max_logs)
    python = Python()
    answer(answers, token, {})
    for line in requests:
        given = json.loads(line)
        reply = python.reply(given)
        reply["logs"] = logs.take()
        answer(answers, token, reply)


def take_terminal() -> Tuple[BinaryIO, BinaryIO]:
    """Its two directions, byte by byte and without an echo. To the code it looks as if there were no terminal."""
    tty.setraw(0)
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    return requests, answers


def answer(answers: BinaryIO, token: str, reply: Dict[str, Any]) -> None:
    text = json.dumps(reply)
    if len(text) > LARGEST_ANSWER:
        error = "the value is too large to be handed over: write it to a file"
        text = json.dumps({"logs": reply["logs"], "error": error})
    answers.write((token + text + "\n").encode())
    answers.flush()


class Python:
    """The module that all code runs in."""

    def __init__(self) -> None:
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        sys.argv = [""]
        sys.path.insert(0, "")
        self.names: Dict[str, Any] = vars(module)
        self.names["final_answer"] = ending_with(lambda value: value)
        self.packages = ""
        self.deeds: Dict[str, Callable[[Dict[str, Any]], Any]] = {
            "run": self.run,
            "define": self.define,
            "set": lambda given: self.names.update(given["variables"]),
            "install": self.install,
        }

    def reply(self, given: Dict[str, Any]) -> Dict[str, Any]:
        try:
            value = self.deeds[given["do"]](given)
            return {"value": shown(value), "is_final": False, "error": None}
        except FinalAnswer as final:
            return {"value": json.loads(final.args[0]), "is_final": True, "error": None}
        except TimeIsUp:
            # It may have come when the block was over, and before it was called off.
            signal.setitimer(signal.ITIMER_REAL, 0)
            return {"error": f"its time was up after {given['seconds']:g} seconds"}
        except BaseException as error:
            return {"error": told(error, given.get("name", ""))}

    def run(self, given: Dict[str, Any]) -> Any:
        """The value of the last line, if that is an expression."""
        code, name = given["code"], given["name"]
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        body = ast.parse(code, name)
        last: Optional[ast.Expression] = None
        if body.body and isinstance(body.body[-1], ast.Expr):
            statement = body.body.pop()
            assert isinstance(statement, ast.Expr)
            last = ast.Expression(statement.value)
        with time_limit(given["seconds"]):
            exec(compile(body, name, "exec"), self.names)
            return None if last is None else eval(compile(last, name, "eval"), self.names)

    def define(self, given: Dict[str, Any]) -> None:
        self.run(given)
        self.names["final_answer"] = ending_with(self.names["final_answer"])

    def install(self, given: Dict[str, Any]) -> None:
        """What cannot be imported, into a directory of its own: the rest of the system is not to be written."""
        missing = [package for package in given["packages"] if not is_there(package)]
        if not missing:
            return
        if not self.packages:
            self.packages = tempfile.mkdtemp(prefix="packages-")
            sys.path.append(self.packages)
        options = ["--quiet", "--disable-pip-version-check", "--no-input", "--target", self.packages]
        subprocess.run([sys.executable, "-m", "pip", "install", *options, "--", *missing], check=True)
        importlib.invalidate_caches()


class time_limit:
    """Ends a block that takes too long; one that resists is ended again, every second."""

    def __init__(self, seconds: Optional[float]) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        if self.seconds is not None:
            signal.signal(signal.SIGALRM, time_is_up)
            signal.setitimer(signal.ITIMER_REAL, self.seconds, 1)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)


def time_is_up(*_: object) -> None:
    raise TimeIsUp


def ending_with(tool: Callable[..., Any]) -> Callable[..., Any]:
    def final_answer(*args: Any, **kwargs: Any) -> None:
        raise FinalAnswer(json.dumps(plain(tool(*args, **kwargs))))

    return final_answer


def plain(value: Any) -> Any:
    """The same in what JSON has words for."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key if isinstance(key, str) else repr(key): plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):  # Of numpy.
        return plain(value.tolist())
    hint = "convert it to text, numbers, lists or dictionaries first"
    raise TypeError(f"a {type(value).__name__} cannot be handed over: {hint}")


def shown(value: Any) -> Any:
    try:
        return json.loads(json.dumps(plain(value)))
    except Exception:
        return repr(value)


def told(error: BaseException, name: str) -> str:
    """The error as Python prints it, without the frames of this program."""
    frames = traceback.extract_tb(error.__traceback__)
    start = next((index for index, frame in enumerate(frames) if frame.filename == name), len(frames))
    theirs = [frame for frame in frames[start:] if frame.filename != "<worker>"]
    head = ["Traceback (most recent call last):\n", *traceback.format_list(theirs)] if theirs else []
    return "".join([*head, *traceback.format_exception_only(type(error), error)]).rstrip()


def is_there(package: str) -> bool:
    """Whether it can be imported, for a package that is named as its module is."""
    name = re.split(r"[^\w]", package)[0]
    return package == "*" or (name.isidentifier() and importlib.util.find_spec(name) is not None)


class Logs:
    """What the code and its children print, from both outputs; the two ends of it if it is too much."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        # Written behind what was printed: when it is read, all of that was.
        self.mark = os.urandom(16)
        self.source, self.target = os.pipe()
        os.dup2(self.target, 1)
        os.dup2(self.target, 2)
        self.finished: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self.collect, daemon=True).start()

    def take(self) -> str:
        for stream in (sys.stdout, sys.stderr):
            # The code may have put anything in its place.
            with contextlib.suppress(Exception):
                stream.flush()
        os.write(self.target, self.mark)
        return self.finished.get()

    def collect(self) -> None:
        kept: List[bytes] = [b"", b""]
        size, pending = 0, b""
        while True:
            pending += os.read(self.source, 65536)
            end = pending.find(self.mark)
            settled = max(0, len(pending) - len(self.mark)) if end == -1 else end
            size += settled
            self.keep(kept, pending[:settled])
            pending = pending[settled:]
            if end != -1:
                self.finished.put(self.text(kept, size))
                kept, size, pending = [b"", b""], 0, pending[len(self.mark) :]

    def keep(self, kept: List[bytes], data: bytes) -> None:
        room = self.limit // 2 - len(kept[0])
        kept[0] += data[:room]
        kept[1] = (kept[1] + data[room:])[-(self.limit // 2) :]

    def text(self, kept: List[bytes], size: int) -> str:
        lost = size - len(kept[0]) - len(kept[1])
        note = f"\n[{lost} bytes left out]\n".encode() if lost else b""
        return (kept[0] + note + kept[1]).decode("utf-8", "replace")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

"""`agentfense serve --private` as a process of ours. It ends when its standard input does."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from contextlib import suppress
from typing import IO, List, Optional, Sequence

from agentfense._server.program import INSTALL_HINT, has_found_nothing, no_program
from agentfense._server.socket_peer import Stranger, answers, require_own_socket
from agentfense._server.tail import Tail
from agentfense.exceptions import ConnectionError

_START_SECONDS = 30.0
#: Longer than the server itself allows what it runs to take.
_STOP_SECONDS = 10.0
#: Between the end of a process and that of its output.
_FLUSH_SECONDS = 2.0
_ADDRESS = re.compile(r"^agentfense: gRPC on unix:(/\S+),", re.MULTILINE)


class ServerProcess:
    """A server that listens, until it is stopped or dies."""

    def __init__(self, command: Sequence[str]) -> None:
        """Starts it and waits until it listens."""
        self._command: List[str] = [*command, "serve", "--private"]
        self._process = self._spawn()
        self._stdin = _pipe(self._process.stdin)
        self._stdout = Tail(_pipe(self._process.stdout))
        self._stderr = Tail(_pipe(self._process.stderr))
        try:
            self._path = self._await_path()
        except BaseException:
            self._kill()
            raise

    @property
    def endpoint(self) -> str:
        """Where it listens, for a client."""
        return f"unix:{self._path}"

    @property
    def listens(self) -> bool:
        """Asks at its door: a process can be over long before those who started it hear of it, npx among them."""
        return answers(self._path)

    def stop(self) -> None:
        """Asks it to end, and makes it if it does not. Nothing of it is left then."""
        self._stdin.close()
        if not self._ends_within(_STOP_SECONDS):
            self._signal(signal.SIGTERM)
            if not self._ends_within(_STOP_SECONDS):
                self._signal(signal.SIGKILL)
        self._process.wait()
        self._wait_for_output()

    def forget(self) -> None:
        """In a copy of this process (fork), which must not keep the server of the original alive, nor end it."""
        self._stdin.close()
        self._stdout.forget()
        self._stderr.forget()
        # It is no child of this process: whoever waited for it would wait in vain, and be warned of it.
        self._process.returncode = 0

    def _spawn(self) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # Raw pipes: a fork may come while a thread reads, and a copied buffer's lock would never be released.
                bufsize=0,
                # Ctrl-C is for our program, which may want to say goodbye to the server.
                start_new_session=True,
            )
        except OSError as error:
            raise self._failure(f"cannot be run: {error.strerror}") from error

    def _await_path(self) -> str:
        found = self._stdout.wait_for(_ADDRESS, _START_SECONDS)
        if found is not None:
            return self._own_socket(found.group(1))
        if not self._ends_within(_FLUSH_SECONDS):
            raise self._failure("does not say where it listens", self._stderr.text)
        self._wait_for_output()
        if has_found_nothing(self._command, self._stderr.text):
            raise no_program()
        raise self._failure(_ending(self._process.returncode), self._stderr.text)

    def _own_socket(self, path: str) -> str:
        try:
            return require_own_socket(path)
        except Stranger as stranger:
            raise self._failure(f"listens at {path}, but {stranger}") from stranger

    def _failure(self, what: str, printed: str = "") -> ConnectionError:
        message = f"the private server did not start: `{shlex.join(self._command)}` {what}"
        return ConnectionError(
            f"{message}\n{printed}" if printed else message, code="CONNECTION_FAILED", hint=INSTALL_HINT
        )

    def _kill(self) -> None:
        self._stdin.close()
        self._signal(signal.SIGKILL)
        self._process.wait()
        self._wait_for_output()

    def _ends_within(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _signal(self, sign: signal.Signals) -> None:
        """To its whole group: the program may be a script or npx, with the server below it."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, sign)

    def _wait_for_output(self) -> None:
        for output in (self._stdout, self._stderr):
            output.wait_for_end(_FLUSH_SECONDS)


def _pipe(stream: Optional[IO[bytes]]) -> IO[bytes]:
    assert stream is not None
    return stream


def _ending(returncode: int) -> str:
    return f"was killed by signal {-returncode}" if returncode < 0 else f"ended with exit code {returncode}"

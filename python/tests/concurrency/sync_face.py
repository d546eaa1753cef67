"""Many calls at once, and one that is ended halfway, in threads. async_face.py has the same names for tasks."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, List, Sequence, TypeVar

T = TypeVar("T")

SANDBOXES, RUNS = 10, 20


def at_once(works: Sequence[Callable[[], T]]) -> List[T]:
    """Each in a thread of its own; their results in the same order."""
    with ThreadPoolExecutor(len(works)) as threads:
        return [future.result() for future in [threads.submit(work) for work in works]]


def interrupted(work: Callable[[], object], *, after: Callable[[], object]) -> None:
    """Does the work here, in the main thread, and presses Ctrl-C when `after` is over. It must not end otherwise."""

    def press() -> None:
        after()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    with ThreadPoolExecutor(1) as other:
        pressing = other.submit(press)
        try:
            result = work()
        except KeyboardInterrupt:
            return
        finally:
            pressing.result()
    raise AssertionError(f"it was not interrupted: {result!r}")

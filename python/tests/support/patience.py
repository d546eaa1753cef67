"""Waiting for something that has to come, and not for ever."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Callable, List

PATIENCE_SECONDS = 60


class AsyncPatience:
    """While other tasks go on."""

    @staticmethod
    async def until(condition: Callable[[], object]) -> None:
        """Returns when it is true."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < deadline, "it does not come"
            await asyncio.sleep(0.005)

    @staticmethod
    async def until_heard(heard: List[str]) -> None:
        """Returns when there was output. Whoever heard it is a task, and can be cancelled only where it waits."""
        await AsyncPatience.until(lambda: heard)


class Patience:
    """While other threads go on."""

    @staticmethod
    def until(condition: Callable[[], object]) -> None:
        """Returns when it is true."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < deadline, "it does not come"
            time.sleep(0.005)

    @staticmethod
    def until_heard(heard: List[str]) -> None:
        """Returns when there was output, and the main thread, which heard it, sleeps until there is more.

        Whoever is interrupted at the very moment in which he takes a lock may never release it (bpo-29988), and gRPC
        takes some with every message.
        """
        Patience.until(lambda: heard)
        Patience.until(_main_thread_stays_asleep)


def _main_thread_stays_asleep() -> bool:
    """Whether it slept, and was not woken between two looks."""
    before = _main_thread()
    time.sleep(0)
    return "State:\tS" in before and before == _main_thread()


def _main_thread() -> str:
    """What the kernel says of it, with the number of times that it began to sleep."""
    with open(f"/proc/self/task/{threading.main_thread().native_id}/status", encoding="utf-8") as status:
        return status.read()

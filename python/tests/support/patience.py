"""Waiting for something that has to come, and not for ever."""

from __future__ import annotations

import asyncio
import time
from typing import Callable, List

PATIENCE_SECONDS = 60
# Whoever is interrupted at the very moment in which he takes a lock may never release it (bpo-29988), and gRPC takes
# some with every message. Nobody at a keyboard is that quick.
_REACTION_SECONDS = 0.3


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
        """Returns when there was output, and whoever heard it waits for more."""
        await AsyncPatience.until(lambda: heard)
        await asyncio.sleep(_REACTION_SECONDS)


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
        """Returns when there was output, and whoever heard it waits for more."""
        Patience.until(lambda: heard)
        time.sleep(_REACTION_SECONDS)

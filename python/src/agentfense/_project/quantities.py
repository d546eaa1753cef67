"""Amounts as people write them."""

from __future__ import annotations

import math
import re
from typing import Optional

_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_MOST_BYTES = 2**53 - 1
_PERIOD_US = 100_000


def bytes_of(text: str) -> Optional[int]:
    """`512m`, `1g`, `1.5GiB` or plain bytes, in units of 1024; None for what is no size."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([kmgt]?)(?:i?b)?", text, re.IGNORECASE)
    if found is None:
        return None
    amount = float(found[1]) * _UNITS[found[2].lower()]
    return math.floor(amount) if amount <= _MOST_BYTES else None


def cpu_quota_of(text: str) -> Optional[int]:
    """`0.5` CPUs as microseconds of CPU time in each 100 ms; None below what the kernel takes, a millisecond."""
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) is None:
        return None
    quota = float(text) * _PERIOD_US
    return math.floor(quota + 0.5) if 999.5 <= quota <= 1024 * _PERIOD_US else None

"""What a set of rules may hold, and the error for a rule that is refused."""

from __future__ import annotations

import json

from agentfense.exceptions import InvalidConfigurationError

MOST_RULES = 10_000
#: UTF-16 units, as the server counts them.
LONGEST_PATTERN = 4096
#: Patterns that the braces of one pattern, and `**` glued to other text, may stand for.
MOST_ALTERNATIVES = 256
#: Characters of all patterns together, braces and glued `**` expanded.
MOST_TEXT = 1_048_576
#: Path segments of all patterns together, likewise.
MOST_SEGMENTS = 100_000
#: Beyond it the server cannot tell two priorities apart.
HIGHEST_PRIORITY = 2**53 - 1


class RuleError(InvalidConfigurationError):
    """A rule that is refused. `index` is -1 when the set as a whole is what is wrong."""

    def __init__(self, index: int, pattern: str, reason: str) -> None:
        place = "rules" if index < 0 else f"rule {index} ({json.dumps(_clip(pattern), ensure_ascii=False)})"
        super().__init__(f"{place}: {reason}")
        self.index = index
        self.pattern = _clip(pattern) if len(pattern) > LONGEST_PATTERN else pattern
        self.reason = reason


def _clip(pattern: str) -> str:
    """Error texts end in logs and in front of people: a megabyte of pattern helps neither."""
    return f"{pattern[:200]}…" if len(pattern) > 200 else pattern

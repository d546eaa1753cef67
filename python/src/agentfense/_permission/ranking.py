"""Which rule of a set decides about a path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Sequence, Tuple

from agentfense._permission.pattern import Pattern, read_pattern
from agentfense._permission.rule import MOST_SEGMENTS, MOST_TEXT, RuleError
from agentfense._permission.tokens import PatternError
from agentfense.types import PatternType, Permission, PermissionRule

_TYPE_RANK = {PatternType.FILE: 3, PatternType.DIRECTORY: 2, PatternType.GLOB: 1}
#: The stricter first.
_LEVELS = list(Permission)


@dataclass(frozen=True)
class ResolvedRule:
    """A rule and what its pattern means."""

    rule: PermissionRule
    pattern: Pattern


def resolve_rules(rules: Sequence[PermissionRule]) -> List[ResolvedRule]:
    """Reads all patterns; the first that is wrong, or one too many, is refused with a `RuleError`."""
    resolved: List[ResolvedRule] = []
    text = 0
    segments = 0
    for index, rule in enumerate(rules):
        try:
            pattern = read_pattern(rule.pattern, rule.type)
        except PatternError as error:
            raise RuleError(index, rule.pattern, str(error)) from None
        except RecursionError:
            raise RuleError(index, rule.pattern, "the pattern has braces in one another, too deep") from None
        text += sum(alternative.text_length for alternative in pattern.alternatives)
        if text > MOST_TEXT:
            raise RuleError(index, rule.pattern, f"the patterns up to here have more than {MOST_TEXT} characters")
        segments += sum(len(alternative.segments) for alternative in pattern.alternatives)
        if segments > MOST_SEGMENTS:
            raise RuleError(index, rule.pattern, f"the rules up to here have more than {MOST_SEGMENTS} path segments")
        resolved.append(ResolvedRule(rule, pattern))
    return resolved


def allows_writing(rules: Sequence[PermissionRule], path: str) -> bool:
    """Whether a sandbox with these rules may write a path ("/src/a.py"). No rule, no writing."""
    names = [name for name in path.split("/") if name != ""]
    # Of the same pattern twice at one priority, the last counts.
    last: Dict[Tuple[int, PatternType, str], ResolvedRule] = {}
    for one in resolve_rules(rules):
        last[(one.rule.priority, one.pattern.type, one.rule.pattern)] = one
    ranked = [
        (
            -one.rule.priority,
            -_TYPE_RANK[one.pattern.type],
            -alternative.specificity,
            _LEVELS.index(one.rule.permission),
        )
        for one in last.values()
        for alternative in one.pattern.alternatives
        if alternative.matches(names)
    ]
    return bool(ranked) and _LEVELS[min(ranked)[-1]] is Permission.WRITE

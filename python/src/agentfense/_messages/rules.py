"""Rules of sandboxes."""

from __future__ import annotations

from typing import Iterable, List, Optional

from agentfense._messages.words import PATTERN_TYPES, PERMISSIONS
from agentfense._permission import RuleError
from agentfense._wire.sandbox.v1 import common_pb2
from agentfense.presets import get_preset, parse_rules
from agentfense.types import PermissionRule, RuleLike

_DEFAULT_PRESET = "agent-safe"
_LARGEST_INT32 = 2**31 - 1


def rule_messages(preset: Optional[str], permissions: Optional[Iterable[RuleLike]]) -> List[common_pb2.PermissionRule]:
    """The rules that are meant, spelled out: presets are those of this process, so that registered ones work anywhere.

    ======  ===========  ====================================
    preset  permissions  the rules
    ======  ===========  ====================================
    absent  absent       those of the preset agent-safe
    given   absent       the preset's
    absent  given        exactly these; none at all hides all
    given   given        the preset's, then these
    ======  ===========  ====================================
    """
    base = _DEFAULT_PRESET if preset is None and permissions is None else preset
    rules: List[RuleLike] = [] if base is None else list(get_preset(base))
    own = parse_rules([] if permissions is None else list(permissions))
    # Once more together: some limits are those of the whole set.
    return [_rule_message(index, rule) for index, rule in enumerate(parse_rules([*rules, *own]))]


def _rule_message(index: int, rule: PermissionRule) -> common_pb2.PermissionRule:
    if abs(rule.priority) > _LARGEST_INT32:
        raise RuleError(index, rule.pattern, "its priority has more than 31 bits")
    return common_pb2.PermissionRule(
        pattern=rule.pattern,
        permission=PERMISSIONS.number(rule.permission),
        type=PATTERN_TYPES.number(rule.type),
        priority=rule.priority,
    )


def rule_of(message: common_pb2.PermissionRule) -> PermissionRule:
    """A rule of an answer."""
    is_typed = message.type != common_pb2.PATTERN_TYPE_UNSPECIFIED
    return PermissionRule(
        pattern=message.pattern,
        permission=PERMISSIONS.word(message.permission),
        type=PATTERN_TYPES.word(message.type) if is_typed else None,
        priority=message.priority,
    )

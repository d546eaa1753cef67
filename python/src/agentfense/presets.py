"""Rules that go by a name: those of the product, and what a program adds for itself."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

from agentfense._permission import HIGHEST_PRIORITY, RuleError, parse_rules
from agentfense.exceptions import InvalidConfigurationError
from agentfense.types import PermissionRule, PresetSummary, RuleLike

__all__ = [
    "PresetError",
    "RuleError",
    "extend_preset",
    "get_preset",
    "list_presets",
    "parse_rules",
    "register_preset",
]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class PresetError(InvalidConfigurationError):
    """A preset that does not exist, or a name that cannot be registered."""


@dataclass(frozen=True)
class _Preset:
    summary: PresetSummary
    rules: Tuple[PermissionRule, ...]


def get_preset(name: str) -> List[PermissionRule]:
    """The rules of a preset."""
    return list(_preset(name).rules)


def list_presets() -> List[PresetSummary]:
    """All presets, those of the product first."""
    return [preset.summary for preset in _presets.values()]


def register_preset(name: str, rules: Sequence[RuleLike], description: str = "") -> None:
    """Adds a preset for the life of the process, or changes one that was added before.

    The names of the product's own presets are taken: whoever asks for `agent-safe` gets the real one.
    """
    if _NAME.fullmatch(name) is None:
        raise PresetError("a preset's name is 1 to 64 letters, digits, dots, dashes and underscores")
    known = _presets.get(name)
    if known is not None and known.summary.built_in:
        raise PresetError(f"the preset {name} is built in and cannot be changed; register another name")
    summary = PresetSummary(name=name, description=description, built_in=False)
    _presets[name] = _Preset(summary, tuple(parse_rules(rules)))


def extend_preset(
    base: str,
    additions: Optional[Sequence[RuleLike]] = None,
    overrides: Optional[Sequence[RuleLike]] = None,
) -> List[PermissionRule]:
    """A preset's rules, changed: the additions compete with them by the usual order, the overrides win over all.

    Among each other, overrides keep the order of their own priorities.
    """
    others = get_preset(base) + parse_rules([] if additions is None else additions)
    own = parse_rules([] if overrides is None else overrides)
    top = max([0, *(rule.priority for rule in others)])
    steps = sorted({rule.priority for rule in own})
    raised = [replace(rule, priority=top + 1 + steps.index(rule.priority)) for rule in own]
    for index, rule in enumerate(raised, len(others)):
        if rule.priority > HIGHEST_PRIORITY:
            raise RuleError(index, rule.pattern, "no priority is left above those of the other rules")
    return others + raised


def _preset(name: str) -> _Preset:
    preset = _presets.get(name)
    if preset is not None:
        return preset
    shown = json.dumps(str(name)[:100], ensure_ascii=False)
    raise PresetError(f"there is no preset {shown}; known: {', '.join(_presets)}")


def _built_in() -> Dict[str, _Preset]:
    data = json.loads(Path(__file__).with_name("presets.json").read_text("utf-8"))
    return {
        name: _Preset(
            PresetSummary(name=name, description=preset["description"], built_in=True),
            tuple(parse_rules(preset["rules"])),
        )
        for name, preset in data.items()
    }


#: The presets of this process: those of the product, and what was registered since.
_presets = _built_in()

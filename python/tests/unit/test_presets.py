"""Presets, and rules that nobody has checked."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import pytest

from agentfense import presets
from agentfense._permission import allows_writing
from agentfense._permission.rule import HIGHEST_PRIORITY
from agentfense.exceptions import InvalidConfigurationError
from agentfense.presets import (
    PresetError,
    RuleError,
    extend_preset,
    get_preset,
    list_presets,
    parse_rules,
    register_preset,
)
from agentfense.types import PatternType, Permission, PermissionRule, PresetSummary

REPOSITORY = Path(__file__).parents[3]
NODE = shutil.which("node", path=str(REPOSITORY / "node_modules" / ".bin"))
NAMES = ["agent-safe", "read-only", "full-access", "development", "view-only"]
GOOD = {"pattern": "**/*", "permission": "read"}


@pytest.fixture
def _own_presets(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers goes with it."""
    monkeypatch.setattr(presets, "_presets", dict(presets._presets))


class TestBuiltInPresets:
    def test_are_those_of_the_documents_agent_safe_first(self) -> None:
        assert [preset.name for preset in list_presets() if preset.built_in] == NAMES

    def test_are_those_of_the_file_that_all_languages_read(self) -> None:
        place = REPOSITORY / "packages/permission/src/presets.json"
        for name, preset in json.loads(place.read_text("utf-8")).items():
            assert get_preset(name) == parse_rules(preset["rules"])

    def test_cannot_be_changed_by_who_gets_them(self) -> None:
        get_preset("agent-safe").clear()
        assert len(get_preset("agent-safe")) > 10

    @pytest.mark.parametrize("name", ["agent_safe", "", "__class__"])
    def test_an_unknown_one_is_refused_and_the_known_ones_are_named(self, name: str) -> None:
        for get in (get_preset, extend_preset):
            with pytest.raises(PresetError, match="known: agent-safe, read-only, full-access, development, view-only"):
                get(name)


class TestExtendPreset:
    def test_additions_follow_the_presets_rules(self) -> None:
        rules = extend_preset("agent-safe", additions=[{"pattern": "/logs/**", "permission": "write"}])
        assert rules == [*get_preset("agent-safe"), PermissionRule("/logs/**", Permission.WRITE)]
        assert allows_writing(rules, "/logs/a")
        assert not allows_writing(rules, "/logs/.env")

    def test_overrides_win_over_everything_also_over_additions_with_a_priority(self) -> None:
        rules = extend_preset(
            "agent-safe",
            [{"pattern": "/a/**", "permission": "write", "priority": 500}],
            [PermissionRule("**/*", Permission.VIEW), {"pattern": "/.env", "permission": "write", "priority": 7}],
        )
        assert [rule.priority for rule in rules[-2:]] == [501, 502]
        assert [allows_writing(rules, path) for path in ("/a/x", "/.env", "/output/x")] == [False, True, False]

    def test_nothing_changes_nothing(self) -> None:
        assert extend_preset("view-only") == get_preset("view-only")

    def test_malformed_rules_and_a_priority_nothing_can_be_above_are_refused(self) -> None:
        with pytest.raises(RuleError):
            extend_preset("read-only", [{"pattern": "", "permission": "read"}])
        with pytest.raises(RuleError, match=r"rule 2 .*no priority is left"):
            extend_preset(
                "read-only",
                [PermissionRule("/a", priority=HIGHEST_PRIORITY)],
                [PermissionRule("/a", Permission.WRITE)],
            )


@pytest.mark.usefixtures("_own_presets")
class TestRegisterPreset:
    def test_adds_a_preset_and_may_change_what_it_added(self) -> None:
        register_preset("mine", [GOOD], "all of it")
        register_preset("mine", [PermissionRule("**/*", Permission.VIEW)], "names")
        assert get_preset("mine") == [PermissionRule("**/*", Permission.VIEW)]
        assert list_presets()[-1] == PresetSummary("mine", "names", built_in=False)

    def test_never_changes_a_built_in_one(self) -> None:
        with pytest.raises(PresetError, match="built in"):
            register_preset("agent-safe", [])

    @pytest.mark.parametrize("name", ["", "a b", "../x", "-x", "x" * 65, "x\n"])
    def test_refuses_bad_names(self, name: str) -> None:
        with pytest.raises(PresetError):
            register_preset(name, [])

    def test_refuses_bad_rules_and_keeps_nothing_of_them(self) -> None:
        with pytest.raises(RuleError):
            register_preset("broken", [{"pattern": "..", "permission": "read"}])
        with pytest.raises(PresetError):
            get_preset("broken")


class TestRulesThatNobodyHasChecked:
    @pytest.mark.parametrize(
        ("value", "index", "reason"),
        [
            ({"rules": []}, -1, "list"),
            (None, -1, "list"),
            ("**/* read", -1, "list"),
            ([GOOD] * 10_001, -1, "10001 rules"),
            ([GOOD, "/a"], 1, "dict"),
            ([None], 0, "dict"),
            ([[]], 0, "dict"),
            ([{"permission": "read"}], 0, "pattern"),
            ([{"pattern": 1, "permission": "read"}], 0, "pattern"),
            ([{"pattern": "/a"}], 0, "permission"),
            ([{"pattern": "/a", "permission": "execute"}], 0, "none, view, read, write"),
            ([{"pattern": "/a", "permission": "READ"}], 0, "none, view, read, write"),
            ([{"pattern": "/a", "permission": ["read"]}], 0, "none, view, read, write"),
            ([{"pattern": "/a", "permission": "read", "type": "regex"}], 0, "type"),
            ([{"pattern": "/a", "permission": "read", "type": None}], 0, "type"),
            ([{"pattern": "/a", "permission": "read", "priority": "100"}], 0, "priority"),
            ([{"pattern": "/a", "permission": "read", "priority": None}], 0, "priority"),
            ([{"pattern": "/a", "permission": "read", "priority": 1.5}], 0, "priority"),
            ([{"pattern": "/a", "permission": "read", "priority": True}], 0, "priority"),
            ([{"pattern": "/a", "permission": "read", "priority": 2**53}], 0, "priority"),
            ([{"pattern": "/a", "permission": "read", "priorty": 1}], 0, '"priorty"'),
            ([{"pattern": "/a", "permission": "read", 5: 1}], 0, '"5"'),
            ([GOOD, PermissionRule("/a//b")], 1, "empty segment"),
            ([PermissionRule("/a", priority=2**53)], 0, "priority"),
        ],
    )
    def test_are_refused_with_index_and_reason(self, value: object, index: int, reason: str) -> None:
        with pytest.raises(RuleError) as raised:
            parse_rules(value)
        assert raised.value.index == index
        assert reason in raised.value.reason
        assert isinstance(raised.value, InvalidConfigurationError)

    def test_what_is_right_comes_back_as_rules(self) -> None:
        rules: Sequence[object] = (
            {"pattern": "/a", "permission": "none", "type": "file", "priority": -5},
            {"pattern": "**/*", "permission": Permission.WRITE},
            PermissionRule("/b/", Permission.VIEW, PatternType.DIRECTORY),
        )
        assert parse_rules(rules) == [
            PermissionRule("/a", Permission.NONE, PatternType.FILE, -5),
            PermissionRule("**/*", Permission.WRITE),
            PermissionRule("/b/", Permission.VIEW, PatternType.DIRECTORY),
        ]
        assert parse_rules([]) == []

    def test_the_message_shows_index_pattern_and_reason_on_one_line(self) -> None:
        with pytest.raises(RuleError) as raised:
            parse_rules([{"pattern": "/a\n//b", "permission": "read"}])
        assert str(raised.value) == 'rule 0 ("/a\\n//b"): the pattern has an empty segment'

    def test_braces_in_one_another_without_end_are_refused(self) -> None:
        # Whether there are too many or they are too deep depends on how deep the caller is.
        for pattern in ("{" * 4000, "{a," * 300 + "b" + "}" * 300):
            with pytest.raises(RuleError, match=r"rule 0 .*(braces in one another, too deep|more than 256 patterns)"):
                parse_rules([{"pattern": pattern, "permission": "read"}])

    def test_a_megabyte_of_pattern_does_not_come_back_in_the_error(self) -> None:
        with pytest.raises(RuleError) as raised:
            parse_rules([{"pattern": "a" * 2**20, "permission": "read"}])
        assert len(str(raised.value)) + len(raised.value.pattern) < 1000


PATTERNS = (
    *("", "!/src", "/a\0b", "//", "//a", "/a//b", "/a//", "/a/{,b}/c", "{,a}", ".", "..", "/../a", "/a/./b", "./a"),
    *("/a/..", "/a/.{.,x}", "/a/\\.\\.", "/a{b", "/a{b,c", "/a}b", "/{a}", "{}", "/{1..3}", "/a[b", "/a]b", "/[]"),
    *("/[]a]", "/[!]", "/[a/b]", "/[z-a]", "/[[:alpha:]]", "/a\\", "/a\\/b", "/{a/,b}", "{/,a}", "{a,b}" * 9),
    *("{a,b}" * 800, "/a**b**c**d**e**f**g**h**i**j", "/a**b" * 9, "/".ljust(4097, "a"), "/".ljust(4096, "a")),
    *("/\U0001f600" * 1400, "{a," * 30 + "b" + "}" * 30, "/{a,b}{c,d}{e,f}{g,h}{i,j}{k,l}{m,n}{o,p}"),
    *("/", "/a", "a", "a/", "/a/", "a/b", "/a/b/", "*", "**", "**/*", "/*", "/**", "*/", "**/", "/a/*", "/a/**", "a*"),
    *("*a", "?", "/?/b", "[ab]", "[!ab]", "[^a]", "[a-c]b", "/[]-]", "[\\]]", "\\*", "\\a", "/a/**/b", "**/b", "a/**"),
    *("a**", "**b", "/a**b", "/a**/b", "{a,b}", "/{a,a/b}", "{a/b,c}", "/a/{b,c*}", "***", "/***/b", "**/**/b"),
    *("*/*", "**/*/*", "/a/*/", "é", "?\u0301", "[é-ü]", "/é/**", "a\nb", "**b**", "/{*,**}/b", "{a,b}/{b,c}/"),
)
PATHS = (
    *("/a", "/b", "/a/b", "/a/b/c", "/b/a", "/ab", "/a*", "/é", "/é/a", "/a\nb", "/a/x/b", "/x/a/b", "/*", "/]"),
    "/-",
)


def rule_sets() -> Iterator[List[Dict[str, Any]]]:
    """Every pattern by itself and with every type; then contests of two at the same and at other priorities."""
    for pattern in PATTERNS:
        yield [{"pattern": pattern, "permission": "write"}]
        for kind in ("file", "directory", "glob"):
            yield [{"pattern": pattern, "permission": "write", "type": kind}]
    short = [pattern for pattern in PATTERNS[42:] if len(pattern) < 20]
    for one, other in zip(short, short[7:] + short[:7]):
        for priority in (-1, 0, 1):
            yield [
                {"pattern": one, "permission": "write"},
                {"pattern": other, "permission": "read", "priority": priority},
                {"pattern": one, "permission": "view", "priority": -2},
            ]
    # One too many of each, for the limits of a whole set.
    braces = "{a,b}{c,d}{e,f}{g,h}{i,j}{k,l}" + "x" * 2000
    yield [{"pattern": f"/{at}{braces}", "permission": "read"} for at in range(9)]
    yield [{"pattern": f"/{'a**' * 8}{at}{'x' * 2000}", "permission": "read"} for at in range(5)]
    yield [{"pattern": f"/{at}{'/a' * 2000}", "permission": "read"} for at in range(60)]


ASK_SERVER = """
import { readFileSync } from "node:fs";
import { compileRules, LEVEL, parseRules, RuleError } from "./packages/permission/src/index.ts";
const { sets, paths } = JSON.parse(readFileSync(0, "utf8"));
const answer = (rules) => {
  try {
    const policy = compileRules(parseRules(rules));
    return paths.map((path) => policy.decide(path).level === LEVEL.write);
  } catch (error) {
    if (error instanceof RuleError) return [error.index, error.reason];
    throw error;
  }
};
process.stdout.write(JSON.stringify(sets.map(answer)));
"""


def our_answer(rules: List[Dict[str, Any]]) -> List[Any]:
    try:
        parsed = parse_rules(rules)
    except RuleError as error:
        return [error.index, error.reason]
    return [allows_writing(parsed, path) for path in PATHS]


@pytest.mark.skipif(NODE is None, reason="the repository's node is not installed, which runs the server's own rules")
def test_patterns_mean_what_they_mean_to_the_server() -> None:
    sets = list(rule_sets())
    asked = subprocess.run(
        [str(NODE), "--input-type=module", "--eval", ASK_SERVER],
        input=json.dumps({"sets": sets, "paths": PATHS}).encode(),
        stdout=subprocess.PIPE,
        check=True,
        cwd=REPOSITORY,
    )
    differences: List[Tuple[Any, Any, Any]] = [
        (str(rules)[:200], ours, theirs)
        for rules, ours, theirs in zip(sets, map(our_answer, sets), json.loads(asked.stdout))
        if ours != theirs
    ]
    assert differences == []

"""What a sandbox is made with, when there is a policy."""

from __future__ import annotations

from typing import List

import pytest

from agentfense._permission import HIGHEST_PRIORITY, RuleError
from agentfense._project import ProjectPolicy, ProjectPolicyError, Taken, protect_policy_file, with_project_policy
from agentfense._project.quantities import bytes_of, cpu_quota_of
from agentfense.presets import PresetError, get_preset
from agentfense.types import (
    NetworkList,
    NetworkMode,
    PatternType,
    Permission,
    PermissionRule,
    ResourceLimits,
    RuntimeType,
)

PATH = "project/.agentfense.yaml"
DOCS = PermissionRule("/docs/**", Permission.WRITE)


def taken(permissions: List[PermissionRule]) -> Taken:
    return Taken(permissions, None, None, None, None)


class TestTheCallerWinsAndThePolicyFillsInTheRest:
    def test_without_either_the_rules_are_those_of_agent_safe(self) -> None:
        assert with_project_policy(None) == taken(get_preset("agent-safe"))

    def test_a_policys_rules_follow_its_preset(self) -> None:
        policy = ProjectPolicy(PATH, preset="read-only", permissions=(DOCS,))
        assert with_project_policy(policy) == taken([*get_preset("read-only"), DOCS])

    def test_a_policys_rules_without_a_preset_are_all_there_is(self) -> None:
        assert with_project_policy(ProjectPolicy(PATH, permissions=(DOCS,))) == taken([DOCS])
        assert with_project_policy(ProjectPolicy(PATH, permissions=())) == taken([])

    def test_rules_of_the_caller_replace_those_of_the_policy_preset_and_all(self) -> None:
        policy = ProjectPolicy(PATH, preset="full-access", permissions=(DOCS,))
        assert with_project_policy(policy, preset="view-only") == taken(get_preset("view-only"))
        assert with_project_policy(policy, permissions=[]) == taken([])
        as_dict = {"pattern": "/docs/**", "permission": "write"}
        assert with_project_policy(policy, preset="read-only", permissions=[as_dict]) == taken(
            [*get_preset("read-only"), DOCS]
        )

    def test_a_policy_without_rules_keeps_the_default(self) -> None:
        policy = ProjectPolicy(PATH, runtime=RuntimeType.DOCKER)
        assert with_project_policy(policy) == Taken(get_preset("agent-safe"), RuntimeType.DOCKER, None, None, None)

    def test_variables_and_limits_are_taken_name_by_name(self) -> None:
        policy = ProjectPolicy(
            PATH,
            env={"A": "policy", "B": "policy"},
            resources=ResourceLimits(memory_bytes=1, pids_limit=2),
            runtime=RuntimeType.DOCKER,
        )
        both = with_project_policy(policy, env={"B": "caller"}, resources=ResourceLimits(pids_limit=3), runtime="bwrap")
        assert both == Taken(
            get_preset("agent-safe"),
            "bwrap",
            None,
            ResourceLimits(memory_bytes=1, pids_limit=3),
            {"A": "policy", "B": "caller"},
        )

    def test_mistakes_of_the_caller_are_named(self) -> None:
        with pytest.raises(PresetError, match='no preset "agent_safe"'):
            with_project_policy(None, preset="agent_safe")
        with pytest.raises(RuleError, match="rule 1"):
            with_project_policy(None, permissions=[DOCS, {"pattern": "/a", "permission": "all"}])


class TestAPolicyCannotOpenTheNetworkByItself:
    @pytest.mark.parametrize("network", [NetworkMode.PRIVATE, NetworkMode.HOST])
    def test_it_is_refused_unless_the_caller_says_something(self, network: NetworkMode) -> None:
        policy = ProjectPolicy(PATH, network=network)
        with pytest.raises(ProjectPolicyError, match=f"asks for the network {network}, which a file cannot allow"):
            with_project_policy(policy)
        assert with_project_policy(policy, network=network).network is network
        assert with_project_policy(policy, network="none").network == "none"

    def test_a_list_of_hosts_is_refused_unless_the_caller_says_filtered_or_lists_others(self) -> None:
        hosts = NetworkList(["pypi.org"])
        policy = ProjectPolicy(PATH, network=hosts)
        with pytest.raises(ProjectPolicyError, match="asks for the network filtered, which a file cannot allow"):
            with_project_policy(policy)
        assert with_project_policy(policy, network="filtered").network is hosts
        own = NetworkList(presets=["npm"])
        assert with_project_policy(policy, network=own).network is own

    def test_none_is_taken(self) -> None:
        assert with_project_policy(ProjectPolicy(PATH, network=NetworkMode.NONE)).network is NetworkMode.NONE


class TestThePolicyFileIsNeverWritable:
    @pytest.mark.parametrize(
        "rules",
        [
            get_preset("full-access"),
            get_preset("development"),
            [PermissionRule("/.agentfense.yaml", Permission.WRITE, None, 7)],
            [PermissionRule("/.agentfense.yaml", Permission.WRITE, None, HIGHEST_PRIORITY)],
            [PermissionRule("**/*", Permission.WRITE, None, HIGHEST_PRIORITY)],
            [PermissionRule("/", Permission.WRITE, None, HIGHEST_PRIORITY)],
            [PermissionRule("**/*", Permission.READ), PermissionRule("*.{yml,yaml}", Permission.WRITE)],
            [PermissionRule("*", Permission.READ), PermissionRule(".agentfense.yam[a-z]", Permission.WRITE)],
            [PermissionRule("/?agentfense**", Permission.WRITE)],
        ],
    )
    def test_one_more_rule_allows_reading_at_most(self, rules: List[PermissionRule]) -> None:
        *others, added = protect_policy_file(rules)
        highest = max(rule.priority for rule in rules)
        priority = min(highest + 1, HIGHEST_PRIORITY)
        assert others == rules
        assert added == PermissionRule("/.agentfense.yaml", Permission.READ, PatternType.FILE, priority)

    @pytest.mark.parametrize(
        "rules",
        [
            [],
            get_preset("agent-safe"),
            get_preset("view-only"),
            [PermissionRule("/src/**", Permission.WRITE), PermissionRule("*.yml", Permission.WRITE)],
            [PermissionRule("**/*", Permission.WRITE), PermissionRule("/.*", Permission.NONE)],
        ],
    )
    def test_rules_that_do_not_allow_it_stay_as_they_are(self, rules: List[PermissionRule]) -> None:
        assert protect_policy_file(rules) == rules


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("512m", 2**29),
        ("1g", 2**30),
        ("1.5GiB", 3 * 2**29),
        ("2KB", 2048),
        ("7", 7),
        ("1t", 2**40),
        ("1.9", 1),
        ("8191t", 8191 * 2**40),
        ("8192t", None),
        ("-1", None),
        ("1 m", None),
        ("1m\n", None),
        ("\u0661m", None),
        ("", None),
        ("m", None),
        ("1e3", None),
    ],
)
def test_sizes(text: str, amount: object) -> None:
    assert bytes_of(text) == amount


@pytest.mark.parametrize(
    ("text", "quota"),
    [
        *(("0.5", 50_000), ("2", 200_000), ("0.01", 1000), ("0.009", None), ("1024", 102_400_000), ("1025", None)),
        *(("0", None), ("", None), ("1.", None), ("-1", None)),
    ],
)
def test_cpus(text: str, quota: object) -> None:
    assert cpu_quota_of(text) == quota

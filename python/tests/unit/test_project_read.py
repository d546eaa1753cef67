"""The policy file of a project."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Sequence, Tuple, Union

import pytest

from agentfense._project import ProjectPolicy, ProjectPolicyError, read_project_policy, text_file
from agentfense._project.yaml_text import parse_yaml
from agentfense.exceptions import InvalidConfigurationError
from agentfense.types import (
    NetworkMode,
    PatternType,
    Permission,
    PermissionRule,
    ResourceLimits,
    RuntimeType,
)

NAME = ".agentfense.yaml"


def project(directory: Path, policy: Union[str, bytes]) -> Path:
    (directory / NAME).write_bytes(policy if isinstance(policy, bytes) else policy.encode())
    return directory


def refusal(directory: Path) -> ProjectPolicyError:
    with pytest.raises(ProjectPolicyError) as raised:
        read_project_policy(directory)
    return raised.value


class TestAPolicyFile:
    def test_is_read_in_full(self, tmp_path: Path) -> None:
        project(
            tmp_path,
            """
version: 1
preset: development
permissions:
  - { pattern: "/docs/**", permission: write }
  - pattern: "/vendor/"
    permission: view
    type: directory
    priority: 5
runtime: docker
network: none
resources: { memory: 512m, cpus: 0.5, pids: 256, disk: 1073741824 }
env:
  CI: "1"
ignore: ["*.log", /tmp/]
""",
        )
        assert read_project_policy(tmp_path) == ProjectPolicy(
            path=str(tmp_path / NAME),
            preset="development",
            permissions=(
                PermissionRule("/docs/**", Permission.WRITE),
                PermissionRule("/vendor/", Permission.VIEW, PatternType.DIRECTORY, 5),
            ),
            runtime=RuntimeType.DOCKER,
            network=NetworkMode.NONE,
            resources=ResourceLimits(memory_bytes=2**29, cpu_quota=50_000, pids_limit=256, disk_bytes=2**30),
            env={"CI": "1"},
            ignore=("*.log", "/tmp/"),
        )

    def test_may_say_nothing_but_its_version(self, tmp_path: Path) -> None:
        assert read_project_policy(project(tmp_path, "version: 1\n")) == ProjectPolicy(str(tmp_path / NAME))

    def test_that_is_absent_is_no_policy_and_neither_is_one_in_an_absent_directory(self, tmp_path: Path) -> None:
        assert read_project_policy(tmp_path) is None
        assert read_project_policy(str(tmp_path / "absent")) is None
        (tmp_path / "file").write_text("")
        assert read_project_policy(tmp_path / "file") is None

    def test_may_use_aliases(self, tmp_path: Path) -> None:
        text = 'version: 1\npermissions:\n  - &docs { pattern: "/docs/**", permission: read }\n  - *docs\n'
        policy = read_project_policy(project(tmp_path, text))
        assert policy is not None
        assert policy.permissions == (PermissionRule("/docs/**"),) * 2

    def test_may_be_json(self, tmp_path: Path) -> None:
        policy = read_project_policy(project(tmp_path, '{"version":1,"ignore":["*.log"],"env":{"A":"\\u00e9"}}'))
        assert policy == ProjectPolicy(str(tmp_path / NAME), ignore=("*.log",), env={"A": "é"})

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("yes", "yes"),
            ("on", "on"),
            ("true", True),
            ("~", None),
            ("010", 10),
            ("0o10", 8),
            ("0x1F", 31),
            ("-5", -5),
            ("1:30", "1:30"),
            ("2020-01-01", "2020-01-01"),
            ("1_000", "1_000"),
            (".5", 0.5),
            ("1e3", 1000.0),
            ("'1'", "1"),
            ('"1"', "1"),
            ("!!str 1", "1"),
            ("=", "="),
            ("<<", "<<"),
            ("9" * 5000, float("inf")),
        ],
    )
    def test_words_mean_what_yaml_says_today(self, text: str, value: object) -> None:
        read = parse_yaml(text).value
        assert (read, type(read)) == (value, type(value))


#: What is wrong, the text, the line and column, and what must be said.
WRONG: Sequence[Tuple[str, str, str, str]] = [
    ("nothing in it", "", "1:1", "the file: expected keys (version, preset,"),
    ("a comment only", "# later\n", "1:1", "the file: expected keys (version, preset,"),
    ("no version", "preset: agent-safe\n", "1:1", "version is missing; the file begins with: version: 1"),
    ("another version", "version: 2\n", "1:10", "version: expected 1, not 2"),
    ("a version that is true", "version: true\n", "1:10", "version: expected 1, not true"),
    ("a version that is a text", 'version: "1"\n', "1:10", 'version: expected 1, not "1"'),
    ("a misspelt key", "version: 1\npermisions: []\n", "2:1", 'unknown key "permisions"; did you mean permissions?'),
    ("an unknown key", "version: 1\nfrobnicate: 1\n", "2:1", 'unknown key "frobnicate"; allowed: version, preset,'),
    ("a key that is a number", "version: 1\n5: 1\n", "2:1", 'unknown key "5"'),
    ("a key that is a list", "version: 1\n? [a]\n: 1\n", "2:3", "a key that is no text"),
    ("a merge key", "version: 1\n<<: { preset: read-only }\n", "2:1", 'unknown key "<<"'),
    ("a key twice", "version: 1\nenv: {}\nenv: {}\n", "3:1", "the key env is there twice"),
    ("a key without a value", "version: 1\npermissions:\n", "2:13", "rules must be a list"),
    ("an unknown preset", "version: 1\npreset: agent-sfae\n", "2:9", 'no preset "agent-sfae"; known: agent-safe,'),
    ("a preset that is a number", "version: 1\npreset: 3\n", "2:9", "preset: expected one of agent-safe,"),
    (
        "a bad level",
        "version: 1\npermissions:\n  - { pattern: /a, permission: read }\n  - { pattern: /b, permission: raed }\n",
        "4:5",
        'rule 1 ("/b"): permission must be one of none, view, read, write',
    ),
    (
        "a misspelt field",
        "version: 1\npermissions:\n  - { pattern: /a, permision: read }\n",
        "3:5",
        'unknown field "permision"; a rule has pattern, permission, type and priority',
    ),
    (
        "a field without a value",
        "version: 1\npermissions:\n  - { pattern: /a, permission: read, type: }\n",
        "3:5",
        "type must be one of file, directory, glob",
    ),
    ("a bad pattern", 'version: 1\npermissions:\n  - { pattern: "/a/[b", permission: none }\n', "3:5", "rule 0"),
    ("an unquoted pattern", "version: 1\npermissions:\n  - pattern: **/*\n", "3:14", "needs quotes"),
    ("an unknown runtime", "version: 1\nruntime: podman\n", "2:10", "runtime: expected one of bwrap, docker"),
    ("a runtime for tests", "version: 1\nruntime: mock\n", "2:10", "runtime: expected one of bwrap, docker"),
    (
        "an unknown network",
        "version: 1\nnetwork: all\n",
        "2:10",
        "network: expected one of none, private, host, or a list",
    ),
    ("an unknown limit", "version: 1\nresources:\n  memroy: 1g\n", "3:3", 'unknown key "memroy"; did you mean memory?'),
    ("no limits", "version: 1\nresources: 5\n", "2:12", "resources: expected keys (memory, cpus, pids, disk), not 5"),
    ("a unit nobody knows", "version: 1\nresources: { memory: 1x }\n", "2:22", "resources.memory: expected a size"),
    ("a limit of nothing", "version: 1\nresources: { disk: 0 }\n", "2:20", "resources.disk: expected a size"),
    ("a limit that is true", "version: 1\nresources: { cpus: true }\n", "2:20", "resources.cpus: expected a number"),
    ("a limit without an end", "version: 1\nresources: { disk: .inf }\n", "2:20", "resources.disk: expected a size"),
    ("more processes than the default", "version: 1\nresources: { pids: 5000 }\n", "2:20", "a number from 1 to 1024"),
    ("half a process", "version: 1\nresources: { pids: 1.5 }\n", "2:20", "a number from 1 to 1024"),
    (
        "a variable that is a number",
        "version: 1\nenv:\n  PORT: 80\n",
        "3:9",
        "env.PORT: expected a text, not 80; put it in quotes",
    ),
    ("a bad name of a variable", 'version: 1\nenv: { "A=B": c }\n', "2:8", 'env: "A=B" is no name of a variable'),
    ("a line end in a name", 'version: 1\nenv: { "A\\n": c }\n', "2:8", "is no name of a variable"),
    ("a NUL in a variable", 'version: 1\nenv: { A: "\\0" }\n', "2:11", "env.A: has a NUL character"),
    ("a pattern to ignore that is none", "version: 1\nignore: [a, 1]\n", "2:13", "ignore: expected a pattern"),
    (
        "an agent without a program",
        "version: 1\nagents: { helper: { allow: [] } }\n",
        "2:19",
        "agents.helper.program is missing",
    ),
    (
        "an agent whose key is misspelt",
        "version: 1\nagents: { helper: { programm: a } }\n",
        "2:21",
        'unknown key "programm"; did you mean program?',
    ),
    (
        "an agent's key without hosts",
        "version: 1\nagents: { a: { program: a, secrets: { K: { in: bearer } } } }\n",
        "2:42",
        "agents.a.secrets.K.hosts is missing",
    ),
    (
        "an agent's key that comes from no name",
        "version: 1\nagents: { a: { program: a, secrets: { K: { hosts: [a.example], in: bearer, from: 1 } } } }\n",
        "2:82",
        "agents.a.secrets.K.from: expected a text, not 1",
    ),
    (
        "an agent's name that is a path",
        "version: 1\nagents: { a/b: { program: a } }\n",
        "2:11",
        'agents: "a/b" cannot be a name here',
    ),
    ("no YAML", "version: [1\n", "2:1", "flow sequence"),
    ("a control character", "version: 1\n# \x01\n", "2:3", "a character that no text has"),
    ("two documents", "version: 1\n---\nversion: 1\n", "2:1", "multiple documents"),
    ("a tag of its own", "version: !!js/function x\n", "1:10", "Unresolved tag: !!js/function"),
    ("a tag of Python", "version: 1\nenv: !!python/object/apply:os.system [ls]\n", "2:6", "Unresolved tag"),
    ("a tag that is not true", "version: !!int x\n", "1:10", "Unresolved tag: !!int"),
    ("an alias for nothing", "version: 1\nignore: *b\n", "2:9", "*b stands for nothing"),
    ("an alias in itself", "version: 1\nignore: &a [*a]\n", "2:13", "*a stands for nothing"),
    ("depth without end", "[" * 5000, "1:65", "too deep"),
]


class TestAMistakeIsRefusedWithItsPlace:
    @pytest.mark.parametrize(
        ("text", "place", "message"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG]
    )
    def test_and_what_is_allowed(self, tmp_path: Path, text: str, place: str, message: str) -> None:
        error = refusal(project(tmp_path, text))
        line, column = map(int, place.split(":"))
        assert error.message.startswith(f"{tmp_path / NAME}:{place}: ")
        assert message in error.message
        assert (error.path, error.line, error.column) == (str(tmp_path / NAME), line, column)

    def test_a_rule_behind_an_alias_is_found_at_the_alias(self, tmp_path: Path) -> None:
        error = refusal(project(tmp_path, "version: 1\nignore: &x [a]\npermissions: *x\n"))
        assert (error.line, error.column) == (3, 14)

    def test_aliases_that_multiply(self, tmp_path: Path) -> None:
        levels = [f"  {name}: &{name} [{', '.join([f'*{of}'] * 10)}]\n" for of, name in zip("abcdefgh", "bcdefghi")]
        bomb = "version: 1\nenv:\n  a: &a [x, x]\n" + "".join(levels)
        assert "aliases that multiply" in refusal(project(tmp_path, bomb)).message

    def test_thousands_of_keys_are_refused_without_taking_for_ever(self, tmp_path: Path) -> None:
        many = "".join(f"k{index}: 1\n" for index in range(10_000))
        started = time.monotonic()
        assert 'unknown key "k0"' in refusal(project(tmp_path, many)).message
        assert time.monotonic() - started < 60

    def test_it_is_a_mistake_of_the_call(self, tmp_path: Path) -> None:
        error = refusal(project(tmp_path, "version: 2\n"))
        assert isinstance(error, InvalidConfigurationError)
        assert error.code == "INVALID_ARGUMENT"


class TestWhatIsNotAPlainFileIsRefused:
    def test_a_link_wherever_it_leads(self, tmp_path: Path) -> None:
        (tmp_path / "real.yaml").write_text("version: 1\n")
        os.symlink("real.yaml", tmp_path / NAME)
        assert refusal(tmp_path).message == f"{tmp_path / NAME}: is a symbolic link, and those are not followed"

    def test_a_dangling_link_is_no_absent_file(self, tmp_path: Path) -> None:
        os.symlink("absent", tmp_path / NAME)
        assert "is a symbolic link" in refusal(tmp_path).message

    def test_a_link_that_takes_its_place_after_the_look(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        project(tmp_path, "version: 1\n")
        (tmp_path / "other").write_text("version: 1\npreset: full-access\n")
        place = tmp_path / NAME

        class SwappingOs:
            """The module as the reader sees it, and only the reader: everybody else keeps the real one."""

            def __getattr__(self, name: str) -> Any:
                return getattr(os, name)

            def lstat(self, path: str) -> os.stat_result:
                assert path == str(place)
                status = os.lstat(path)
                place.unlink()
                place.symlink_to("other")
                return status

        monkeypatch.setattr(text_file, "os", SwappingOs())
        with pytest.raises(ProjectPolicyError, match="cannot be read"):
            read_project_policy(tmp_path)

    def test_a_directory(self, tmp_path: Path) -> None:
        (tmp_path / NAME).mkdir()
        assert refusal(tmp_path).message == f"{tmp_path / NAME}: is not a file"

    def test_a_pipe_without_waiting_for_a_writer(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / NAME)
        assert "is not a file" in refusal(tmp_path).message

    def test_more_than_a_mebibyte(self, tmp_path: Path) -> None:
        assert "is larger than 1 MiB" in refusal(project(tmp_path, f"version: 1\n#{' ' * 1_048_576}\n")).message

    def test_bytes_that_are_not_utf_8(self, tmp_path: Path) -> None:
        assert "is not UTF-8 text" in refusal(project(tmp_path, b"version: 1\n# \xff")).message

    @pytest.mark.parametrize("name", [".agentfense.yml", "agentfense.yaml", "agentfense.yml"])
    def test_a_file_of_nearly_the_right_name(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).write_text("version: 1\n")
        error = refusal(tmp_path)
        assert error.message == f"{tmp_path / name}: is not read; the file is called {NAME}"
        assert error.hint == f"rename it to {NAME}"

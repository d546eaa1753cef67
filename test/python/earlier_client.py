"""The client that was published for the earlier server, unmodified, against ours.

The endpoint is in AGENTFENSE_TEST_ENDPOINT. Run by test/compatibility/earlier-client.test.ts.
"""

import asyncio
import os
import tempfile
import unittest
from datetime import timedelta
from pathlib import Path

import grpc
from agentfense import (
    AsyncSandbox,
    CommandExecutionError,
    CommandTimeoutError,
    InvalidConfigurationError,
    Permission,
    PermissionRule,
    ResourceLimits,
    RuntimeType,
    Sandbox,
    SandboxClient,
    SandboxError,
)
from agentfense._gen import sandbox_pb2
from agentfense.types import PatternType, SandboxStatus

ENDPOINT = os.environ["AGENTFENSE_TEST_ENDPOINT"]

RULES = [
    {"pattern": "**/*", "permission": "read"},
    {"pattern": "/output/**", "permission": "write"},
    {"pattern": "/secrets/**", "permission": "none"},
    {"pattern": "/secrets/public.key", "permission": "read"},
    {"pattern": "/metadata/**", "permission": "view"},
]


def project(directory):
    files = {
        "README.md": "hello\n",
        "src/main.py": "print('main')\n# TODO: more\n",
        "secrets/private.key": "PRIVATE\n",
        "secrets/public.key": "PUBLIC\n",
        "metadata/schema.json": "{}\n",
        "output/.keep": "",
    }
    for name, content in files.items():
        path = Path(directory, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return directory


class Client(unittest.TestCase):
    def setUp(self):
        self.client = SandboxClient(endpoint=ENDPOINT)
        self.codebase = self.client.create_codebase(name="app", owner_id="team_123")
        self.addCleanup(self.client.close)

    def sandbox(self, permissions, **options):
        sandbox = self.client.create_sandbox(self.codebase.id, permissions=permissions, **options)
        self.addCleanup(self.forget, sandbox.id)
        return sandbox

    def forget(self, sandbox_id):
        try:
            self.client.destroy_sandbox(sandbox_id)
        except SandboxError:
            pass  # destroyed by the test

    def test_codebase_life(self):
        client, codebase = self.client, self.codebase
        self.assertRegex(codebase.id, "^cb_[0-9a-f]{16,}$")
        self.assertEqual((codebase.name, codebase.owner_id), ("app", "team_123"))
        result = client.upload_file(codebase.id, "app.py", b"print('v1.0')")
        self.assertEqual((result.file_path, result.size), ("app.py", 13))
        client.upload_file(codebase.id, "pkg/mod/data.bin", bytes(range(256)) * 1000)
        client.upload_file(codebase.id, "empty", b"")
        names = {info.path: info.is_dir for info in client.list_files(codebase.id, recursive=True)}
        self.assertEqual(names, {"app.py": False, "empty": False, "pkg": True, "pkg/mod": True, "pkg/mod/data.bin": False})
        self.assertEqual([info.name for info in client.list_files(codebase.id)], ["app.py", "empty", "pkg"])
        self.assertEqual(client.download_file(codebase.id, "pkg/mod/data.bin"), bytes(range(256)) * 1000)
        self.assertEqual(client.download_file(codebase.id, "empty"), b"")
        counted = client.get_codebase(codebase.id)
        self.assertEqual((counted.file_count, counted.size), (3, 13 + 256000))
        self.assertIn(codebase.id, [each.id for each in client.list_codebases(owner_id="team_123")])
        client.delete_codebase(codebase.id)
        with self.assertRaises(SandboxError):
            client.get_codebase(codebase.id)

    def test_sandbox_life(self):
        client = self.client
        client.upload_file(self.codebase.id, "docs/a.txt", b"text\n")
        sandbox = self.sandbox([{"pattern": "**/*", "permission": "read"}], labels={"team": "a"})
        self.assertEqual(sandbox.status, SandboxStatus.PENDING)
        self.assertEqual(sandbox.labels, {"team": "a"})
        self.assertEqual(client.start_sandbox(sandbox.id).status, SandboxStatus.RUNNING)
        result = client.exec(sandbox.id, command="ls /workspace; cat docs/a.txt")
        self.assertEqual((result.stdout, result.exit_code), ("docs\ntext\n", 0))
        self.assertEqual(client.stop_sandbox(sandbox.id).status, SandboxStatus.STOPPED)
        self.assertEqual(client.start_sandbox(sandbox.id).status, SandboxStatus.RUNNING)
        self.assertIn(sandbox.id, [each.id for each in client.list_sandboxes(codebase_id=self.codebase.id)])
        client.destroy_sandbox(sandbox.id)
        with self.assertRaises(SandboxError) as raised:
            client.get_sandbox(sandbox.id)
        self.assertIn("sandbox not found", str(raised.exception.details))

    def test_a_paused_sandbox_is_none_that_it_knows(self):
        client = self.client
        sandbox = self.sandbox([{"pattern": "**/*", "permission": "read"}])
        client.start_sandbox(sandbox.id)
        with grpc.insecure_channel(ENDPOINT) as channel:
            pause = channel.unary_unary(
                "/sandbox.v1.SandboxService/PauseSandbox",
                request_serializer=sandbox_pb2.StopSandboxRequest.SerializeToString,
                response_deserializer=sandbox_pb2.Sandbox.FromString,
            )
            self.assertEqual(pause(sandbox_pb2.StopSandboxRequest(sandbox_id=sandbox.id)).status, 5)
        self.assertEqual(client.get_sandbox(sandbox.id).status, SandboxStatus.PENDING)
        self.assertIn(sandbox.id, [each.id for each in client.list_sandboxes(codebase_id=self.codebase.id)])
        with self.assertRaises(SandboxError) as raised:
            client.exec(sandbox.id, command="true")
        self.assertIn("sandbox is paused", str(raised.exception.details))
        self.assertEqual(client.stop_sandbox(sandbox.id).status, SandboxStatus.STOPPED)
        self.assertEqual(client.start_sandbox(sandbox.id).status, SandboxStatus.RUNNING)
        self.assertEqual(client.exec(sandbox.id, command="true").exit_code, 0)

    def test_exec_keeps_its_word(self):
        client = self.client
        sandbox = self.sandbox([{"pattern": "**/*", "permission": "write"}])
        client.start_sandbox(sandbox.id)
        result = client.exec(sandbox.id, command="cat; echo err >&2; exit 3", stdin="in")
        self.assertEqual((result.stdout, result.stderr, result.exit_code), ("in", "err\n", 3))
        result = client.exec(sandbox.id, command="echo $A; pwd", env={"A": "1"}, workdir="/tmp")
        self.assertEqual(result.stdout, "1\n/tmp\n")
        with self.assertRaises(CommandTimeoutError):
            client.exec(sandbox.id, command="echo before; sleep 30", timeout=timedelta(milliseconds=300))
        result = client.exec(sandbox.id, command="printf '\\377x'")
        self.assertEqual(result.stdout, "\ufffdx")
        self.assertEqual(b"".join(client.exec_stream(sandbox.id, command="printf a; printf b; exit 4")), b"ab")

    def test_sessions_keep_their_state(self):
        client = self.client
        client.upload_file(self.codebase.id, "src/x", b"")
        sandbox = self.sandbox([{"pattern": "**/*", "permission": "read"}])
        client.start_sandbox(sandbox.id)
        with client.create_session(sandbox.id, shell="/bin/bash", env={"LIB": "/workspace/lib"}) as session:
            self.assertRegex(session.id, "^sess_[0-9a-f]{16,}$")
            session.exec("cd /workspace/src; export VAR=value; f() { echo function; }")
            result = session.exec("pwd; echo $VAR $LIB; f")
            self.assertEqual(result.stdout, "/workspace/src\nvalue /workspace/lib\nfunction\n")
            self.assertEqual(session.exec("false").exit_code, 1)
            self.assertEqual([each.id for each in client.list_sessions(sandbox.id)], [session.id])
        with self.assertRaises(SandboxError):
            client.session_exec(session.id, "true")

    def test_errors_have_the_codes_that_clients_know(self):
        client = self.client
        sandbox = self.sandbox([{"pattern": "**/*", "permission": "read"}])
        unknown = "sb_0123456789abcdef"
        cases = [
            (lambda: client.get_sandbox(unknown), grpc.StatusCode.NOT_FOUND),
            (lambda: client.start_sandbox(unknown), grpc.StatusCode.NOT_FOUND),
            (lambda: client.exec(sandbox.id, command="true"), grpc.StatusCode.FAILED_PRECONDITION),
            (lambda: client.stop_sandbox(sandbox.id), grpc.StatusCode.FAILED_PRECONDITION),
            (lambda: client.create_sandbox("cb_0123456789abcdef"), grpc.StatusCode.NOT_FOUND),
            (lambda: client.upload_file(self.codebase.id, "../out", b"x"), grpc.StatusCode.INVALID_ARGUMENT),
            (lambda: client.download_file(self.codebase.id, "missing"), grpc.StatusCode.NOT_FOUND),
            (lambda: client.create_codebase(name="", owner_id="o"), grpc.StatusCode.INVALID_ARGUMENT),
            (lambda: client.delete_codebase(self.codebase.id), grpc.StatusCode.FAILED_PRECONDITION),
            (lambda: client.get_session("sess_0123456789abcdef"), grpc.StatusCode.NOT_FOUND),
        ]
        for index, (call, code) in enumerate(cases):
            with self.subTest(index), self.assertRaises(SandboxError) as raised:
                call()
            if code is grpc.StatusCode.INVALID_ARGUMENT:
                self.assertIsInstance(raised.exception, InvalidConfigurationError)  # which forgets the code
            else:
                self.assertEqual(raised.exception.grpc_code, code.value)

    def test_rules_of_every_kind(self):
        rules = [
            PermissionRule("**/*", Permission.READ),
            PermissionRule("/docs/", Permission.WRITE, PatternType.DIRECTORY, priority=5),
            PermissionRule("/docs/secret", Permission.NONE, PatternType.FILE, priority=10),
        ]
        for name in ("docs/open", "docs/secret", "other"):
            self.client.upload_file(self.codebase.id, name, b"content\n")
        sandbox = self.sandbox(rules)
        self.assertEqual([rule.permission for rule in sandbox.permissions], [rule.permission for rule in rules])
        self.assertEqual([rule.priority for rule in sandbox.permissions], [0, 5, 10])
        self.client.start_sandbox(sandbox.id)
        script = "ls docs; cat docs/secret; echo more >> docs/open && echo written; echo no >> other"
        result = self.client.exec(sandbox.id, command=script)
        self.assertEqual(result.stdout, "open\nwritten\n")
        self.assertIn("No such file", result.stderr)
        self.assertIn("Permission denied", result.stderr)

    def test_limits_are_kept_under_bwrap(self):
        limits = ResourceLimits(memory_bytes=64 * 1024 * 1024, pids_limit=50, cpu_quota=50000)
        sandbox = self.sandbox([{"pattern": "**/*", "permission": "read"}], runtime=RuntimeType.BWRAP, resources=limits)
        self.assertEqual((sandbox.runtime, sandbox.resources.memory_bytes), (RuntimeType.BWRAP, 64 * 1024 * 1024))
        self.client.start_sandbox(sandbox.id)
        result = self.client.exec(sandbox.id, command="head -c 200M /dev/zero | tail -c 100M | wc -c")
        self.assertNotEqual(result.stdout.strip(), str(100 * 1024 * 1024))


class HighLevel(unittest.TestCase):
    def test_from_local(self):
        with tempfile.TemporaryDirectory() as directory:
            with Sandbox.from_local(project(directory), permissions=RULES, preset=None, endpoint=ENDPOINT) as sandbox:
                self.assertIn("TODO", sandbox.run("grep -rn TODO src").stdout)
                self.assertEqual(sandbox.run("ls /workspace/secrets").stdout, "public.key\n")
                self.assertEqual(sandbox.run("cat /workspace/secrets/public.key").stdout, "PUBLIC\n")
                self.assertIn("No such file", sandbox.run("cat /workspace/secrets/private.key").stderr)
                self.assertIn("Permission denied", sandbox.run("cat metadata/schema.json").stderr)
                self.assertEqual(sandbox.run("echo result > output/log.txt").exit_code, 0)
                self.assertEqual(sandbox.read_file("/workspace/output/log.txt"), "result\n")
                self.assertNotEqual(sandbox.run("echo x > README.md").exit_code, 0)
                with self.assertRaises(CommandExecutionError):
                    sandbox.run("exit 1", raise_on_error=True)
                with sandbox.session() as session:
                    session.exec("cd /workspace/src")
                    self.assertEqual(session.exec("pwd").stdout, "/workspace/src\n")
                sandbox.write_file("output/new.txt", "from outside")
                self.assertEqual(sandbox.run("cat output/new.txt").stdout, "from outside")
                self.assertIn("src", " ".join(sandbox.list_files()))
                codebase_id = sandbox.codebase_id
        with SandboxClient(endpoint=ENDPOINT) as client, self.assertRaises(SandboxError):
            client.get_codebase(codebase_id)

    def test_presets_of_the_client(self):
        with tempfile.TemporaryDirectory() as directory:
            with Sandbox.from_local(project(directory), preset="agent-safe", endpoint=ENDPOINT) as sandbox:
                self.assertEqual(sandbox.run("cat README.md").stdout, "hello\n")
                self.assertEqual(sandbox.run("echo a > output/x && cat output/x").stdout, "a\n")
                self.assertNotEqual(sandbox.run("ls secrets/private.key").exit_code, 0)

    def test_last_writer_wins_between_sandboxes_of_one_codebase(self):
        with SandboxClient(endpoint=ENDPOINT) as client:
            codebase = client.create_codebase(name="shared", owner_id="team_123")
            rules = [{"pattern": "**/*", "permission": "write"}]
            for word in ("A", "B"):
                with Sandbox.from_codebase(codebase.id, permissions=rules, preset=None, endpoint=ENDPOINT) as sandbox:
                    sandbox.run(f"echo {word} > /workspace/output.txt")
            self.assertEqual(client.download_file(codebase.id, "output.txt"), b"B\n")
            client.delete_codebase(codebase.id)

    def test_async(self):
        async def scenario(directory):
            async with await AsyncSandbox.from_local(project(directory), permissions=RULES, preset=None, endpoint=ENDPOINT) as sandbox:
                results = await asyncio.gather(*(sandbox.run(f"echo {number}") for number in range(10)))
                return [result.stdout.strip() for result in results]

        with tempfile.TemporaryDirectory() as directory:
            self.assertEqual(asyncio.run(scenario(directory)), [str(number) for number in range(10)])


if __name__ == "__main__":
    unittest.main(verbosity=2)

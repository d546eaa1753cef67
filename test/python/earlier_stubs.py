"""Every status of the earlier contract, through grpcio and the stubs that its client was generated with.

The endpoint is in AGENTFENSE_TEST_ENDPOINT. Run by test/compatibility/earlier-client.test.ts.
"""

import os
import unittest

import grpc
from agentfense._gen import codebase_pb2, codebase_pb2_grpc, common_pb2, sandbox_pb2, sandbox_pb2_grpc
from google.protobuf.duration_pb2 import Duration

Code = grpc.StatusCode
UNKNOWN_CODEBASE = "cb_0123456789abcdef"
UNKNOWN_SANDBOX = "sb_0123456789abcdef"
UNKNOWN_SESSION = "sess_0123456789abcdef"
READ_ALL = [common_pb2.PermissionRule(pattern="**/*", permission=common_pb2.PERMISSION_READ)]


class Stubs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.channel = grpc.insecure_channel(os.environ["AGENTFENSE_TEST_ENDPOINT"])
        cls.codebases = codebase_pb2_grpc.CodebaseServiceStub(cls.channel)
        cls.sandboxes = sandbox_pb2_grpc.SandboxServiceStub(cls.channel)
        request = codebase_pb2.CreateCodebaseRequest(name="stubs", owner_id="stubs")
        cls.codebase = cls.codebases.CreateCodebase(request).id
        cls.upload("dir/file", b"content\n")
        cls.pending = cls.create()
        cls.running = cls.create()
        cls.sandboxes.StartSandbox(sandbox_pb2.StartSandboxRequest(sandbox_id=cls.running))

    @classmethod
    def tearDownClass(cls):
        for sandbox in (cls.pending, cls.running):
            cls.sandboxes.DestroySandbox(sandbox_pb2.DestroySandboxRequest(sandbox_id=sandbox))
        cls.codebases.DeleteCodebase(codebase_pb2.DeleteCodebaseRequest(codebase_id=cls.codebase))
        cls.channel.close()

    @classmethod
    def create(cls):
        request = sandbox_pb2.CreateSandboxRequest(codebase_id=cls.codebase, permissions=READ_ALL)
        return cls.sandboxes.CreateSandbox(request).id

    @classmethod
    def upload(cls, path, content):
        metadata = codebase_pb2.UploadChunk.Metadata(codebase_id=cls.codebase, file_path=path, total_size=len(content))
        chunks = [codebase_pb2.UploadChunk(metadata=metadata), codebase_pb2.UploadChunk(data=content)]
        return cls.codebases.UploadFiles(iter(chunks))

    def fails(self, call, code, message):
        with self.assertRaises(grpc.RpcError) as raised:
            result = call()
            if hasattr(result, "__iter__"):
                list(result)
        self.assertEqual((raised.exception.code(), raised.exception.details()), (code, message))

    def test_ids_are_required(self):
        for name in ("GetCodebase", "DeleteCodebase", "ListFiles"):
            call = getattr(self.codebases, name)
            request = getattr(codebase_pb2, f"{name}Request")()
            with self.subTest(name):
                self.fails(lambda: call(request), Code.INVALID_ARGUMENT, "codebase_id is required")
        for name in ("GetSandbox", "StartSandbox", "StopSandbox", "DestroySandbox", "CreateSession"):
            call = getattr(self.sandboxes, name)
            request = getattr(sandbox_pb2, f"{name}Request")()
            with self.subTest(name):
                self.fails(lambda: call(request), Code.INVALID_ARGUMENT, "sandbox_id is required")
        for name in ("GetSession", "DestroySession", "SessionExec"):
            call = getattr(self.sandboxes, name)
            request = getattr(sandbox_pb2, f"{name}Request")()
            with self.subTest(name):
                self.fails(lambda: call(request), Code.INVALID_ARGUMENT, "session_id is required")

    def test_codebases(self):
        stub = self.codebases
        create = codebase_pb2.CreateCodebaseRequest
        download = codebase_pb2.DownloadFileRequest
        cases = [
            (lambda: stub.CreateCodebase(create(owner_id="o")), Code.INVALID_ARGUMENT, "name is required"),
            (lambda: stub.CreateCodebase(create(name="n")), Code.INVALID_ARGUMENT, "owner_id is required"),
            (
                lambda: stub.GetCodebase(codebase_pb2.GetCodebaseRequest(codebase_id=UNKNOWN_CODEBASE)),
                Code.NOT_FOUND,
                "codebase not found",
            ),
            (
                lambda: stub.DownloadFile(download(codebase_id=self.codebase)),
                Code.INVALID_ARGUMENT,
                "file_path is required",
            ),
            (
                lambda: stub.DownloadFile(download(codebase_id=UNKNOWN_CODEBASE, file_path="x")),
                Code.NOT_FOUND,
                "codebase not found",
            ),
            (
                lambda: stub.DownloadFile(download(codebase_id=self.codebase, file_path="x")),
                Code.NOT_FOUND,
                "file not found: x",
            ),
            (
                lambda: stub.ListFiles(codebase_pb2.ListFilesRequest(codebase_id=UNKNOWN_CODEBASE)),
                Code.NOT_FOUND,
                "codebase not found",
            ),
        ]
        for index, case in enumerate(cases):
            with self.subTest(index):
                self.fails(*case)
        missing = codebase_pb2.ListFilesRequest(codebase_id=self.codebase, path="missing")
        self.assertEqual(list(stub.ListFiles(missing).files), [])

    def test_uploads(self):
        chunk = codebase_pb2.UploadChunk
        metadata = chunk.Metadata
        good = chunk(metadata=metadata(codebase_id=self.codebase, file_path="a"))
        cases = [
            ([chunk(data=b"x")], "metadata must be sent first"),
            ([good, good], "metadata already received"),
            ([chunk(metadata=metadata(file_path="a"))], "codebase_id is required in metadata"),
            ([chunk(metadata=metadata(codebase_id=self.codebase))], "file_path is required in metadata"),
            ([], "no metadata received"),
        ]
        for chunks, message in cases:
            with self.subTest(message):
                self.fails(lambda: self.codebases.UploadFiles(iter(chunks)), Code.INVALID_ARGUMENT, message)
        unknown = chunk(metadata=metadata(codebase_id=UNKNOWN_CODEBASE, file_path="a"))
        self.fails(lambda: self.codebases.UploadFiles(iter([unknown])), Code.NOT_FOUND, "codebase not found")
        result = self.upload("checked", b"text")
        self.assertEqual(result.checksum, "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1")

    def test_states(self):
        stub = self.sandboxes
        calls = [
            (lambda id: stub.GetSandbox(sandbox_pb2.GetSandboxRequest(sandbox_id=id)), False),
            (lambda id: stub.DestroySandbox(sandbox_pb2.DestroySandboxRequest(sandbox_id=id)), False),
            (lambda id: stub.StopSandbox(sandbox_pb2.StopSandboxRequest(sandbox_id=id)), True),
            (lambda id: stub.Exec(sandbox_pb2.ExecRequest(sandbox_id=id, command="true")), True),
            (lambda id: stub.ExecStream(sandbox_pb2.ExecRequest(sandbox_id=id, command="true")), True),
            (lambda id: stub.CreateSession(sandbox_pb2.CreateSessionRequest(sandbox_id=id)), True),
        ]
        for index, (call, needs_running) in enumerate(calls):
            with self.subTest(index):
                self.fails(lambda: call(UNKNOWN_SANDBOX), Code.NOT_FOUND, "sandbox not found")
                if needs_running:
                    self.fails(lambda: call(self.pending), Code.FAILED_PRECONDITION, "sandbox is not running")
        start = sandbox_pb2.StartSandboxRequest(sandbox_id=self.running)
        self.fails(lambda: stub.StartSandbox(start), Code.FAILED_PRECONDITION, "sandbox is already running")
        create = sandbox_pb2.CreateSandboxRequest(codebase_id=UNKNOWN_CODEBASE)
        self.fails(lambda: stub.CreateSandbox(create), Code.NOT_FOUND, "codebase not found")
        empty = sandbox_pb2.ListSessionsRequest(sandbox_id=UNKNOWN_SANDBOX)
        self.assertEqual(list(stub.ListSessions(empty).sessions), [])

    def test_commands(self):
        stub = self.sandboxes
        request = sandbox_pb2.ExecRequest
        for call in (stub.Exec, stub.ExecStream):
            self.fails(lambda: call(request(sandbox_id=self.running)), Code.INVALID_ARGUMENT, "command is required")
        late = request(sandbox_id=self.running, command="echo x; sleep 20", timeout=Duration(nanos=200_000_000))
        self.fails(lambda: stub.Exec(late), Code.DEADLINE_EXCEEDED, "command timed out")
        stream = stub.ExecStream(request(sandbox_id=self.running, command="echo out; echo err >&2; exit 5"))
        types = {part.type: part.data for part in stream if part.data}
        output = sandbox_pb2.ExecOutput
        self.assertEqual(types, {output.OUTPUT_TYPE_STDOUT: b"out\n", output.OUTPUT_TYPE_STDERR: b"err\n"})

    def test_sessions(self):
        stub = self.sandboxes
        session = stub.CreateSession(sandbox_pb2.CreateSessionRequest(sandbox_id=self.running, shell="/bin/sh"))
        self.assertEqual((session.sandbox_id, session.status), (self.running, common_pb2.SESSION_STATUS_ACTIVE))
        command = sandbox_pb2.SessionExecRequest(session_id=session.id, command="cd /; pwd")
        self.assertEqual(stub.SessionExec(command).stdout, "/\n")
        streamed = stub.SessionExecStream(sandbox_pb2.SessionExecRequest(session_id=session.id, command="pwd"))
        self.assertEqual(b"".join(part.data for part in streamed), b"/\n")
        stub.DestroySession(sandbox_pb2.DestroySessionRequest(session_id=session.id))
        for id in (session.id, UNKNOWN_SESSION):
            exec_request = sandbox_pb2.SessionExecRequest(session_id=id, command="true")
            with self.subTest(id):
                self.fails(lambda: stub.SessionExec(exec_request), Code.NOT_FOUND, "session not found")
                self.fails(lambda: stub.SessionExecStream(exec_request), Code.NOT_FOUND, "session not found")


if __name__ == "__main__":
    unittest.main(verbosity=2)

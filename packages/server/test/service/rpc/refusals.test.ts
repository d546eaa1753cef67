import { describe, expect, test } from "vitest";
import { ADMIN, bench, call, refusalOf } from "./fixture.ts";

// No runtime is needed: what is listed here is refused before anybody is asked. A call of the runtime fails the test.

const codebaseId = "cb_0123456789abcdef";
const sandboxId = "sb_0123456789abcdef";
const sessionId = "sess_0123456789abcdef";
const metadata = (value: object) => ({ content: { case: "metadata", value } });
const data = { content: { case: "data", value: new Uint8Array([1]) } };
const rules = (...permissions: object[]) => [{ codebaseId, permissions }];
const good = { pattern: "*", permission: 3 };

type Row = [method: string, requests: object[], message: string];

const EMPTY_IDS: Row[] = [
  ...["GetCodebase", "DeleteCodebase", "DownloadFile", "ListFiles", "CompareManifest", "DownloadArchive"].map(
    (method): Row => [method, [{}], "codebase_id is required"],
  ),
  ...["DeleteFile", "RenameFile", "ListVersions", "GetVersion", "Rollback", "CreateSandbox"].map(
    (method): Row => [method, [{}], "codebase_id is required"],
  ),
  ...[
    "GetSandbox",
    "StartSandbox",
    "StopSandbox",
    "PauseSandbox",
    "ResumeSandbox",
    "DestroySandbox",
    "Exec",
    "ExecStream",
    "CreateSession",
  ].map((method): Row => [method, [{}], "sandbox_id is required"]),
  ...["ListSessions", "UpdatePermissions", "ExplainPath", "ListChanges", "DiffChanges", "ApplyChanges"].map(
    (method): Row => [method, [{}], "sandbox_id is required"],
  ),
  ...[
    "DiscardChanges",
    "ReadFile",
    "ListDirectory",
    "StatFile",
    "MakeDirectory",
    "RemoveFile",
    "MoveFile",
    "WatchFiles",
    "StartProcess",
    "ListProcesses",
    "AttachProcess",
    "SendInput",
    "CloseInput",
    "SignalProcess",
    "ResizeProcess",
    "WaitProcess",
    "CreateCodeContext",
    "ListCodeContexts",
    "RestartCodeContext",
    "InterruptCodeContext",
    "DeleteCodeContext",
    "RunCode",
  ].map((method): Row => [method, [{}], "sandbox_id is required"]),
  ...["GetSession", "DestroySession", "SessionExec", "SessionExecStream"].map(
    (method): Row => [method, [{}], "session_id is required"],
  ),
  ["RevokeKey", [{}], "key_id is required"],
];

const EMPTY_FIELDS: Row[] = [
  ["CreateCodebase", [{}], "name is required"],
  ["CreateCodebase", [{ name: "demo" }], "owner_id is required"],
  ["DownloadFile", [{ codebaseId }], "file_path is required"],
  ["DeleteFile", [{ codebaseId }], "file_path is required"],
  ["RenameFile", [{ codebaseId }], "from_path is required"],
  ["RenameFile", [{ codebaseId, fromPath: "a" }], "to_path is required"],
  ["Exec", [{ sandboxId }], "command is required"],
  ["ExecStream", [{ sandboxId }], "command is required"],
  ["Exec", [{ sandboxId, argv: ["", "x"] }], "argv[0] is required"],
  ["SessionExec", [{ sessionId }], "command is required"],
  ["SessionExecStream", [{ sessionId }], "command is required"],
  ["ExplainPath", [{ sandboxId }], "path is required"],
  ["ReadFile", [{ sandboxId }], "path is required"],
  ["MakeDirectory", [{ sandboxId }], "path is required"],
  ["RemoveFile", [{ sandboxId }], "path is required"],
  ["MoveFile", [{ sandboxId }], "from_path is required"],
  ["MoveFile", [{ sandboxId, fromPath: "a" }], "to_path is required"],
  ["CreateKey", [{ name: "ci" }], "owner_id is required"],
];

const STREAM_PROTOCOL: Row[] = [
  ...["UploadFiles", "UploadArchive", "WriteFile"].flatMap((method): Row[] => [
    [method, [], "no metadata received"],
    [method, [{}], "no metadata received"],
    [method, [data], "metadata must be sent first"],
  ]),
  ["UploadFiles", [metadata({ filePath: "a" })], "codebase_id is required in metadata"],
  ["UploadFiles", [metadata({ codebaseId })], "file_path is required in metadata"],
  ["UploadArchive", [metadata({})], "codebase_id is required in metadata"],
  ["WriteFile", [metadata({ path: "a" })], "sandbox_id is required in metadata"],
  ["WriteFile", [metadata({ sandboxId })], "path is required in metadata"],
  ["BatchUpload", [], "no begin received"],
  ["BatchUpload", [{ items: [{ entry: { path: "a" } }] }], "begin must be sent first"],
  ["BatchUpload", [{ begin: {} }], "codebase_id is required in begin"],
  ["ExecInteractive", [], "no start received"],
  ["ExecInteractive", [{}], "start must be sent first"],
  ["ExecInteractive", [{ input: { case: "stdin", value: new Uint8Array([1]) } }], "start must be sent first"],
  ["ExecInteractive", [{ input: { case: "end", value: true } }], "start must be sent first"],
  ["ExecInteractive", [{ input: { case: "start", value: {} } }], "sandbox_id is required in start"],
  ["ExecInteractive", [{ input: { case: "start", value: { sandboxId } } }], "command is required"],
  ...[{ stdin: "x" }, { stdinBytes: new Uint8Array([1]) }].map(
    (stdin): Row => [
      "ExecInteractive",
      [{ input: { case: "start", value: { sandboxId, command: "cat", ...stdin } } }],
      "start takes neither stdin nor stdin_bytes: send the input in messages of its own",
    ],
  ),
  ["GetPort", [{}], "sandbox_id is required"],
  ["WaitForPort", [{}], "sandbox_id is required"],
  ["ForwardPort", [], "no open received"],
  ["ForwardPort", [{ content: { case: "data", value: new Uint8Array([1]) } }], "open must be sent first"],
  ["ForwardPort", [{ content: { case: "open", value: {} } }], "sandbox_id is required in open"],
  ["OpenTerminal", [], "no open received"],
  ["OpenTerminal", [{ input: { case: "data", value: new Uint8Array([1]) } }], "open must be sent first"],
  ["OpenTerminal", [{}], "open must be sent first"],
  ["OpenTerminal", [{ input: { case: "open", value: {} } }], "sandbox_id is required in open"],
];

const RULES: Row[] = [
  [
    "CreateSandbox",
    rules(good, good, { pattern: "a" }),
    "permissions[2]: permission is required: none, view, read or write",
  ],
  [
    "CreateSandbox",
    rules(good, { pattern: "a", permission: 99 }),
    "permissions[1]: permission: 99 is not a known value",
  ],
  ["CreateSandbox", rules({ pattern: "a", permission: -1 }), "permissions[0]: permission: -1 is not a known value"],
  ["CreateSandbox", rules({ ...good, type: 9 }), "permissions[0]: type: 9 is not a known value"],
  [
    "UpdatePermissions",
    [{ sandboxId, permissions: [good, { pattern: "b" }] }],
    "permissions[1]: permission is required: none, view, read or write",
  ],
];

const NUMBERS: Row[] = [
  ["CreateSandbox", [{ codebaseId, expiresIn: { seconds: -1n } }], "expires_in must not be negative"],
  ["CreateSandbox", [{ codebaseId, expiresIn: { seconds: 315_576_000_001n } }], "expires_in is out of range"],
  ["CreateSandbox", [{ codebaseId, resources: { memoryBytes: -1n } }], "resources.memory_bytes must not be negative"],
  ["CreateSandbox", [{ codebaseId, resources: { diskFiles: 2n ** 63n - 1n } }], "resources.disk_files is too large"],
  ["CreateSandbox", [{ codebaseId, codebaseVersion: -1n }], "codebase_version must not be negative"],
  ["CreateSandbox", [{ codebaseId, runtime: 7 }], "runtime: 7 is not a known value"],
  ["CreateSandbox", [{ codebaseId, network: 7 }], "network: 7 is not a known value"],
  ["CreateSandbox", [{ codebaseId, sync: 7 }], "sync: 7 is not a known value"],
  ["ListSandboxes", [{ status: 9 }], "status: 9 is not a known value"],
  ["Exec", [{ sandboxId, command: "x", timeout: { seconds: 0n, nanos: -1 } }], "timeout must not be negative"],
  ["Exec", [{ sandboxId, command: "x", timeout: { seconds: 2n ** 62n } }], "timeout is out of range"],
  ["Exec", [{ sandboxId, command: "x", timeout: { nanos: 1_000_000_000 } }], "timeout is out of range"],
  ["SessionExec", [{ sessionId, command: "x", timeout: { seconds: -5n } }], "timeout must not be negative"],
  ["CreateSession", [{ sandboxId, idleTimeout: { seconds: -5n } }], "idle_timeout must not be negative"],
  ["Exec", [{ sandboxId, command: "x", argv: ["y"] }], "command and argv exclude each other"],
  [
    "Exec",
    [{ sandboxId, command: "x", stdin: "a", stdinBytes: new Uint8Array([1]) }],
    "stdin and stdin_bytes exclude each other",
  ],
  ["DownloadFile", [{ codebaseId, filePath: "a", version: -1n }], "version must not be negative"],
  ["ListFiles", [{ codebaseId, version: -1n }], "version must not be negative"],
  ["UploadFiles", [metadata({ codebaseId, filePath: "a", totalSize: -1n })], "total_size must not be negative"],
  [
    "UploadFiles",
    [metadata({ codebaseId, filePath: "a", mode: 0o100644 })],
    "mode must be permission bits only, 07777 at most",
  ],
  [
    "UploadFiles",
    [metadata({ codebaseId, filePath: "a", symlinkTarget: "b" }), data],
    "a symbolic link has no data: send its metadata alone",
  ],
  ["CompareManifest", [{ codebaseId, entries: [{ path: "a" }, {}] }], "entries[1]: path is required"],
  ["CompareManifest", [{ codebaseId, entries: [{ path: "a", kind: 9 }] }], "entries[0]: kind: 9 is not a known value"],
  ["CompareManifest", [{ codebaseId, entries: [{ path: "a", size: -1n }] }], "entries[0]: size must not be negative"],
  ["CompareManifest", [{ codebaseId, entries: [{ path: "a", kind: 3 }] }], "entries[0]: symlink_target is required"],
  ["BatchUpload", [{ begin: { codebaseId, baseVersion: -1n } }], "base_version must not be negative"],
  ["ListEvents", [{ after: { seconds: 2n ** 60n } }], "after is out of range"],
  ["ListEvents", [{ before: { nanos: -1 } }], "before is out of range"],
  ["WatchEvents", [{ afterSequence: -1n }], "after_sequence must not be negative"],
  ["CreateKey", [{ ownerId: "bob", role: 9 }], "role: 9 is not a known value"],
  ["WaitForPort", [{ sandboxId, port: 0 }], "port must be from 1 to 65535, not 0"],
  ["WaitForPort", [{ sandboxId, port: 65_536 }], "port must be from 1 to 65535, not 65536"],
  [
    "ForwardPort",
    [{ content: { case: "open", value: { sandboxId, port: 70_000 } } }],
    "port must be from 1 to 65535, not 70000",
  ],
  [
    "OpenTerminal",
    [{ input: { case: "open", value: { sandboxId, size: { columns: 65_536, rows: 1 } } } }],
    "a terminal has at most 65535 columns and rows",
  ],
];

describe.each([
  ["an empty id", EMPTY_IDS],
  ["an empty field", EMPTY_FIELDS],
  ["a message out of order", STREAM_PROTOCOL],
  ["a rule", RULES],
  ["a value", NUMBERS],
])("%s", (_title, rows) => {
  test.each(rows.map(([method, requests, message]) => ({ method, requests, message })))(
    "$method: $message",
    async ({ method, requests, message }) => {
      const { transport, log } = bench({}, { caller: ADMIN });
      expect(await refusalOf(call(transport, method, requests))).toMatchObject({
        code: "InvalidArgument",
        message,
        reason: "INVALID_ARGUMENT",
      });
      expect(log).toEqual([]);
    },
  );
});

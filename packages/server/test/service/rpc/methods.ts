import { PassThrough } from "node:stream";
import { isDeepStrictEqual } from "node:util";
import type { BatchResult } from "../../../src/runtime/codebases/api.ts";
import type {
  CodeContext,
  CodePart,
  ExecAnswer,
  ExecEnd,
  SandboxChange,
  SandboxProcess,
  SandboxProcessCalls,
  ViewEntry,
} from "../../../src/runtime/sandboxes/api.ts";
import type {
  CodebaseRecord,
  EntryRecord,
  EventRecord,
  KeyRecord,
  SandboxRecord,
  SecretRecord,
  SessionRecord,
  SnapshotRecord,
  VersionRecord,
} from "../../../src/runtime/store/store.ts";
import { streamOf } from "./fixture.ts";

// One example of every method: what a client sends, what the runtime is asked and answers, what the client gets.

export interface MethodExample {
  readonly requests: readonly object[];
  /** "codebases.get", and its arguments after the caller; signals as "signal", streams as what came out of them. */
  readonly asks?: readonly [string, ...unknown[]];
  readonly answer?: unknown;
  readonly responses: readonly object[];
}

const AT = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
const AT_JSON = "2026-01-02T03:04:05.678Z";

export const CODEBASE: CodebaseRecord = {
  id: "cb_0123456789abcdef",
  name: "demo",
  ownerId: "alice",
  size: 2 ** 40,
  fileCount: 3,
  createdAtMs: AT,
  updatedAtMs: AT + 1,
  version: 7,
};
const CODEBASE_JSON = {
  id: CODEBASE.id,
  name: "demo",
  ownerId: "alice",
  size: "1099511627776",
  fileCount: 3,
  createdAt: AT_JSON,
  updatedAt: "2026-01-02T03:04:05.679Z",
  version: "7",
};

const CONTEXT: CodeContext = {
  ...{ id: "ctx_1", language: "bash", interpreter: "/bin/bash", workdir: "/w", isDefault: true },
  ...{ createdAtMs: AT, executionCount: 3, isBusy: true },
};
const CONTEXT_JSON = {
  ...{ id: "ctx_1", sandboxId: "sb_0123456789abcdef", language: "CODE_LANGUAGE_BASH", interpreter: "/bin/bash" },
  ...{ workdir: "/w", isDefault: true, createdAt: AT_JSON, executionCount: 3, busy: true },
};
const CODE_PARTS: readonly CodePart[] = [
  { kind: "started", context: CONTEXT.id, executionCount: 3, restarted: "it ended" },
  { kind: "stdout", data: Buffer.from("out") },
  { kind: "result", result: { isMain: true, data: { "text/plain": "1" }, dropped: ["text/html"] } },
  { kind: "error", error: { name: "E", value: "v", traceback: "t" } },
  {
    kind: "exit",
    end: {
      ...{ exitCode: 1, timedOut: true, truncated: false, outOfMemory: false, contextLost: true, durationMs: 250 },
      ...{ sessionClosed: false, syncedVersion: 4, syncProblems: ["no"] },
    },
  },
];

const ENTRIES: readonly EntryRecord[] = [
  { path: "src", kind: "directory", mode: 0o755, size: 0, sha256: "", target: "", modifiedAtMs: AT, version: 1 },
  { path: "src/a.ts", kind: "file", mode: 0o644, size: 12, sha256: "ab", target: "", modifiedAtMs: AT, version: 2 },
  { path: "src/l", kind: "symlink", mode: 0o777, size: 0, sha256: "", target: "a.ts", modifiedAtMs: AT, version: 2 },
];

const VERSION: VersionRecord = {
  codebaseId: CODEBASE.id,
  version: 7,
  origin: "sync",
  sandboxId: "sb_1",
  message: "why",
  createdAtMs: AT,
  filesChanged: 2,
  size: 100,
  fileCount: 3,
  conflicts: [{ path: "a", replacedVersion: 6, replacedSandboxId: "sb_2" }],
};
const VERSION_JSON = {
  codebaseId: CODEBASE.id,
  version: "7",
  origin: "VERSION_ORIGIN_SYNC",
  sandboxId: "sb_1",
  message: "why",
  createdAt: AT_JSON,
  filesChanged: 2,
  size: "100",
  fileCount: 3,
  conflicts: [{ path: "a", replacedVersion: "6", replacedSandboxId: "sb_2" }],
};

const BATCH: BatchResult = { version: 8, filesChanged: 2, bytesReceived: 5 };
const BATCH_JSON = { codebaseId: CODEBASE.id, version: "8", filesChanged: 2, bytesReceived: "5" };

const SECRET: SecretRecord = {
  ...{ ownerId: "bob", name: "KEY", hosts: ["api.test"], place: "bearer", sealed: "1.hush" },
  ...{ createdAtMs: AT, updatedAtMs: AT },
};
const { sealed: _, createdAtMs: __, updatedAtMs: ___, ...SECRET_FACTS } = SECRET;
const SECRET_JSON = { ...SECRET_FACTS, createdAt: AT_JSON, updatedAt: AT_JSON };

const SNAPSHOT: SnapshotRecord = {
  ...{ id: "snap_0123456789abcdef0123456789abcdef", ownerId: "alice", sandboxId: "sb_0123456789abcdef" },
  ...{ codebaseId: CODEBASE.id, codebaseVersion: 3, label: "before", layer: "layer_1", createdAtMs: AT },
  settings: {
    ...{ rules: [], runtime: "bwrap", image: "", network: "none", networkRules: [], resources: {}, env: { A: "b" } },
    ...{ sync: "manual", revocable: false, workspaceHome: "", idlePauseMs: 0 },
  },
};
const SNAPSHOT_JSON = {
  ...{ id: SNAPSHOT.id, ownerId: "alice", sandboxId: SNAPSHOT.sandboxId, codebaseId: CODEBASE.id },
  ...{ codebaseVersion: "3", label: "before", createdAt: AT_JSON },
};

export const SANDBOX: SandboxRecord = {
  id: "sb_0123456789abcdef",
  ownerId: "alice",
  codebaseId: CODEBASE.id,
  codebaseVersion: 0,
  rules: [
    { pattern: "**/*", permission: "read", type: "glob" },
    { pattern: "/out/", permission: "write", type: "directory", priority: 5 },
  ],
  status: "RUNNING",
  statusReason: "",
  labels: { team: "x" },
  runtime: "bwrap",
  image: "",
  network: "filtered",
  networkRules: [
    { host: "pypi.org", ports: [443] },
    { host: "*.example.com", ports: [443, 80], methods: ["GET"], paths: ["/v1/*"] },
  ],
  secrets: [{ name: "KEPT" }, { name: "OWN", own: { hosts: ["api.test"], place: "bearer", sealed: "1.hush" } }],
  sync: "on-exec",
  revocable: false,
  home: "tools",
  workspaceHome: "/home/user",
  pauseAtExpiry: true,
  resources: { memoryBytes: 1024, pidsLimit: 10 },
  env: { SECRET: "hush" },
  idlePauseMs: 600_000,
  lastProcessNumber: 0,
  createdAtMs: AT,
  startedAtMs: AT,
};
const SANDBOX_JSON = {
  id: SANDBOX.id,
  codebaseId: CODEBASE.id,
  permissions: [
    { pattern: "**/*", type: "PATTERN_TYPE_GLOB", permission: "PERMISSION_READ" },
    { pattern: "/out/", type: "PATTERN_TYPE_DIRECTORY", permission: "PERMISSION_WRITE", priority: 5 },
  ],
  status: "SANDBOX_STATUS_RUNNING",
  labels: { team: "x" },
  createdAt: AT_JSON,
  startedAt: AT_JSON,
  runtime: "RUNTIME_TYPE_BWRAP",
  resources: { memoryBytes: "1024", pidsLimit: "10" },
  ownerId: "alice",
  sync: "SYNC_MODE_ON_EXEC",
  network: "NETWORK_MODE_FILTERED",
  networkRules: [
    { host: "pypi.org", ports: [443] },
    { host: "*.example.com", ports: [443, 80], methods: ["GET"], paths: ["/v1/*"] },
  ],
  idlePause: "600s",
  home: "tools",
  secrets: ["KEPT", "OWN"],
  workspaceHome: "/home/user",
  pauseAtExpiry: true,
};

const SESSION: SessionRecord = {
  id: "sess_0123456789abcdef",
  sandboxId: SANDBOX.id,
  ownerId: "alice",
  status: "CLOSED",
  shell: "/bin/bash",
  createdAtMs: AT,
  closedAtMs: AT + 1000,
  closeReason: "idle",
};
const SESSION_JSON = {
  id: SESSION.id,
  sandboxId: SANDBOX.id,
  status: "SESSION_STATUS_CLOSED",
  shell: "/bin/bash",
  createdAt: AT_JSON,
  closedAt: "2026-01-02T03:04:06.678Z",
  closeReason: "idle",
};

export const END: ExecEnd = {
  exitCode: 3,
  signal: "",
  timedOut: false,
  truncated: false,
  outOfMemory: false,
  durationMs: 12.5,
  sessionClosed: false,
  syncedVersion: 9,
  syncProblems: ["a was left out"],
};
const END_JSON = { exitCode: 3, duration: "0.012500s", syncedVersion: "9", syncProblems: ["a was left out"] };
export const ANSWER: ExecAnswer = { ...END, stdout: Buffer.from("out"), stderr: Buffer.from("err") };
const RESULT_JSON = { ...END_JSON, stdout: "out", stderr: "err" };
const PARTS = [
  { kind: "stdout", data: Buffer.from("a") },
  { kind: "stderr", data: Buffer.from("b") },
  { kind: "exit", end: END },
];
const OUTPUTS_JSON = [
  { type: "OUTPUT_TYPE_STDOUT", data: "YQ==" },
  { type: "OUTPUT_TYPE_STDERR", data: "Yg==" },
  END_JSON,
];

const CHANGE: SandboxChange = { kind: "renamed", path: "/b", oldPath: "/a", type: "file", size: 4, sensitive: true };
const CHANGE_JSON = {
  kind: "CHANGE_KIND_RENAMED",
  path: "/b",
  oldPath: "/a",
  type: "ENTRY_KIND_FILE",
  size: "4",
  sensitive: true,
};

const VIEW: ViewEntry = {
  path: "/src/a.ts",
  kind: "file",
  size: 12,
  mode: 0o100644,
  target: "",
  modifiedAtMs: AT + 0.25,
  permission: "read",
};
const VIEW_JSON = {
  path: "src/a.ts",
  name: "a.ts",
  size: "12",
  modifiedAt: "2026-01-02T03:04:05.678250Z",
  mode: 0o644,
  permission: "PERMISSION_READ",
};

const EVENT: EventRecord = {
  sequence: 5,
  timeMs: AT,
  type: "permission_denied",
  level: "warn",
  ownerId: "alice",
  keyId: "",
  sandboxId: SANDBOX.id,
  codebaseId: "",
  sessionId: "",
  data: { path: "/secret", count: 2, nothing: undefined },
  hash: "ff",
};
const EVENT_JSON = {
  sequence: "5",
  time: AT_JSON,
  type: "permission_denied",
  level: "warn",
  ownerId: "alice",
  sandboxId: SANDBOX.id,
  data: { path: "/secret", count: 2 },
  hash: "ff",
};

const KEY: KeyRecord = {
  id: "key_1",
  ownerId: "bob",
  role: "read-only",
  name: "ci",
  secretHash: "never shown",
  createdAtMs: AT,
  lastUsedAtMs: AT,
};
const KEY_JSON = {
  id: "key_1",
  ownerId: "bob",
  role: "ROLE_READ_ONLY",
  name: "ci",
  createdAt: AT_JSON,
  lastUsedAt: AT_JSON,
};

const codebaseId = CODEBASE.id;
const sandboxId = SANDBOX.id;
const sessionId = SESSION.id;
const bytes = (text: string) => new Uint8Array(Buffer.from(text));

const PROCESS = {
  number: 2,
  kind: "started",
  command: ["npm", "start"],
  tag: "web",
  startedAtMs: AT,
  endedAtMs: undefined,
  outcome: undefined,
} as unknown as SandboxProcess;
const PROCESS_JSON = {
  number: 2,
  sandboxId,
  tag: "web",
  ownerId: "alice",
  kind: "PROCESS_KIND_STARTED",
  startedAt: AT_JSON,
  state: "PROCESS_STATE_RUNNING",
};
const ENDED_PROCESS: SandboxProcess = { ...PROCESS, command: "sleep 1", endedAtMs: AT, outcome: END };
const ENDED_PROCESS_JSON = {
  ...PROCESS_JSON,
  command: "sleep 1",
  endedAt: AT_JSON,
  state: "PROCESS_STATE_ENDED",
  exitCode: 3,
};

export function processesWith(calls: Partial<SandboxProcessCalls>): SandboxProcessCalls {
  return { ownerId: "alice", ...calls } as SandboxProcessCalls;
}

function expectExactly(asked: unknown, wanted: unknown): void {
  if (!isDeepStrictEqual(asked, wanted)) throw new Error(`asked for ${JSON.stringify(asked)}`);
}

export const EXAMPLES: Readonly<Record<string, MethodExample>> = {
  CreateCodebase: {
    requests: [{ name: "demo" }],
    asks: ["codebases.create", { name: "demo", ownerId: "" }],
    answer: CODEBASE,
    responses: [CODEBASE_JSON],
  },
  GetCodebase: {
    requests: [{ codebaseId }],
    asks: ["codebases.get", codebaseId],
    answer: CODEBASE,
    responses: [CODEBASE_JSON],
  },
  ListCodebases: {
    requests: [{ ownerId: "alice", pageSize: -3, pageToken: "t" }],
    asks: ["codebases.list", { ownerId: "alice", pageSize: -3, pageToken: "t" }],
    answer: { items: [CODEBASE], nextPageToken: "n" },
    responses: [{ codebases: [CODEBASE_JSON], nextPageToken: "n" }],
  },
  DeleteCodebase: {
    requests: [{ codebaseId, force: true }],
    asks: ["sandboxes.deleteCodebase", codebaseId, { force: true }],
    responses: [{}],
  },
  UploadFiles: {
    requests: [
      {
        content: {
          case: "metadata",
          value: { codebaseId, filePath: "src/a.ts", totalSize: 5n, mode: 0o755, checksum: "ab" },
        },
      },
      { content: { case: "data", value: bytes("he") } },
      {},
      { content: { case: "data", value: bytes("") } },
      { content: { case: "data", value: bytes("llo") } },
    ],
    asks: [
      "codebases.upload",
      codebaseId,
      "src/a.ts",
      ["he", "llo"],
      { mode: 0o755, totalSize: 5, sha256: "ab", signal: "signal" },
    ],
    answer: { size: 5, sha256: "ab", version: 8 },
    responses: [{ codebaseId, filePath: "src/a.ts", size: "5", checksum: "ab", version: "8" }],
  },
  DownloadFile: {
    requests: [{ codebaseId, filePath: "src/a.ts", version: 3n }],
    asks: ["codebases.download", codebaseId, "src/a.ts", { version: 3, signal: "signal" }],
    answer: () => ({ entry: ENTRIES[1], content: streamOf([bytes("a"), bytes("b")]) }),
    responses: [{ data: "YQ==" }, { data: "Yg==" }],
  },
  ListFiles: {
    requests: [{ codebaseId, path: "/src", recursive: true, pageSize: 10 }],
    asks: [
      "codebases.listFiles",
      codebaseId,
      { path: "/src", recursive: true, version: 0, pageSize: 10, pageToken: "" },
    ],
    answer: { items: ENTRIES, nextPageToken: "" },
    responses: [
      {
        files: [
          { path: "/src", name: "src", isDir: true, modifiedAt: AT_JSON, mode: 0o755 },
          { path: "/src/a.ts", name: "a.ts", size: "12", modifiedAt: AT_JSON, mode: 0o644, checksum: "ab" },
          { path: "/src/l", name: "l", modifiedAt: AT_JSON, mode: 0o777, symlinkTarget: "a.ts" },
        ],
      },
    ],
  },
  CompareManifest: {
    requests: [
      {
        codebaseId,
        entries: [
          { path: "a", size: 3n, checksum: "ab" },
          { path: "d", kind: 2, mode: 0o700 },
          { path: "l", kind: 3, symlinkTarget: "a" },
          { path: "x", kind: 4 },
        ],
      },
    ],
    asks: [
      "codebases.compare",
      codebaseId,
      [
        { kind: "file", path: "a", mode: 0, size: 3, sha256: "ab" },
        { kind: "directory", path: "d", mode: 0o700 },
        { kind: "symlink", path: "l", target: "a" },
        { kind: "absent", path: "x" },
      ],
    ],
    answer: ["a"],
    responses: [{ missing: ["a"] }],
  },
  BatchUpload: {
    requests: [
      {
        begin: { codebaseId, replaceAll: true, baseVersion: 7n, message: "why" },
        items: [{ entry: { path: "a", kind: 1, size: 4n, checksum: "ab" }, data: bytes("he") }],
      },
      { items: [{ data: bytes("y!") }, { entry: { path: "d", kind: 2 } }] },
    ],
    asks: [
      "codebases.batch",
      codebaseId,
      [
        { entry: { kind: "file", path: "a", mode: 0, size: 4, sha256: "ab" }, data: bytes("he") },
        { data: bytes("y!") },
        { entry: { kind: "directory", path: "d", mode: 0 } },
      ],
      { replaceAll: true, baseVersion: 7, message: "why", signal: "signal" },
    ],
    answer: BATCH,
    responses: [BATCH_JSON],
  },
  UploadArchive: {
    requests: [
      { content: { case: "metadata", value: { codebaseId, message: "m" } } },
      { content: { case: "data", value: bytes("tar") } },
    ],
    asks: ["codebases.uploadArchive", codebaseId, ["tar"], { replaceAll: false, message: "m", signal: "signal" }],
    answer: BATCH,
    responses: [BATCH_JSON],
  },
  DownloadArchive: {
    requests: [{ codebaseId, path: "src" }],
    asks: ["codebases.downloadArchive", codebaseId, { path: "src", version: 0, signal: "signal" }],
    answer: () => streamOf([bytes("tar")]),
    responses: [{ data: "dGFy" }],
  },
  DeleteFile: {
    requests: [{ codebaseId, filePath: "a", recursive: true }],
    asks: ["codebases.deleteFile", codebaseId, "a", { recursive: true }],
    answer: BATCH,
    responses: [BATCH_JSON],
  },
  RenameFile: {
    requests: [{ codebaseId, fromPath: "a", toPath: "b" }],
    asks: ["codebases.renameFile", codebaseId, "a", "b"],
    answer: BATCH,
    responses: [BATCH_JSON],
  },
  ListVersions: {
    requests: [{ codebaseId, pageSize: 2, pageToken: "t" }],
    asks: ["codebases.listVersions", codebaseId, { pageSize: 2, pageToken: "t" }],
    answer: { items: [VERSION], nextPageToken: "n" },
    responses: [{ versions: [VERSION_JSON], nextPageToken: "n" }],
  },
  GetVersion: {
    requests: [{ codebaseId, version: 7n }],
    asks: ["codebases.getVersion", codebaseId, 7],
    answer: { version: VERSION, changes: [{ kind: "added", path: "a", size: 0, sensitive: true }] },
    responses: [{ ...VERSION_JSON, changes: [{ kind: "CHANGE_KIND_ADDED", path: "a", sensitive: true }] }],
  },
  Rollback: {
    requests: [{ codebaseId, version: 3n }],
    asks: ["codebases.rollback", codebaseId, 3],
    answer: VERSION,
    responses: [VERSION_JSON],
  },

  CreateSandbox: {
    requests: [
      {
        codebaseId,
        permissions: [
          { pattern: "**/*", type: 1, permission: 3 },
          { pattern: "/out/", permission: 4, priority: 5 },
          { pattern: "/x", type: 3, permission: 1, priority: -1 },
        ],
        expiresIn: { seconds: 60n, nanos: 1 },
        labels: { team: "x" },
        runtime: 2,
        image: "debian",
        resources: { memoryBytes: 1024n, pidsLimit: 10n },
        sync: 2,
        network: 4,
        networkRules: [
          { host: "github.com:22" },
          { host: "a.example.com", ports: [443], methods: ["GET"], paths: ["/v1/*"] },
        ],
        networkPresets: ["npm"],
        secrets: [{ name: "KEPT" }, { name: "OWN", value: "hush-hush", hosts: ["api.test"], place: "bearer" }],
        codebaseVersion: 4n,
        preset: "agent-safe",
        revocable: true,
        home: "tools",
        workspaceHome: "/home/user",
        pauseAtExpiry: true,
        env: { A: "b" },
        idlePause: { seconds: 0n, nanos: 0 },
      },
    ],
    asks: [
      "sandboxes.create",
      {
        codebaseId,
        codebaseVersion: 4,
        rules: [
          { pattern: "**/*", permission: "read", priority: 0 },
          { pattern: "/out/", permission: "write", priority: 5 },
          { pattern: "/x", permission: "none", type: "file", priority: -1 },
        ],
        preset: "agent-safe",
        expiresInMs: 60_001,
        labels: { team: "x" },
        runtime: "docker",
        image: "debian",
        resources: { memoryBytes: 1024, pidsLimit: 10 },
        sync: "manual",
        network: "filtered",
        networkList: {
          allow: [
            { host: "github.com:22" },
            { host: "a.example.com", ports: [443], methods: ["GET"], paths: ["/v1/*"] },
          ],
          presets: ["npm"],
        },
        secrets: [
          { name: "KEPT", value: undefined, hosts: [], place: "" },
          { name: "OWN", value: "hush-hush", hosts: ["api.test"], place: "bearer" },
        ],
        revocable: true,
        home: "tools",
        workspaceHome: "/home/user",
        pauseAtExpiry: true,
        env: { A: "b" },
        idlePauseMs: 0,
      },
      "signal",
    ],
    answer: SANDBOX,
    responses: [SANDBOX_JSON],
  },
  GetSandbox: {
    requests: [{ sandboxId }],
    asks: ["sandboxes.get", sandboxId],
    answer: {
      ...SANDBOX,
      status: "ERROR",
      statusReason: "the disk is full",
      resources: {},
      stoppedAtMs: AT,
      expiresAtMs: AT,
      codebaseVersion: 3,
    },
    responses: [
      {
        ...Object.fromEntries(Object.entries(SANDBOX_JSON).filter(([name]) => name !== "resources")),
        status: "SANDBOX_STATUS_ERROR",
        statusReason: "the disk is full",
        stoppedAt: AT_JSON,
        expiresAt: AT_JSON,
        codebaseVersion: "3",
      },
    ],
  },
  ListSandboxes: {
    requests: [{ codebaseId, ownerId: "alice", status: 2, labels: { team: "x" }, pageSize: 5, pageToken: "t" }],
    asks: [
      "sandboxes.list",
      { codebaseId, ownerId: "alice", status: "RUNNING", labels: { team: "x" }, pageSize: 5, pageToken: "t" },
    ],
    answer: { items: [SANDBOX], nextPageToken: "n" },
    responses: [{ sandboxes: [SANDBOX_JSON], nextPageToken: "n" }],
  },
  StartSandbox: {
    requests: [{ sandboxId }],
    asks: ["sandboxes.start", sandboxId, "signal"],
    answer: SANDBOX,
    responses: [SANDBOX_JSON],
  },
  StopSandbox: {
    requests: [{ sandboxId }],
    asks: ["sandboxes.stop", sandboxId],
    answer: SANDBOX,
    responses: [SANDBOX_JSON],
  },
  PauseSandbox: {
    requests: [{ sandboxId }],
    asks: ["sandboxes.pause", sandboxId],
    answer: { ...SANDBOX, status: "PAUSED", statusReason: "idle" },
    responses: [{ ...SANDBOX_JSON, status: "SANDBOX_STATUS_PAUSED", statusReason: "idle" }],
  },
  ResumeSandbox: {
    requests: [{ sandboxId }],
    asks: ["sandboxes.resume", sandboxId],
    answer: { ...SANDBOX, idlePauseMs: 0 },
    responses: [Object.fromEntries(Object.entries(SANDBOX_JSON).filter(([name]) => name !== "idlePause"))],
  },
  DestroySandbox: { requests: [{ sandboxId }], asks: ["sandboxes.destroy", sandboxId], responses: [{}] },
  Exec: {
    requests: [
      {
        sandboxId,
        command: "make",
        stdin: "in",
        env: { A: "b" },
        workdir: "/w",
        timeout: { seconds: 1n, nanos: 500_000_000 },
      },
    ],
    asks: [
      "sandboxes.exec",
      sandboxId,
      { command: "make", stdin: Buffer.from("in"), env: { A: "b" }, workdir: "/w", timeoutMs: 1500, signal: "signal" },
    ],
    answer: ANSWER,
    responses: [RESULT_JSON],
  },
  ExecStream: {
    requests: [
      { sandboxId, argv: ["ls", "-l"], stdinBytes: new Uint8Array([0xff]), timeout: { seconds: 0n, nanos: 0 } },
    ],
    asks: [
      "sandboxes.execStream",
      sandboxId,
      { command: ["ls", "-l"], stdin: new Uint8Array([0xff]), env: {}, workdir: "", signal: "signal" },
    ],
    answer: () => streamOf(PARTS),
    responses: OUTPUTS_JSON,
  },
  ExecInteractive: {
    requests: [
      { input: { case: "start", value: { sandboxId, command: "cat", env: { A: "b" }, timeout: { seconds: 2n } } } },
      { input: { case: "stdin", value: bytes("he") } },
      {},
      { input: { case: "stdin", value: bytes("") } },
      { input: { case: "end", value: false } },
      { input: { case: "stdin", value: bytes("llo") } },
      { input: { case: "end", value: true } },
      { input: { case: "stdin", value: bytes("never read") } },
    ],
    asks: [
      "sandboxes.execStream",
      sandboxId,
      { command: "cat", stdin: ["he", "llo"], env: { A: "b" }, workdir: "", timeoutMs: 2000, signal: "signal" },
    ],
    answer: () => streamOf(PARTS),
    responses: OUTPUTS_JSON,
  },
  CreateSession: {
    requests: [{ sandboxId, shell: "/bin/sh", env: { A: "b" }, workdir: "/w", idleTimeout: { seconds: 9n } }],
    asks: [
      "sandboxes.createSession",
      sandboxId,
      { shell: "/bin/sh", env: { A: "b" }, workdir: "/w", idleTimeoutMs: 9000 },
      "signal",
    ],
    answer: SESSION,
    responses: [SESSION_JSON],
  },
  GetSession: {
    requests: [{ sessionId }],
    asks: ["sandboxes.getSession", sessionId],
    answer: SESSION,
    responses: [SESSION_JSON],
  },
  ListSessions: {
    requests: [{ sandboxId: "sb_unknown" }],
    asks: ["sandboxes.listSessions", "sb_unknown"],
    answer: [],
    responses: [{}],
  },
  DestroySession: { requests: [{ sessionId }], asks: ["sandboxes.destroySession", sessionId], responses: [{}] },
  SessionExec: {
    requests: [{ sessionId, command: "pwd", timeout: { seconds: 2n } }],
    asks: ["sandboxes.sessionExec", sessionId, { command: "pwd", timeoutMs: 2000, signal: "signal" }],
    answer: { ...ANSWER, sessionClosed: true, signal: "SIGKILL", outOfMemory: true, truncated: true },
    responses: [{ ...RESULT_JSON, sessionClosed: true, signal: "SIGKILL", outOfMemory: true, truncated: true }],
  },
  SessionExecStream: {
    requests: [{ sessionId, command: "pwd" }],
    asks: ["sandboxes.sessionExecStream", sessionId, { command: "pwd", signal: "signal" }],
    answer: () => streamOf(PARTS),
    responses: OUTPUTS_JSON,
  },
  UpdatePermissions: {
    requests: [{ sandboxId, permissions: [{ pattern: "*.md", permission: 2 }], preset: "view-only" }],
    asks: [
      "sandboxes.updatePermissions",
      sandboxId,
      { rules: [{ pattern: "*.md", permission: "view", priority: 0 }], preset: "view-only" },
    ],
    answer: SANDBOX,
    responses: [SANDBOX_JSON],
  },
  UpdateNetwork: {
    requests: [{ sandboxId, networkRules: [{ host: "pypi.org" }], networkPresets: ["npm"] }],
    asks: ["sandboxes.updateNetwork", sandboxId, { allow: [{ host: "pypi.org" }], presets: ["npm"] }],
    answer: SANDBOX,
    responses: [SANDBOX_JSON],
  },
  UpdateExpiry: {
    requests: [{ sandboxId, expiresIn: { seconds: 60n, nanos: 500_000_000 }, extendOnly: true }],
    asks: ["sandboxes.updateExpiry", sandboxId, { expiresInMs: 60_500, extendOnly: true }],
    answer: SANDBOX,
    responses: [SANDBOX_JSON],
  },
  SnapshotSandbox: {
    requests: [{ sandboxId, label: "before" }],
    asks: ["sandboxes.snapshot", sandboxId, { label: "before" }],
    answer: SNAPSHOT,
    responses: [SNAPSHOT_JSON],
  },
  ListSnapshots: {
    requests: [{ sandboxId, ownerId: "bob" }],
    asks: ["sandboxes.listSnapshots", { sandboxId, ownerId: "bob" }],
    answer: [SNAPSHOT],
    responses: [{ snapshots: [SNAPSHOT_JSON] }],
  },
  RestoreSandbox: {
    requests: [{ sandboxId, snapshotId: SNAPSHOT.id, onlyIdle: true }],
    asks: ["sandboxes.restore", sandboxId, { snapshotId: SNAPSHOT.id, onlyIdle: true }],
    answer: SANDBOX,
    responses: [SANDBOX_JSON],
  },
  DeleteSnapshot: {
    requests: [{ snapshotId: SNAPSHOT.id }],
    asks: ["sandboxes.deleteSnapshot", SNAPSHOT.id],
    responses: [{}],
  },
  ForkSandbox: {
    requests: [{ sandboxId, snapshotId: SNAPSHOT.id, count: 2, settings: { labels: { try: "1" } } }],
    asks: [
      "sandboxes.fork",
      sandboxId,
      {
        ...{ snapshotId: SNAPSHOT.id, count: 2, signal: "signal" },
        request: {
          ...{
            codebaseId: "",
            codebaseVersion: 0,
            rules: [],
            preset: "",
            labels: { try: "1" },
            image: "",
            resources: {},
          },
          ...{
            revocable: false,
            env: {},
            home: "",
            pauseAtExpiry: false,
            workspaceHome: "",
            networkList: { allow: [], presets: [] },
            secrets: [],
          },
        },
      },
    ],
    answer: [SANDBOX],
    responses: [{ sandboxes: [SANDBOX_JSON] }],
  },
  ListHomes: {
    requests: [{ ownerId: "bob" }],
    asks: ["sandboxes.listHomes", "bob"],
    answer: [{ name: "tools", ownerId: "bob", sandboxId }],
    responses: [{ homes: [{ name: "tools", ownerId: "bob", sandboxId }] }],
  },
  PutSecret: {
    requests: [{ name: "KEY", value: "hush-hush", hosts: ["api.test"], place: "bearer", ownerId: "bob" }],
    asks: ["secrets.put", { name: "KEY", value: "hush-hush", hosts: ["api.test"], place: "bearer", ownerId: "bob" }],
    answer: SECRET,
    responses: [SECRET_JSON],
  },
  ListSecrets: {
    requests: [{ ownerId: "bob" }],
    asks: ["secrets.list", "bob"],
    answer: [SECRET],
    responses: [{ secrets: [SECRET_JSON] }],
  },
  DeleteSecret: {
    requests: [{ name: "KEY", ownerId: "bob" }],
    asks: ["secrets.delete", "bob", "KEY"],
    responses: [{}],
  },
  DeleteHome: {
    requests: [{ name: "tools", ownerId: "bob" }],
    asks: ["sandboxes.deleteHome", "bob", "tools"],
    responses: [{}],
  },
  ExplainPath: {
    requests: [{ sandboxId, path: "/src/a.ts" }],
    asks: ["sandboxes.explain", sandboxId, "/src/a.ts"],
    answer: {
      path: "/src/a.ts",
      permission: "read",
      deciding: { index: 1, rule: { pattern: "/src/", permission: "read", type: "directory" }, reason: "a directory" },
      losing: [{ index: 0, rule: { pattern: "**/*", permission: "none", type: "glob" }, reason: "a glob" }],
      text: "read, because",
    },
    responses: [
      {
        path: "/src/a.ts",
        permission: "PERMISSION_READ",
        deciding: {
          index: 1,
          rule: { pattern: "/src/", type: "PATTERN_TYPE_DIRECTORY", permission: "PERMISSION_READ" },
          reason: "a directory",
        },
        losing: [
          { rule: { pattern: "**/*", type: "PATTERN_TYPE_GLOB", permission: "PERMISSION_NONE" }, reason: "a glob" },
        ],
        explanation: "read, because",
      },
    ],
  },
  ListChanges: {
    requests: [{ sandboxId, pageSize: 1, pageToken: "t", fold: true }],
    asks: ["sandboxes.changes", sandboxId, { pageSize: 1, pageToken: "t", fold: true }],
    answer: { items: [CHANGE, { ...CHANGE, kind: "added", type: "other", oldPath: "" }], nextPageToken: "n" },
    responses: [
      {
        changes: [CHANGE_JSON, { kind: "CHANGE_KIND_ADDED", path: "/b", size: "4", sensitive: true }],
        nextPageToken: "n",
      },
    ],
  },
  DiffChanges: {
    requests: [{ sandboxId, paths: ["/src"], patch: true }],
    asks: ["sandboxes.diff", sandboxId, { paths: ["/src"], patch: true, signal: "signal" }],
    answer: () => streamOf([{ change: CHANGE, unified: "--- a\n", binary: false }]),
    responses: [{ change: CHANGE_JSON, unified: "--- a\n" }],
  },
  ApplyChanges: {
    requests: [{ sandboxId, paths: ["/b"], dryRun: true, holdExecutables: true }],
    asks: ["sandboxes.apply", sandboxId, { paths: ["/b"], dryRun: true, holdExecutables: true, signal: "signal" }],
    answer: {
      version: 9,
      outcomes: [{ change: CHANGE, applied: true, reason: "because", conflict: true }],
    },
    responses: [
      {
        version: "9",
        outcomes: [{ change: CHANGE_JSON, applied: true, reason: "because", sensitive: true, conflict: true }],
      },
    ],
  },
  DiscardChanges: {
    requests: [{ sandboxId, paths: [] }],
    asks: ["sandboxes.discard", sandboxId, []],
    answer: [CHANGE],
    responses: [{ discarded: [CHANGE_JSON] }],
  },
  ReadFile: {
    requests: [{ sandboxId, path: "/src/a.ts" }],
    asks: ["sandboxes.readFile", sandboxId, "/src/a.ts", "signal"],
    answer: () => streamOf([bytes("abc")]),
    responses: [{ data: "YWJj" }],
  },
  WriteFile: {
    requests: [
      {
        content: {
          case: "metadata",
          value: {
            ...{ sandboxId, path: "/src/a.ts", mode: 0o600, append: true },
            ...{ attributes: { "e2b.a": "b" }, attributePrefix: "e2b." },
          },
        },
      },
      { content: { case: "data", value: bytes("abc") } },
    ],
    asks: [
      "sandboxes.writeFile",
      sandboxId,
      "/src/a.ts",
      ["abc"],
      {
        ...{ mode: 0o600, append: true, attributes: { values: { "e2b.a": "b" }, prefix: "e2b." }, signal: "signal" },
      },
    ],
    answer: VIEW,
    responses: [{ ...VIEW_JSON, path: "/src/a.ts" }],
  },
  ListDirectory: {
    requests: [{ sandboxId, recursive: true, attributes: true }],
    asks: ["sandboxes.listDirectory", sandboxId, "/", { recursive: true, attributes: true }],
    answer: [{ ...VIEW, attributes: { "e2b.a": "b" } }],
    responses: [{ files: [{ ...VIEW_JSON, attributes: { "e2b.a": "b" } }] }],
  },
  StatFile: {
    requests: [{ sandboxId, path: "src/a.ts" }],
    asks: ["sandboxes.stat", sandboxId, "src/a.ts", { attributes: false }],
    answer: VIEW,
    responses: [VIEW_JSON],
  },
  MakeDirectory: {
    requests: [{ sandboxId, path: "src/d", recursive: true }],
    asks: ["sandboxes.makeDirectory", sandboxId, "src/d", { recursive: true }],
    answer: { ...VIEW, path: "/src/d", kind: "directory", size: 0, mode: 0o40755, permission: "write" },
    responses: [
      {
        path: "src/d",
        name: "d",
        isDir: true,
        modifiedAt: VIEW_JSON.modifiedAt,
        mode: 0o755,
        permission: "PERMISSION_WRITE",
      },
    ],
  },
  RemoveFile: {
    requests: [{ sandboxId, path: "a", recursive: true }],
    asks: ["sandboxes.remove", sandboxId, "a", { recursive: true }],
    responses: [{}],
  },
  MoveFile: {
    requests: [{ sandboxId, fromPath: "b", toPath: "src/a.ts" }],
    asks: ["sandboxes.move", sandboxId, "b", "src/a.ts"],
    answer: VIEW,
    responses: [VIEW_JSON],
  },
  WatchFiles: {
    requests: [{ sandboxId, path: "src", recursive: true }],
    asks: ["sandboxes.watch", sandboxId, "src", { recursive: true, signal: "signal" }],
    answer: () =>
      streamOf([
        { kind: "rename", path: "a.ts" },
        { kind: "change", path: "" },
      ]),
    responses: [{}, { kind: "FILE_EVENT_KIND_RENAME", path: "a.ts" }, { kind: "FILE_EVENT_KIND_CHANGE" }],
  },
  OpenTerminal: {
    requests: [
      {
        input: {
          case: "open",
          value: { sandboxId, argv: ["bash"], env: { A: "b" }, workdir: "/w", size: { columns: 100, rows: 0 } },
        },
      },
    ],
    asks: [
      "sandboxes.openTerminal",
      sandboxId,
      { argv: ["bash"], env: { A: "b" }, workdir: "/w", size: { columns: 100, rows: 24 }, signal: "signal" },
    ],
    answer: () => ({
      output: streamOf([bytes("$ ")]),
      exit: Promise.resolve(END),
      write: () => Promise.resolve(),
      resize: () => Promise.resolve(),
      close: () => Promise.resolve(),
    }),
    responses: [{ data: "JCA=" }, { exitCode: 3 }],
  },

  StartProcess: {
    requests: [
      {
        sandboxId,
        argv: ["npm", "start"],
        env: { A: "b" },
        workdir: "/w",
        tag: "web",
        stdin: true,
        terminal: { columns: 100 },
        timeout: { seconds: 9n },
      },
    ],
    asks: ["sandboxes.processes", sandboxId],
    // What it was asked for comes back as what was started.
    answer: processesWith({ spawn: async ({ signal, ...call }) => ({ ...PROCESS, command: [JSON.stringify(call)] }) }),
    responses: [
      {
        ...PROCESS_JSON,
        argv: [
          JSON.stringify({
            command: ["npm", "start"],
            env: { A: "b" },
            workdir: "/w",
            tag: "web",
            stdin: true,
            terminal: { columns: 100, rows: 24 },
            timeoutMs: 9000,
          }),
        ],
      },
    ],
  },
  ListProcesses: {
    requests: [{ sandboxId }],
    asks: ["sandboxes.processes", sandboxId],
    answer: processesWith({ list: () => [PROCESS, ENDED_PROCESS] }),
    responses: [{ processes: [{ ...PROCESS_JSON, argv: ["npm", "start"] }, ENDED_PROCESS_JSON] }],
  },
  AttachProcess: {
    requests: [{ sandboxId, tag: "web" }],
    asks: ["sandboxes.processes", sandboxId],
    answer: processesWith({
      attach: (which) =>
        streamOf([
          { kind: "attached" },
          { kind: "stdout", data: Buffer.from(`of ${which}`), lostBytes: 7 },
          { kind: "stderr", data: Buffer.alloc(0), lostBytes: 5 },
          { kind: "exit", outcome: END },
        ]),
    }),
    responses: [
      {},
      { type: "OUTPUT_TYPE_STDOUT", data: Buffer.from("of web").toString("base64"), lostBytes: "7" },
      { type: "OUTPUT_TYPE_STDERR", lostBytes: "5" },
      { exitCode: 3 },
    ],
  },
  CreateCodeContext: {
    requests: [{ sandboxId, env: { A: "b" }, workdir: "/w" }],
    asks: ["sandboxes.createContext", sandboxId, { language: "python", env: { A: "b" }, workdir: "/w" }, "signal"],
    answer: CONTEXT,
    responses: [CONTEXT_JSON],
  },
  ListCodeContexts: {
    requests: [{ sandboxId }],
    asks: ["sandboxes.listContexts", sandboxId],
    answer: [CONTEXT],
    responses: [{ contexts: [CONTEXT_JSON] }],
  },
  RestartCodeContext: {
    requests: [{ sandboxId, contextId: CONTEXT.id }],
    asks: ["sandboxes.restartContext", sandboxId, CONTEXT.id, "signal"],
    answer: CONTEXT,
    responses: [CONTEXT_JSON],
  },
  InterruptCodeContext: {
    requests: [{ sandboxId, contextId: CONTEXT.id }],
    asks: ["sandboxes.interruptContext", sandboxId, CONTEXT.id],
    responses: [{}],
  },
  DeleteCodeContext: {
    requests: [{ sandboxId, contextId: CONTEXT.id }],
    asks: ["sandboxes.deleteContext", sandboxId, CONTEXT.id],
    responses: [{}],
  },
  RunCode: {
    requests: [
      { sandboxId, code: "1 / 0", language: 3, contextId: CONTEXT.id, env: { A: "b" }, timeout: { seconds: 2n } },
    ],
    asks: [
      "sandboxes.runCode",
      sandboxId,
      {
        code: "1 / 0",
        env: { A: "b" },
        language: "typescript",
        context: CONTEXT.id,
        timeoutMs: 2000,
        signal: "signal",
      },
    ],
    answer: () => streamOf(CODE_PARTS),
    responses: [
      { started: { contextId: CONTEXT.id, executionCount: 3, restarted: "it ended" } },
      { stdout: Buffer.from("out").toString("base64") },
      { result: { isMain: true, data: { "text/plain": "1" }, dropped: ["text/html"] } },
      { error: { name: "E", value: "v", traceback: "t" } },
      {
        end: {
          exitCode: 1,
          timedOut: true,
          contextLost: true,
          duration: "0.250s",
          syncedVersion: "4",
          syncProblems: ["no"],
        },
      },
    ],
  },
  SendInput: {
    requests: [{ sandboxId, number: 2, data: bytes("in") }],
    asks: ["sandboxes.processes", sandboxId],
    answer: processesWith({
      write: async (which, data) => expectExactly([which, Buffer.from(data).toString()], [2, "in"]),
    }),
    responses: [{}],
  },
  CloseInput: {
    requests: [{ sandboxId, number: 2 }],
    asks: ["sandboxes.processes", sandboxId],
    answer: processesWith({ closeInput: async (which) => expectExactly(which, 2) }),
    responses: [{}],
  },
  SignalProcess: {
    requests: [{ sandboxId, tag: "web", signal: "HUP" }],
    asks: ["sandboxes.processes", sandboxId],
    answer: processesWith({ signal: async (...asked) => expectExactly(asked, ["web", "HUP"]) }),
    responses: [{}],
  },
  ResizeProcess: {
    requests: [{ sandboxId, number: 2, size: { columns: 90, rows: 30 } }],
    asks: ["sandboxes.processes", sandboxId],
    answer: processesWith({ resize: async (...asked) => expectExactly(asked, [2, { columns: 90, rows: 30 }]) }),
    responses: [{}],
  },
  WaitProcess: {
    requests: [{ sandboxId, number: 2 }],
    asks: ["sandboxes.processes", sandboxId],
    answer: processesWith({ wait: async () => ENDED_PROCESS }),
    responses: [ENDED_PROCESS_JSON],
  },
  GetPort: {
    requests: [{ sandboxId, port: 3000, expiresIn: { seconds: 60n } }],
    asks: ["links.linkTo", SANDBOX.id, 3000, 60_000],
    answer: { url: "http://a/", hostUrl: "http://b/", token: "afp.x", expiresAtMs: AT },
    responses: [
      {
        sandboxId: SANDBOX.id,
        port: 3000,
        url: "http://a/",
        hostUrl: "http://b/",
        token: "afp.x",
        expiresAt: AT_JSON,
      },
    ],
  },
  WaitForPort: {
    requests: [{ sandboxId, port: 3000, timeout: { seconds: 5n } }],
    asks: ["sandboxes.waitForPort", sandboxId, 3000, { timeoutMs: 5000, signal: "signal" }],
    responses: [{}],
  },
  ForwardPort: {
    requests: [
      { content: { case: "open", value: { sandboxId, port: 3000 } } },
      { content: { case: "data", value: bytes("hi") } },
      { content: { case: "end", value: true } },
    ],
    asks: ["sandboxes.connect", sandboxId, 3000, "signal"],
    answer: () => new PassThrough(),
    responses: [{}, { data: "aGk=" }, { end: true }],
  },

  ListEvents: {
    requests: [
      {
        sandboxId,
        types: ["permission_denied"],
        after: { seconds: 1n, nanos: 1 },
        before: { seconds: 2n, nanos: 500_000_000 },
        pageSize: 3,
        pageToken: "t",
      },
    ],
    asks: [
      "audit.list",
      {
        sandboxId,
        codebaseId: "",
        ownerId: "",
        types: ["permission_denied"],
        fromMs: 1001,
        untilMs: 2500,
        pageSize: 3,
        pageToken: "t",
      },
    ],
    answer: { items: [EVENT], nextPageToken: "n" },
    responses: [{ events: [EVENT_JSON], nextPageToken: "n" }],
  },
  WatchEvents: {
    requests: [{ codebaseId, ownerId: "alice", afterSequence: 0n }],
    asks: [
      "audit.watch",
      { sandboxId: "", codebaseId, ownerId: "alice", types: [], afterSequence: 0, signal: "signal" },
    ],
    answer: () => streamOf([EVENT]),
    responses: [EVENT_JSON],
  },

  GetServerInfo: {
    requests: [{}],
    responses: [
      {
        version: "1.2.3",
        runtimes: ["RUNTIME_TYPE_DOCKER", "RUNTIME_TYPE_BWRAP"],
        degradations: ["no cgroups"],
        keysRequired: true,
        role: "ROLE_ADMIN",
      },
    ],
  },
  CreateKey: {
    requests: [{ ownerId: "bob", role: 3, name: "ci" }],
    asks: ["keys.create", { ownerId: "bob", role: "read-only", name: "ci" }],
    answer: { key: KEY, secret: "af_1_x" },
    responses: [{ key: KEY_JSON, secret: "af_1_x" }],
  },
  ListKeys: { requests: [{}], asks: ["keys.list"], answer: [KEY], responses: [{ keys: [KEY_JSON] }] },
  RevokeKey: { requests: [{ keyId: "key_1" }], asks: ["keys.revoke", "key_1"], responses: [{}] },
};

import type {
  CodebaseRecord,
  EntryRecord,
  EventDraft,
  JournalRecord,
  KeyRecord,
  SandboxRecord,
  SecretRecord,
  SessionRecord,
  VersionChangeRecord,
} from "../../../src/runtime/store/store.ts";

// Records for tests, complete, with what a test cares about given by the test.

export function codebase(values: Partial<CodebaseRecord> & { id: string }): CodebaseRecord {
  return {
    name: "project",
    ownerId: "ann",
    size: 0,
    fileCount: 0,
    createdAtMs: 1000,
    updatedAtMs: 1000,
    version: 0,
    ...values,
  };
}

export function file(path: string, values: Partial<EntryRecord> = {}): EntryRecord {
  return {
    path,
    kind: "file",
    mode: 0o644,
    size: 10,
    sha256: "",
    target: "",
    modifiedAtMs: 5000,
    version: 1,
    ...values,
  };
}

export function directory(path: string, version = 1): EntryRecord {
  return file(path, { kind: "directory", mode: 0o755, size: 0, version });
}

export function journal(
  codebaseId: string,
  version: number,
  changes: readonly Omit<VersionChangeRecord, "version" | "keptAs">[],
): JournalRecord {
  return {
    codebaseId,
    version: {
      codebaseId,
      version,
      origin: "upload",
      sandboxId: "",
      message: `version ${version}`,
      createdAtMs: 1000 + version,
      filesChanged: changes.length,
      size: 0,
      fileCount: 0,
      conflicts: [],
    },
    changes: changes.map((change) => ({
      ...change,
      version,
      keptAs: change.before === undefined ? "" : `kept-${version}`,
    })),
    plan: { steps: [{ rename: ["a", "b"] }] },
  };
}

export function sandbox(values: Partial<SandboxRecord> & { id: string }): SandboxRecord {
  return {
    ownerId: "ann",
    codebaseId: "cb_1",
    codebaseVersion: 0,
    rules: [{ pattern: "**/*", permission: "read" }],
    status: "PENDING",
    statusReason: "",
    labels: {},
    runtime: "bwrap",
    image: "",
    network: "none",
    networkRules: [],
    secrets: [],
    sync: "on-exec",
    idlePauseMs: 0,
    lastProcessNumber: 0,
    revocable: false,
    home: "",
    workspaceHome: "",
    pauseAtExpiry: false,
    resources: { memoryBytes: 1024 },
    env: { HOME: "/root" },
    createdAtMs: 1000,
    ...values,
  };
}

export function session(values: Partial<SessionRecord> & { id: string; sandboxId: string }): SessionRecord {
  return { ownerId: "ann", status: "ACTIVE", shell: "bash", createdAtMs: 1000, closeReason: "", ...values };
}

export function event(values: Partial<EventDraft> = {}): EventDraft {
  return {
    timeMs: 1000,
    type: "command_executed",
    level: "info",
    ownerId: "ann",
    keyId: "",
    sandboxId: "",
    codebaseId: "",
    sessionId: "",
    data: {},
    ...values,
  };
}

export function key(values: Partial<KeyRecord> & { id: string }): KeyRecord {
  return { ownerId: "ann", role: "user", name: "laptop", secretHash: "ab".repeat(32), createdAtMs: 1000, ...values };
}

export function secret(values: Partial<SecretRecord> & { name: string }): SecretRecord {
  return {
    ownerId: "ann",
    hosts: ["api.example.org"],
    place: "header x-api-key",
    sealed: "sealed",
    createdAtMs: 1000,
    updatedAtMs: 1000,
    ...values,
  };
}

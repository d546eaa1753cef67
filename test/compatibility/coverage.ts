import type { MethodName } from "../support/proto.ts";

// Which file of this folder shows which methods. A file fails when its tests did not call what stands here, and
// coverage.test.ts fails when a method of the contract stands nowhere.

const codebase = (...names: string[]): MethodName[] => names.map((name) => `CodebaseService.${name}` as const);
const sandbox = (...names: string[]): MethodName[] => names.map((name) => `SandboxService.${name}` as const);

export const COVERAGE = {
  codebases: codebase("CreateCodebase", "GetCodebase", "ListCodebases", "DeleteCodebase"),
  uploads: codebase("UploadFiles", "DownloadFile"),
  batches: codebase("CompareManifest", "BatchUpload", "UploadArchive", "DownloadArchive"),
  files: codebase("ListFiles", "DeleteFile", "RenameFile"),
  versions: codebase("ListVersions", "GetVersion", "Rollback"),
  sandboxes: sandbox(
    "CreateSandbox",
    "GetSandbox",
    "ListSandboxes",
    "StartSandbox",
    "StopSandbox",
    "PauseSandbox",
    "ResumeSandbox",
    "DestroySandbox",
    "UpdatePermissions",
    "UpdateNetwork",
    "UpdateExpiry",
    "ExplainPath",
  ),
  snapshots: sandbox("SnapshotSandbox", "ListSnapshots", "RestoreSandbox", "DeleteSnapshot", "ForkSandbox"),
  homes: sandbox("ListHomes", "DeleteHome"),
  secrets: sandbox("PutSecret", "ListSecrets", "DeleteSecret"),
  exec: sandbox("Exec", "ExecStream"),
  interactive: sandbox("ExecInteractive"),
  sessions: sandbox(
    "CreateSession",
    "GetSession",
    "ListSessions",
    "DestroySession",
    "SessionExec",
    "SessionExecStream",
  ),
  terminal: sandbox("OpenTerminal"),
  ports: sandbox("GetPort", "WaitForPort", "ForwardPort"),
  changes: sandbox("ListChanges", "DiffChanges", "ApplyChanges", "DiscardChanges"),
  view: sandbox("ReadFile", "WriteFile", "ListDirectory", "StatFile", "MakeDirectory", "RemoveFile", "MoveFile"),
  watch: sandbox("WatchFiles"),
  processes: sandbox(
    "StartProcess",
    "ListProcesses",
    "AttachProcess",
    "SendInput",
    "CloseInput",
    "SignalProcess",
    "ResizeProcess",
    "WaitProcess",
  ),
  code: sandbox(
    "CreateCodeContext",
    "ListCodeContexts",
    "RestartCodeContext",
    "InterruptCodeContext",
    "DeleteCodeContext",
    "RunCode",
  ),
  events: ["EventService.ListEvents", "EventService.WatchEvents"],
  system: [
    "SystemService.GetServerInfo",
    "SystemService.CreateKey",
    "SystemService.ListKeys",
    "SystemService.RevokeKey",
  ],
} as const satisfies Readonly<Record<string, readonly MethodName[]>>;

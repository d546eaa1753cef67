import type { FileInfoSchema } from "@agentfense/protocol/codebase";
import { FileEventKind } from "@agentfense/protocol/sandbox";
import { PERMISSIONS } from "@agentfense/protocol/words";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Bell } from "../bell.ts";
import { FileFault, faultFor } from "../files/file-fault.ts";
import type { ViewEntry } from "../files/guarded-view.ts";
import { entryPath, insidePath, nameOf, workspacePath } from "../files/paths.ts";
import type { WatchedChange } from "../files/watchers.ts";
import type { MockSandbox } from "../sandboxes/sandbox.ts";
import { syncAfterCommand } from "../sandboxes/sync.ts";
import type { World } from "../world.ts";
import { permissionBits, required, timestampMessage } from "./fields.ts";
import type { SandboxHandlers } from "./sandbox-parts.ts";
import { pieces, receiveUpload } from "./uploads.ts";

/** Files of a running sandbox, as a process inside sees them. */
export function fileHandlers(
  world: World,
): SandboxHandlers<
  "readFile" | "writeFile" | "listDirectory" | "statFile" | "makeDirectory" | "removeFile" | "moveFile" | "watchFiles"
> {
  const running = (sandboxId: string): MockSandbox => {
    const sandbox = world.sandbox(sandboxId);
    sandbox.requireRunning();
    return sandbox;
  };

  return {
    async *readFile({ sandboxId, path }) {
      const at = workspacePath(required(path, "path"));
      const { view } = running(sandboxId);
      const content = answered(path, () => view.read(at));
      for (const data of pieces(content)) yield { data };
    },

    writeFile(requests) {
      return receiveUpload(requests, ({ sandboxId, path, mode, append }) => {
        required(sandboxId, "sandbox_id", "in metadata");
        required(path, "path", "in metadata");
        const at = entryPath(path);
        const bits = permissionBits(mode, "mode");
        const sandbox = running(sandboxId);
        const options = { append, ...(bits === 0 ? {} : { mode: bits }) };
        const write = answered(path, () => sandbox.view.openToWrite(at, options));
        return (content) => {
          sandbox.requireRunning();
          const entry = answered(path, () => write(content));
          return changed(sandbox, "file_written", entry, path, { path: insidePath(at) });
        };
      });
    },

    async listDirectory({ sandboxId, path, recursive }) {
      const { view } = running(sandboxId);
      const entries = answered(path, () => view.list(workspacePath(path === "" ? "/" : path), { recursive }));
      return { files: entries.map((entry) => infoMessage(entry, path)) };
    },

    async statFile({ sandboxId, path }) {
      const { view } = running(sandboxId);
      return infoMessage(
        answered(path, () => view.stat(workspacePath(path === "" ? "/" : path))),
        path,
      );
    },

    async makeDirectory({ sandboxId, path, recursive }) {
      const at = entryPath(required(path, "path"));
      const sandbox = running(sandboxId);
      const entry = answered(path, () => sandbox.view.makeDirectory(at, { recursive }));
      return changed(sandbox, "directory_created", entry, path, { path: insidePath(at) });
    },

    async removeFile({ sandboxId, path, recursive }) {
      const at = entryPath(required(path, "path"));
      const sandbox = running(sandboxId);
      try {
        answered(path, () => sandbox.view.remove(at, { recursive }));
      } finally {
        // What failed in the middle may have removed something before.
        syncAfterCommand(sandbox);
      }
      sandbox.tell("file_removed", { data: { path: insidePath(at) } });
      return {};
    },

    async moveFile({ sandboxId, fromPath, toPath }) {
      const from = entryPath(required(fromPath, "from_path"), "from_path");
      const to = entryPath(required(toPath, "to_path"), "to_path");
      const sandbox = running(sandboxId);
      const entry = answered(fromPath, () => sandbox.view.move(from, to));
      return changed(sandbox, "file_moved", entry, toPath, { path: insidePath(from), to_path: insidePath(to) });
    },

    async *watchFiles({ sandboxId, path, recursive }, signal) {
      const sandbox = world.sandbox(sandboxId);
      const stopped = sandbox.requireRunning();
      const at = workspacePath(path === "" ? "/" : path);
      answered(path, () => sandbox.view.stat(at));
      const over = AbortSignal.any([signal, stopped]);
      const waiting: WatchedChange[] = [];
      const bell = new Bell();
      const leave = sandbox.watchers.add({
        path: at,
        recursive,
        tell(change) {
          waiting.push(change);
          bell.ring();
        },
      });
      try {
        yield {};
        for (;;) {
          const change = waiting.shift();
          if (change !== undefined) yield { kind: EVENT_KINDS[change.kind], path: change.path };
          else if (over.aborted) return;
          else await bell.heard(over);
        }
      } finally {
        leave();
      }
    },
  };
}

const EVENT_KINDS = { rename: FileEventKind.RENAME, change: FileEventKind.CHANGE } as const;

/** A refusal is told with the path as the caller gave it. */
function answered<Result>(path: string, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    throw error instanceof FileFault ? faultFor(path, error) : error;
  }
}

function changed(
  sandbox: MockSandbox,
  type: string,
  entry: ViewEntry,
  asked: string,
  data: Readonly<Record<string, string>>,
): MessageInitShape<typeof FileInfoSchema> {
  syncAfterCommand(sandbox);
  sandbox.tell(type, { data: { ...data, size: entry.size } });
  return infoMessage(entry, asked);
}

/** Paths begin as the request's path did. */
function infoMessage(entry: ViewEntry, asked: string): MessageInitShape<typeof FileInfoSchema> {
  return {
    path: asked.startsWith("/") ? entry.path : entry.path.slice(1),
    name: nameOf(entry.path),
    isDir: entry.kind === "directory",
    size: BigInt(entry.size),
    modifiedAt: timestampMessage(entry.modifiedAtMs),
    mode: entry.mode,
    symlinkTarget: entry.target,
    permission: PERMISSIONS[entry.permission],
  };
}

import { FILE_EVENTS } from "@agentfense/protocol/words";
import type { Sandboxes } from "../../runtime/sandboxes/api.ts";
import type { SandboxHandlers } from "./handlers.ts";
import { pathForm, viewInfo } from "./messages/codebase.ts";
import { permissionBits, required } from "./messages/fields.ts";
import { chunked, receiveUpload } from "./streams.ts";

/** Where no path means the workspace itself. */
const ROOT = "/";

/** Files of a running sandbox, as a process inside sees them. */
export function fileHandlers(sandboxes: Sandboxes) {
  return {
    async *readFile({ sandboxId, path }, { caller, signal }) {
      const content = await sandboxes.readFile(caller, sandboxId, required(path, "path"), signal);
      for await (const data of chunked(content)) yield { data };
    },

    writeFile(requests, { caller, signal }) {
      return receiveUpload(requests, async ({ sandboxId, path, mode, append }, content) => {
        required(sandboxId, "sandbox_id", "in metadata");
        required(path, "path", "in metadata");
        const options = { mode: permissionBits(mode, "mode"), append, signal };
        return viewInfo(await sandboxes.writeFile(caller, sandboxId, path, content, options), pathForm(path));
      });
    },

    async listDirectory({ sandboxId, path, recursive }, { caller }) {
      const entries = await sandboxes.listDirectory(caller, sandboxId, path || ROOT, { recursive });
      const form = pathForm(path);
      return { files: entries.map((entry) => viewInfo(entry, form)) };
    },

    async statFile({ sandboxId, path }, { caller }) {
      return viewInfo(await sandboxes.stat(caller, sandboxId, path || ROOT), pathForm(path));
    },

    async makeDirectory({ sandboxId, path, recursive }, { caller }) {
      required(path, "path");
      return viewInfo(await sandboxes.makeDirectory(caller, sandboxId, path, { recursive }), pathForm(path));
    },

    removeFile: async ({ sandboxId, path, recursive }, { caller }) =>
      sandboxes.remove(caller, sandboxId, required(path, "path"), { recursive }),

    async moveFile({ sandboxId, fromPath, toPath }, { caller }) {
      required(fromPath, "from_path");
      required(toPath, "to_path");
      return viewInfo(await sandboxes.move(caller, sandboxId, fromPath, toPath), pathForm(toPath));
    },

    async *watchFiles({ sandboxId, path, recursive }, { caller, signal }) {
      const changes = await sandboxes.watch(caller, sandboxId, path || ROOT, { recursive, signal });
      yield {}; // the watch is on
      for await (const change of changes) yield { kind: FILE_EVENTS[change.kind], path: change.path };
    },
  } satisfies SandboxHandlers;
}

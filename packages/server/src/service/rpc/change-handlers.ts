import type { Sandboxes } from "../../runtime/sandboxes/api.ts";
import { changeMessage, diffMessages, outcomeMessage } from "./messages/changes.ts";
import { required } from "./messages/fields.ts";
import type { MessageLimits, SandboxHandlers } from "./sandbox-parts.ts";

export function changeHandlers(
  sandboxes: Sandboxes,
  { maxMessageBytes }: MessageLimits,
): SandboxHandlers<"listChanges" | "diffChanges" | "applyChanges" | "discardChanges"> {
  return {
    async listChanges({ sandboxId, pageSize, pageToken, fold }, { caller }) {
      const page = await sandboxes.changes(caller, required(sandboxId, "sandbox_id"), { pageSize, pageToken, fold });
      return { changes: page.items.map(changeMessage), nextPageToken: page.nextPageToken };
    },

    async *diffChanges({ sandboxId, paths, patch }, { caller, signal }) {
      const diffs = sandboxes.diff(caller, required(sandboxId, "sandbox_id"), { paths, patch, signal });
      // Beside the text there are two paths, of at most 4 KiB each.
      for await (const diff of diffs) yield* diffMessages(diff, maxMessageBytes - 16 * 1024);
    },

    async applyChanges({ sandboxId, paths, dryRun }, { caller, signal }) {
      const id = required(sandboxId, "sandbox_id");
      const { version, outcomes } = await sandboxes.apply(caller, id, { paths, dryRun, signal });
      return { version: BigInt(version), outcomes: outcomes.map(outcomeMessage) };
    },

    async discardChanges({ sandboxId, paths }, { caller }) {
      const discarded = await sandboxes.discard(caller, required(sandboxId, "sandbox_id"), paths);
      return { discarded: discarded.map(changeMessage) };
    },
  };
}

import type { ChangeSchema } from "@agentfense/protocol/sandbox";
import { CHANGE_KINDS, CHANGE_TYPES } from "@agentfense/protocol/words";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Change, diffChanges, listChanges, selectedChanges, selectionOf } from "../sandboxes/changes.ts";
import { applyChanges } from "../sandboxes/sync.ts";
import type { World } from "../world.ts";
import { pageOf } from "./fields.ts";
import type { SandboxHandlers } from "./sandbox-parts.ts";

export function changeHandlers(
  world: World,
): SandboxHandlers<"listChanges" | "diffChanges" | "applyChanges" | "discardChanges"> {
  return {
    async listChanges({ sandboxId, ...page }) {
      const { items, nextPageToken } = pageOf(listChanges(world.sandbox(sandboxId)), page, { allByDefault: true });
      return { changes: items.map(changeMessage), nextPageToken };
    },

    async *diffChanges({ sandboxId, paths, patch }) {
      const diffs = diffChanges(world.sandbox(sandboxId), selectionOf(paths), { patch });
      for (const { change, unified, binary } of diffs) {
        yield { change: changeMessage(change), unified, binary };
      }
    },

    async applyChanges({ sandboxId, paths, dryRun, holdExecutables }) {
      const options = { dryRun, holdExecutables };
      const { version, outcomes } = applyChanges(world.sandbox(sandboxId), selectionOf(paths), options);
      return {
        version: BigInt(version),
        outcomes: outcomes.map((outcome) => ({
          ...outcome,
          change: changeMessage(outcome.change),
          sensitive: outcome.change.sensitive,
        })),
      };
    },

    async discardChanges({ sandboxId, paths }) {
      const sandbox = world.sandbox(sandboxId);
      const selection = selectionOf(paths);
      const discarded = listChanges(sandbox, selection);
      for (const { path, old, now } of selectedChanges(sandbox, selection)) {
        sandbox.overlay.forget(path);
        sandbox.announce(path, old === undefined || now === undefined ? "rename" : "change");
      }
      sandbox.overlay.tidy();
      if (discarded.length > 0) sandbox.tell("changes_discarded", { data: { changes: discarded.length, kept: 0 } });
      return { discarded: discarded.map(changeMessage) };
    },
  };
}

function changeMessage(change: Change): MessageInitShape<typeof ChangeSchema> {
  return {
    kind: CHANGE_KINDS[change.kind],
    path: change.path,
    oldPath: change.oldPath,
    type: CHANGE_TYPES[change.type],
    size: BigInt(change.size),
    sensitive: change.sensitive,
  };
}

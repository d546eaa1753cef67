import type { SandboxService } from "@agentfense/protocol/sandbox";
import type { Sandboxes } from "../../runtime/sandboxes/api.ts";
import { changeHandlers } from "./change-handlers.ts";
import { execHandlers } from "./exec-handlers.ts";
import { fileHandlers } from "./file-handlers.ts";
import type { Handlers } from "./handlers.ts";
import { explanationMessage } from "./messages/changes.ts";
import { SANDBOX_STATUSES, wordFor } from "./messages/enums.ts";
import { given, required } from "./messages/fields.ts";
import { rulesOf } from "./messages/rules.ts";
import { createSandboxRequestOf, sandboxMessage } from "./messages/sandbox.ts";
import { type PortLinks, portHandlers } from "./port-handlers.ts";
import { processHandlers } from "./process-handlers.ts";
import type { MessageLimits, SandboxHandlers } from "./sandbox-parts.ts";
import { sessionHandlers } from "./session-handlers.ts";
import { terminalHandlers } from "./terminal-handlers.ts";

/** The service in parts, each a file: what one does *with* a sandbox; here is what one does *to* it. */
export function sandboxHandlers(
  sandboxes: Sandboxes,
  links: PortLinks,
  limits: MessageLimits,
): Handlers<typeof SandboxService> {
  return {
    ...lifecycleHandlers(sandboxes),
    ...execHandlers(sandboxes, limits),
    ...sessionHandlers(sandboxes, limits),
    ...terminalHandlers(sandboxes),
    ...processHandlers(sandboxes),
    ...portHandlers(sandboxes, links),
    ...changeHandlers(sandboxes, limits),
    ...fileHandlers(sandboxes),
  };
}

function lifecycleHandlers(
  sandboxes: Sandboxes,
): SandboxHandlers<
  | "createSandbox"
  | "getSandbox"
  | "listSandboxes"
  | "startSandbox"
  | "stopSandbox"
  | "pauseSandbox"
  | "resumeSandbox"
  | "destroySandbox"
  | "updatePermissions"
  | "explainPath"
  | "listHomes"
  | "deleteHome"
> {
  return {
    async createSandbox(request, { caller, signal }) {
      return sandboxMessage(await sandboxes.create(caller, createSandboxRequestOf(request), signal));
    },

    async getSandbox({ sandboxId }, { caller }) {
      return sandboxMessage(await sandboxes.get(caller, required(sandboxId, "sandbox_id")));
    },

    async listSandboxes({ codebaseId, ownerId, status, labels, pageSize, pageToken }, { caller }) {
      const page = await sandboxes.list(caller, {
        codebaseId,
        ownerId,
        labels,
        pageSize,
        pageToken,
        ...given({ status: wordFor(SANDBOX_STATUSES, status, "status") }),
      });
      return { sandboxes: page.items.map(sandboxMessage), nextPageToken: page.nextPageToken };
    },

    async startSandbox({ sandboxId }, { caller, signal }) {
      return sandboxMessage(await sandboxes.start(caller, required(sandboxId, "sandbox_id"), signal));
    },

    async stopSandbox({ sandboxId }, { caller }) {
      return sandboxMessage(await sandboxes.stop(caller, required(sandboxId, "sandbox_id")));
    },

    async pauseSandbox({ sandboxId }, { caller }) {
      return sandboxMessage(await sandboxes.pause(caller, required(sandboxId, "sandbox_id")));
    },

    async resumeSandbox({ sandboxId }, { caller }) {
      return sandboxMessage(await sandboxes.resume(caller, required(sandboxId, "sandbox_id")));
    },

    async destroySandbox({ sandboxId }, { caller }) {
      await sandboxes.destroy(caller, required(sandboxId, "sandbox_id"));
      return {};
    },

    async updatePermissions({ sandboxId, permissions, preset }, { caller }) {
      required(sandboxId, "sandbox_id");
      const request = { rules: rulesOf(permissions), preset };
      return sandboxMessage(await sandboxes.updatePermissions(caller, sandboxId, request));
    },

    async listHomes({ ownerId }, { caller }) {
      return { homes: [...(await sandboxes.listHomes(caller, ownerId))] };
    },

    async deleteHome({ name, ownerId }, { caller }) {
      await sandboxes.deleteHome(caller, ownerId, required(name, "name"));
      return {};
    },

    async explainPath({ sandboxId, path }, { caller }) {
      required(sandboxId, "sandbox_id");
      return explanationMessage(await sandboxes.explain(caller, sandboxId, required(path, "path")));
    },
  };
}

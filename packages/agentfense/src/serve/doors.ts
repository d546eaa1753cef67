import { serverDoors } from "@agentfense/agent/doors";
import type { Door } from "@agentfense/server";
import type { ServerConfig } from "@agentfense/server/configuration";

/** What the settings put beside gRPC and REST. */
export function doorsOf({ server, runtime }: ServerConfig, log: (entry: object) => void): readonly Door[] {
  return serverDoors({
    ...(server.aio && {
      aio: {
        approval: server.aio_approve,
        browserPath: server.aio_browser || undefined,
        longestMs: runtime.max_timeout || undefined,
      },
    }),
    ...(server.confirmations && { confirmations: { reviewers: server.confirmation_reviewers } }),
    onError: (error) => log({ level: "error", message: "a request failed", error }),
  });
}

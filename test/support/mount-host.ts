import { MountHost } from "@agentfense/server/isolation";
import { afterAll } from "vitest";

let host: Promise<MountHost> | undefined;

/**
 * The same mount threads for all tests of a file: each mounts and unmounts in them, as the sandboxes of a server do. Only for
 * files that have a process of their own.
 */
export function mountHostOfFile(): Promise<MountHost> {
  host ??= MountHost.start();
  return host;
}

afterAll(async () => {
  await (await host)?.close();
});

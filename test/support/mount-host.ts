import { MountHost } from "@agentfense/server/isolation";

let host: Promise<MountHost> | undefined;

/** The same mount threads for all tests of this process, with which they end: each mounts and unmounts in them, as the sandboxes of a server do. */
export function mountHostOfProcess(): Promise<MountHost> {
  host ??= MountHost.start({ holdsProcess: false });
  return host;
}

import { cleanStaleMount, MountHost, type WorkspaceMount, type WorkspaceSpec } from "@agentfense/server/isolation";
import type { DaemonRequest } from "./daemon-link.ts";
import { answerParent, tellParent } from "./peer.ts";

/** The process that serves mounts for tests. It never touches what it serves; the probes do, in processes of their own. */
const host = await MountHost.start();
const mounts = new Map<string, WorkspaceMount>();

answerParent(
  (body) => answer(body as DaemonRequest),
  () => host.close(),
);

async function answer(request: DaemonRequest): Promise<unknown> {
  switch (request.method) {
    case "mount":
      return await mount(request.spec);
    case "updateRules":
      return await mounted(request.mountPoint).updateRules(request.rules);
    case "freeze":
      return await mounted(request.mountPoint).freeze(request.spec);
    case "cleanStaleMount":
      return await cleanStaleMount(request.mountPoint);
    case "unmount": {
      const found = mounted(request.mountPoint);
      mounts.delete(request.mountPoint);
      return await found.unmount();
    }
  }
}

async function mount(spec: WorkspaceSpec): Promise<WorkspaceMount["features"]> {
  const { mountPoint } = spec;
  const onEvent: WorkspaceSpec["onEvent"] = (event) => tellParent({ mountPoint, event });
  const made = await host.mount({ ...spec, onEvent });
  mounts.set(mountPoint, made);
  return { ...made.features };
}

function mounted(mountPoint: string): WorkspaceMount {
  const found = mounts.get(mountPoint);
  if (found === undefined) throw new Error(`nothing is mounted at ${mountPoint}`);
  return found;
}

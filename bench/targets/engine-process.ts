/**
 * The process in which a server would run: one MountHost that mounts and unmounts on command over IPC. It stays warm from
 * one mount to the next and ends, unmounting everything, when its parent is gone.
 */
import { MountHost, type WorkspaceMount, type WorkspaceSpec } from "@agentfense/server/isolation";

export type EngineRequest =
  | { readonly id: number; readonly do: "mount"; readonly spec: WorkspaceSpec }
  | { readonly id: number; readonly do: "unmount"; readonly mountPoint: string }
  | { readonly id: number; readonly do: "memory" };

export type EngineReply =
  | { readonly id: number; readonly passthrough?: boolean; readonly residentBytes?: number }
  | { readonly id: number; readonly error: string };

const host = await MountHost.start();
const mounts = new Map<string, WorkspaceMount>();

process.on("message", async (request: EngineRequest) => {
  const { id } = request;
  const reply: EngineReply = await carryOut(request).then(
    (result) => ({ id, ...result }),
    (error: unknown) => ({ id, error: String(error) }),
  );
  process.send?.(reply);
});
process.on("disconnect", async () => {
  await host.close();
  process.exit();
});

async function carryOut(request: EngineRequest): Promise<{ passthrough?: boolean; residentBytes?: number }> {
  switch (request.do) {
    case "mount": {
      const mount = await host.mount(request.spec);
      mounts.set(request.spec.mountPoint, mount);
      return { passthrough: mount.features.passthrough };
    }
    case "unmount":
      await mounts.get(request.mountPoint)?.unmount();
      mounts.delete(request.mountPoint);
      return {};
    case "memory":
      // Twice, because what the first collection frees can keep other things alive until the second.
      globalThis.gc?.();
      globalThis.gc?.();
      return { residentBytes: process.memoryUsage.rss() };
  }
}

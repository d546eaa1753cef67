import { chown, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { getPreset } from "@agentfense/permission";
import type { WorkspaceSpec } from "@agentfense/server/isolation";
import type { Placement } from "../client.ts";
import { mountAt, unmount } from "../mounts.ts";
import { daemonTarget } from "./daemon.ts";
import { Engine } from "./engine.ts";
import type { Ground, Target } from "./target.ts";

const CLI = fileURLToPath(new URL("../../packages/agentfense/src/cli.ts", import.meta.url));

export interface OurPlan {
  readonly name: string;
  readonly preset: "full-access" | "agent-safe";
  readonly passthrough: boolean;
  /** The mount belongs to the ordinary user. */
  readonly asUser: boolean;
  readonly writable: boolean;
}

/** Our file system, in one of its configurations. */
export async function ours(plan: OurPlan, ground: Ground): Promise<Target> {
  const identity = plan.asUser ? ground.user : undefined;
  const place = { mountPoint: join(ground.directory, "mount"), delta: join(ground.directory, "delta") };
  for (const directory of [ground.directory, ...Object.values(place)]) {
    await mkdir(directory, { recursive: true });
    if (identity !== undefined) await chown(directory, identity.uid, identity.gid);
  }
  const placement = { identity, pinned: ground.pinned };
  return ground.freshProcess
    ? commandTarget(plan, ground.tree, place, placement)
    : engineTarget(plan, ground.tree, place, placement);
}

interface Place {
  readonly mountPoint: string;
  readonly delta: string;
}

/** As in a server: the process is warm, the mount is new. */
function engineTarget(plan: OurPlan, tree: string, place: Place, placement: Placement): Target {
  let engine: Engine | undefined;
  const spec: WorkspaceSpec = {
    ...place,
    lowers: [tree],
    rules: getPreset(plan.preset),
    passthrough: plan.passthrough,
  };
  const mount = async () => {
    const { passthrough } = await engine!.mount(spec);
    if (plan.passthrough && !passthrough) throw new Error("passthrough is not available here");
  };
  return {
    name: plan.name,
    root: place.mountPoint,
    client: placement,
    writable: plan.writable,
    async start() {
      engine = new Engine(placement);
      await mount();
    },
    async remount() {
      await engine!.unmount(place.mountPoint);
      await mount();
    },
    async stop() {
      await engine?.[Symbol.asyncDispose]();
      await unmount(place.mountPoint);
      engine = undefined;
    },
    connection: () => mountAt(place.mountPoint)?.minor,
  };
}

/** As from the shell: `agentfense mount`, a new process each time. */
function commandTarget(plan: OurPlan, tree: string, place: Place, placement: Placement): Target {
  const flags = ["--preset", plan.preset, "--delta", place.delta, ...(plan.passthrough ? [] : ["--no-passthrough"])];
  const target = daemonTarget({
    name: plan.name,
    argv: [process.execPath, CLI, "mount", ...flags, tree, place.mountPoint],
    root: place.mountPoint,
    placement,
    announcement: "agentfense: mounted",
  });
  return { ...target, writable: plan.writable };
}

import { execFile } from "node:child_process";
import { constants, mkdir, readFile } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { isAccessible } from "../backend/find-program.ts";
import { errorCode, isGone, readControl, words, writeControl } from "./files.ts";
import { isWithin } from "./hierarchies.ts";
import { members } from "./kill.ts";

/** Where our own processes go so that the group above may lend its controllers; the dot keeps it apart from any instance. */
export const OWN_LEAF = "agentfense.server";

/** A process of ours may already live in the leaf an earlier server made: what was delegated is the group above. */
export function delegatedGroup(ownGroup: string): string {
  return basename(ownGroup) === OWN_LEAF ? dirname(ownGroup) : ownGroup;
}

/** Whether this user may make groups in a directory and move processes about below it. */
export async function isDelegated(directory: string): Promise<boolean> {
  const written = [directory, `${directory}/cgroup.procs`, `${directory}/cgroup.subtree_control`];
  return (await Promise.all(written.map((path) => isAccessible(path, constants.W_OK)))).every(Boolean);
}

/**
 * Delegation's containment: who moves a process must be able to write the cgroup.procs of the target and of the nearest
 * directory above both the old and the new place. Root is exempt by its rights.
 */
export async function canEnter(ownGroup: string, target: string): Promise<boolean> {
  let common = target;
  while (!isWithin(common, ownGroup)) common = dirname(common);
  return await isAccessible(`${common}/cgroup.procs`, constants.W_OK);
}

/**
 * Lends controllers to the children of each directory from `top` down to `bottom`; what cannot be lent is told by `report`
 * and simply stays away. Returns what the children of `bottom` have in the end.
 */
export async function lendControllers<Name extends string>(
  top: string,
  bottom: string,
  wanted: readonly Name[],
  report: (line: string) => void,
): Promise<Name[]> {
  for (const directory of wayDown(top, bottom)) {
    const available = words(await readControl(`${directory}/cgroup.controllers`));
    const lent = words(await readControl(`${directory}/cgroup.subtree_control`));
    for (const controller of wanted) {
      if (lent.includes(controller) || !available.includes(controller)) continue;
      await writeControl(`${directory}/cgroup.subtree_control`, `+${controller}`).catch((error: unknown) =>
        report(`the control group ${directory} does not lend ${controller}: ${errorCode(error) ?? error}`),
      );
    }
  }
  const lent = words(await readControl(`${bottom}/cgroup.subtree_control`));
  return wanted.filter((controller) => lent.includes(controller));
}

function wayDown(top: string, bottom: string): string[] {
  return bottom === top || !isWithin(top, bottom) ? [bottom] : [...wayDown(top, dirname(bottom)), bottom];
}

/** Whose processes may be in a group that we rearrange: `self` is this process and what it started, `kin` its callers too. */
export type GroupRelation = "self" | "kin";

/** Moves these processes out of a group into a leaf below it. False, and nothing is moved, when strangers live there too. */
export async function moveIntoLeaf(directory: string, relation: GroupRelation): Promise<boolean> {
  const leaf = `${directory}/${OWN_LEAF}`;
  // Who forks while we move leaves a child behind; a few rounds find them all.
  for (let round = 0; round < 20; round++) {
    const inhabitants = await members(directory);
    if (inhabitants.length === 0) return true;
    const belongs = await Promise.all(inhabitants.map((pid) => isRelated(pid, relation)));
    if (belongs.includes(false)) return false;
    await mkdir(leaf).catch(unless("EEXIST"));
    for (const pid of inhabitants) await writeControl(`${leaf}/cgroup.procs`, `${pid}`).catch(unless("ESRCH"));
  }
  return false;
}

async function isRelated(pid: number, relation: GroupRelation): Promise<boolean> {
  if ((await ancestry(pid)).includes(process.pid)) return true;
  if (relation === "kin" && (await ancestry(process.pid)).includes(pid)) return true;
  return !(await isAccessible(`/proc/${pid}`)); // who is gone by now is no stranger
}

/** A process, its parent, and so on up to the first. */
async function ancestry(pid: number): Promise<number[]> {
  const line: number[] = [];
  for (let current = pid; current > 0 && !line.includes(current); ) {
    line.push(current);
    current = await parentOf(current);
  }
  return line;
}

async function parentOf(pid: number): Promise<number> {
  try {
    const status = await readFile(`/proc/${pid}/status`, "utf8");
    return Number(/^PPid:\s*(\d+)$/m.exec(status)?.[1] ?? 0);
  } catch (error) {
    if (isGone(error) || errorCode(error) === "ESRCH") return 0;
    throw error;
  }
}

function unless(code: string): (error: unknown) => void {
  return (error) => {
    if (errorCode(error) !== code) throw error;
  };
}

const ANSWER_MS = 3_000;

/**
 * Asks the user's systemd for a delegated scope and to put this process into it, as `systemd-run --user --scope` would have at
 * the start. Only systemd can do that from an ordinary login: a process may change its group by itself only below a
 * directory that it may write, and between a login session and the user's own groups there is none.
 */
export async function moveToUserScope(instance: string, isThere: () => Promise<boolean>): Promise<void> {
  await askSystemd(scopeRequest(`agentfense-${instance}.scope`, process.pid));
  const deadline = performance.now() + ANSWER_MS;
  while (!(await isThere())) {
    if (performance.now() > deadline) throw new Error("systemd promised a scope and did not deliver it");
    await sleep(5);
  }
}

async function askSystemd(request: string[]): Promise<void> {
  try {
    await promisify(execFile)("busctl", request, { timeout: ANSWER_MS, env: { ...process.env, ...busAddress() } });
  } catch (error) {
    // What busctl said is shorter and clearer than Node's message, which repeats the whole command.
    const said = error instanceof Error && "stderr" in error ? String(error.stderr).trim() : "";
    throw said === "" ? error : new Error(said, { cause: error });
  }
}

/** Arguments of busctl: StartTransientUnit(name, mode, properties, auxiliary units). */
export function scopeRequest(unit: string, pid: number): string[] {
  const properties = [
    ["PIDs", "au", "1", `${pid}`],
    ["Delegate", "b", "true"],
    ["Description", "s", "AgentFense and its sandboxes"],
    ["CollectMode", "s", "inactive-or-failed"],
  ];
  return [
    "--user",
    "call",
    "org.freedesktop.systemd1",
    "/org/freedesktop/systemd1",
    "org.freedesktop.systemd1.Manager",
    "StartTransientUnit",
    "ssa(sv)a(sa(sv))",
    unit,
    "fail",
    `${properties.length}`,
    ...properties.flat(),
    "0",
  ];
}

/** Where the user's bus listens also when the environment does not say so (sudo, cron, a bare service). */
function busAddress(): Record<string, string> {
  if (process.env.XDG_RUNTIME_DIR !== undefined || process.env.DBUS_SESSION_BUS_ADDRESS !== undefined) return {};
  return { XDG_RUNTIME_DIR: `/run/user/${process.getuid?.()}` };
}

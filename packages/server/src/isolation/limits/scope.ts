import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

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

import type { AuditEvent, JsonValue, Sandbox } from "@agentfense/sdk";
import { resourcesMessage } from "./sandbox-message.ts";

// What clients ask about a sandbox from outside: what it uses, and what happened to it.

/** In the box, whose processes and disk are all that it sees. Times are in hundredths of a second. */
const LOOK = `cat /proc/uptime; df -kP "$HOME" | tail -n 1; grep -E '^(MemTotal|Cached):' /proc/meminfo; echo -; cat /proc/[0-9]*/stat 2>/dev/null; :`;
const TICKS = 100;
const PAGE = 4096;
const KIB = 1024;
const MIB = 1024 * KIB;
const LONGEST_LOOK_MS = 10_000;

/** One moment of a sandbox, in E2B's words: now, and the CPU time since it started. */
export async function metricsOf(sandbox: Sandbox, signal: AbortSignal): Promise<object> {
  const { stdout } = await sandbox.run(["sh", "-c", LOOK], { timeoutMs: LONGEST_LOOK_MS, signal });
  const [about = "", processes = ""] = stdout.split("\n-\n", 2);
  const [uptime = "", disk = "", ...memory] = about.split("\n");
  const kib = (name: string): number => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(memory.join("\n"))?.[1] ?? 0);
  // Of each: its CPU time and that of those it waited for, its start, the pages it has in memory.
  const living = processes.split("\n").flatMap((line) => {
    const fields = line
      .slice(line.lastIndexOf(")") + 2)
      .split(" ")
      .map(Number);
    const [user = 0, system = 0, waitedUser = 0, waitedSystem = 0] = fields.slice(11, 15);
    const [start = 0, , pages = 0] = fields.slice(19, 22);
    return fields.length < 22 ? [] : [{ ticks: user + system + waitedUser + waitedSystem, start, pages }];
  });
  const sum = (of: (each: (typeof living)[number]) => number): number =>
    living.reduce((total, each) => total + of(each), 0);
  const began = Math.min(...living.map(({ start }) => start)) / TICKS;
  const lived = Math.max(Number(uptime.split(" ")[0]) - began, 0.01);
  const [, blocks = 0, used = 0] = disk.split(/\s+/).map(Number);
  const { cpuCount, memoryMB } = resourcesMessage(sandbox.info.resources);
  const now = new Date();
  return {
    timestamp: now.toISOString(),
    timestampUnix: Math.floor(now.getTime() / 1000),
    cpuCount,
    cpuUsedPct: Math.round((sum(({ ticks }) => ticks) / TICKS / lived) * 10_000) / 100,
    memUsed: sum(({ pages }) => pages) * PAGE,
    memTotal: memoryMB > 0 ? memoryMB * MIB : kib("MemTotal") * KIB,
    memCache: 0,
    diskUsed: used * KIB,
    diskTotal: blocks * KIB,
  };
}

/** An event of the audit log as a line of E2B's. */
export function logEntryOf({ time, level, type, data }: AuditEvent) {
  const fields = Object.fromEntries(Object.entries(data).map(([name, value]) => [name, textOf(value)]));
  return { timestamp: time.toISOString(), level, message: type.replaceAll("_", " "), fields };
}

/** The older form: the line is JSON. */
export function logLineOf(event: AuditEvent) {
  const { timestamp, level, message, fields } = logEntryOf(event);
  return { timestamp, line: JSON.stringify({ ...fields, level, logger: "agentfense", message }) };
}

function textOf(value: JsonValue): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

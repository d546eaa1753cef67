import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { basename, dirname } from "node:path";
import { type Leftovers, leftovers, openDescriptors } from "./leftovers.ts";
import type { TestServer } from "./server.ts";

/** For the environment of a server whose memory is looked at: lets `residentBytes` ask for a collection of garbage. */
export const INSPECTABLE = { NODE_OPTIONS: "--inspect=127.0.0.1:0" } as const;

/** What a server's process holds on to, as values that can be compared before and after. */
export function holdings({ pid }: TestServer): {
  readonly descriptors: Record<string, number>;
  readonly threads: number;
} {
  return { descriptors: openDescriptors(pid), threads: readdirSync(`/proc/${pid}/task`).length };
}

/** Memory of a server that was started inspectable, without what it would drop anyway. */
export async function residentBytes(server: TestServer): Promise<number> {
  await collectGarbage(server);
  const [, kib] = readFileSync(`/proc/${server.pid}/status`, "utf8").match(/^VmRSS:\s+(\d+) kB$/m) ?? [];
  return Number(kib) * 1024;
}

/** What is left of a server's sandboxes outside of its own directory; ask while it runs. */
export function sandboxLeftovers(server: TestServer): Leftovers {
  const instance = instanceDirectory(server.pid);
  return leftovers(instance, [basename(instance)]);
}

/** Where a server has its mount points; it holds the lock there for as long as it lives. */
export function instanceDirectory(pid: number): string {
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    const target = linkTarget(`/proc/${pid}/fd/${fd}`);
    if (/\/[0-9a-f]{16}\/lock$/.test(target)) return dirname(target);
  }
  throw new Error("the server has no instance");
}

function linkTarget(link: string): string {
  try {
    return readlinkSync(link);
  } catch {
    return ""; // closed while we looked
  }
}

async function collectGarbage({ output }: TestServer): Promise<void> {
  const [address] = output.match(/ws:\/\/\S+/) ?? [];
  if (address === undefined) throw new Error("the server is not inspectable");
  const socket = new WebSocket(address);
  await once(socket, "open");
  socket.send(JSON.stringify({ id: 1, method: "HeapProfiler.collectGarbage" }));
  await once(socket, "message");
  const closed = once(socket, "close");
  socket.close();
  await closed;
}

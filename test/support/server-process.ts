import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { basename, dirname } from "node:path";
import { usedHeap } from "./inspector.ts";
import { type Leftovers, leftovers, openDescriptors } from "./leftovers.ts";
import type { TestServer } from "./server.ts";

/** What a server's process holds on to, as values that can be compared before and after. */
export function holdings({ pid }: TestServer): Holdings {
  return { descriptors: openDescriptors(pid), threads: readdirSync(`/proc/${pid}/task`).length };
}

export interface Holdings {
  readonly descriptors: Readonly<Record<string, number>>;
  readonly threads: number;
}

/** Memory of a server that was started inspectable, without what it would drop anyway. */
export async function memory(server: TestServer): Promise<Memory> {
  const heapBytes = await usedHeap(server);
  const [, kib] = readFileSync(`/proc/${server.pid}/status`, "utf8").match(/^VmRSS:\s+(\d+) kB$/m) ?? [];
  return { heapBytes, residentBytes: Number(kib) * 1024 };
}

export interface Memory {
  readonly heapBytes: number;
  readonly residentBytes: number;
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

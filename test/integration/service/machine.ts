import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { expect } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { leftovers } from "../../support/leftovers.ts";
import { instanceDirectory } from "../../support/server-process.ts";

/** What a server has on this machine besides its files; taken while it lives, for looking afterwards. */
export interface Footprint {
  /** Where its mount points are; the last name is that of its control groups too. */
  readonly directory: string;
  /** Every process below it: id and time of start. */
  readonly processes: ReadonlyMap<number, string>;
}

export function footprint(server: number): Footprint {
  const parents = new Map(processIds().map((pid) => [pid, statusOf(pid)] as const));
  const processes = new Map<number, string>();
  const visit = (above: number): void => {
    for (const [pid, status] of parents) {
      if (status?.parent !== above || processes.has(pid)) continue;
      processes.set(pid, status.startedAt);
      visit(pid);
    }
  };
  visit(server);
  return { directory: instanceDirectory(server), processes };
}

/** Nothing of it is left: no mount, no control group, no process, no directory. Another server may be cleaning up. */
export async function expectGone({ directory, processes }: Footprint): Promise<void> {
  const look = () => ({
    ...leftovers(directory, [basename(directory)]),
    directory: existsSync(directory),
    orphans: [...processes]
      .filter(([pid, startedAt]) => statusOf(pid)?.startedAt === startedAt)
      .map(([pid]) => commandOf(pid)),
  });
  const nothing = { mounts: [], controlGroups: [], processes: [], stateEntries: [], directory: false, orphans: [] };
  await eventually(() => expect(look()).toEqual(nothing));
}

function processIds(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** Undefined for one that is gone, or dead and not asked for by its parent. */
function statusOf(pid: number): { readonly parent: number; readonly startedAt: string } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    // After the name, which may have anything in it: state, parent … and as the 20th field the time of start.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    if (fields[0] === "Z" || fields[0] === "X") return undefined;
    return { parent: Number(fields[1]), startedAt: fields[19] ?? "" };
  } catch {
    return undefined;
  }
}

function commandOf(pid: number): string {
  try {
    return `${pid} ${readFileSync(`/proc/${pid}/cmdline`, "latin1").replaceAll("\0", " ")}`;
  } catch {
    return String(pid);
  }
}

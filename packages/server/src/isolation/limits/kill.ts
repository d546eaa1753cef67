import { rmdir } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { processes, syscalls } from "@agentfense/fuse";
import { IsolationError } from "../backend/isolation-error.ts";
import { FREEZING_PATIENCE_MS, tooBusyToFreeze } from "../backend/pause-switch.ts";
import { errorCode, isGone, isShortage, keyedNumber, readControlIfPresent, words, writeControl } from "./files.ts";
import type { LimitGroup } from "./limits.ts";
import type { Controller, Version } from "./settings.ts";

/** One directory of a group: a group is one directory in each hierarchy it takes controllers from. */
export interface GroupDirectory {
  readonly version: Version;
  readonly directory: string;
  readonly controllers: readonly Controller[];
}

const PATIENCE_MS = 10_000;
const FREEZING_MS = 200;
const SIGKILL = 9;

/**
 * Kills until nobody is left in any of the directories. The first place must be the one that can stop everybody at once (v2,
 * else freezer): processes enter it first, so whoever is in a later one is in it too, and a fork cannot get away.
 */
export async function killMembers(places: readonly GroupDirectory[]): Promise<void> {
  for await (const round of rounds(PATIENCE_MS)) {
    try {
      const inhabited = await firstInhabited(places);
      if (inhabited === undefined) return;
      if (round === "last") break;
      await strike(inhabited);
    } catch (error) {
      // A shortage passes, and nobody must survive because of it.
      if (round === "last" || !isShortage(error)) throw error;
    }
  }
  throw new IsolationError("INTERNAL", "processes of a sandbox survived SIGKILL", {
    hint: "they hang in the kernel, as a rule in a file system that does not answer",
    cause: new Error(`still inhabited: ${places.map(({ directory }) => directory).join(", ")}`),
  });
}

/** Kills who is in the directories and removes them; what is gone already is fine. */
export async function removeDirectories(places: readonly GroupDirectory[]): Promise<void> {
  await killMembers(places);
  // The place that kills goes last: until then a late comer can be caught in it.
  for (const { directory } of places.toReversed()) {
    await removeDirectory(directory, PATIENCE_MS, () => killMembers(places));
  }
}

/** rmdir, again while the kernel is still letting go of the last members (EBUSY). */
export async function removeDirectory(
  directory: string,
  patienceMs: number,
  whenBusy: () => Promise<void> = async () => {},
): Promise<void> {
  for await (const round of rounds(patienceMs)) {
    try {
      return await rmdir(directory);
    } catch (error) {
      if (isGone(error)) return;
      if (errorCode(error) !== "EBUSY" || round === "last") throw error;
    }
    await whenBusy();
  }
}

/** Tries with growing pauses; the last one comes when the time is up. */
async function* rounds(patienceMs: number): AsyncGenerator<"next" | "last"> {
  const deadline = performance.now() + patienceMs;
  for (let pauseMs = 1; performance.now() < deadline; pauseMs = Math.min(pauseMs * 2, 50)) {
    yield "next";
    await sleep(pauseMs);
  }
  yield "last";
}

async function firstInhabited(places: readonly GroupDirectory[]): Promise<GroupDirectory | undefined> {
  for (const place of places) if (await isInhabited(place)) return place;
  return undefined;
}

async function isInhabited({ version, directory }: GroupDirectory): Promise<boolean> {
  if (version === 1) return ((await readControlIfPresent(`${directory}/cgroup.procs`)) ?? "") !== "";
  const events = await readControlIfPresent(`${directory}/cgroup.events`);
  return events !== undefined && keyedNumber(events, "populated") === 1;
}

async function strike(place: GroupDirectory): Promise<void> {
  try {
    if (place.version === 2) await strikeUnified(place.directory);
    else if (place.controllers.includes("freezer")) await strikeFrozen(place.directory, 1);
    else await signalMembers(place.directory);
  } catch (error) {
    if (!isGone(error)) throw error;
  }
}

async function strikeUnified(directory: string): Promise<void> {
  try {
    await writeControl(`${directory}/cgroup.kill`, "1");
  } catch (error) {
    // Kernels before 5.14 have no such file.
    if (errorCode(error) !== "ENOENT") throw error;
    await strikeFrozen(directory, 2);
  }
}

interface FreezerFiles {
  readonly file: string;
  readonly freeze: string;
  readonly thaw: string;
  readonly isFrozen: (directory: string) => Promise<boolean>;
}

const FREEZERS: Record<Version, FreezerFiles> = {
  1: {
    file: "freezer.state",
    freeze: "FROZEN",
    thaw: "THAWED",
    isFrozen: async (directory) => (await readControlIfPresent(`${directory}/freezer.state`)) === "FROZEN",
  },
  2: {
    file: "cgroup.freeze",
    freeze: "1",
    thaw: "0",
    isFrozen: async (directory) =>
      keyedNumber((await readControlIfPresent(`${directory}/cgroup.events`)) ?? "", "frozen") === 1,
  },
};

/** Absent of a place that cannot stop everybody at once. */
export function freezerOf({ directory, version, controllers }: GroupDirectory): LimitGroup["freezer"] {
  if (version === 1 && !controllers.includes("freezer")) return undefined;
  const { file, freeze, thaw, isFrozen } = FREEZERS[version];
  return {
    frozenCanDie: version === 2,
    freeze: async () => {
      await writeControl(`${directory}/${file}`, freeze);
      for await (const _ of rounds(FREEZING_PATIENCE_MS)) if (await isFrozen(directory)) return;
      throw tooBusyToFreeze();
    },
    thaw: () =>
      writeControl(`${directory}/${file}`, thaw).catch((error: unknown) => {
        if (!isGone(error)) throw error;
      }),
  };
}

/** Stops everybody, marks everybody for death, lets them go: no instant in which a marked one could still fork. */
export async function strikeFrozen(directory: string, version: Version): Promise<void> {
  const freezer = FREEZERS[version];
  await writeControl(`${directory}/${freezer.file}`, freezer.freeze);
  try {
    // Who sleeps in the kernel freezes late; whom we miss for that the next round finds.
    for await (const _ of rounds(FREEZING_MS)) if (await freezer.isFrozen(directory)) break;
    await signalMembers(directory);
  } finally {
    await writeControl(`${directory}/${freezer.file}`, freezer.thaw);
  }
}

/**
 * SIGKILL through descriptors, which are opened between two readings of the list: a number that is in both and whose process
 * was replaced in the meantime makes a descriptor of a dead process, never one of a stranger.
 */
async function signalMembers(directory: string): Promise<void> {
  const descriptors = new Map<number, number>();
  try {
    for (const pid of await members(directory)) {
      const descriptor = processes.pidfdOpen(pid);
      if (descriptor >= 0) descriptors.set(pid, descriptor);
    }
    for (const pid of await members(directory)) {
      const descriptor = descriptors.get(pid);
      if (descriptor !== undefined) processes.pidfdSendSignal(descriptor, SIGKILL);
    }
  } finally {
    for (const descriptor of descriptors.values()) syscalls.close(descriptor);
  }
}

/** The processes of one directory. 0 stands for one of another pid namespace, which cannot be named from here. */
export async function members(directory: string): Promise<number[]> {
  const list = (await readControlIfPresent(`${directory}/cgroup.procs`)) ?? "";
  return words(list)
    .map(Number)
    .filter((pid) => pid > 0);
}

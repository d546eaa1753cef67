import { mkdir } from "node:fs/promises";
import type { ResourceLimits, ResourceUsage } from "../backend/backend.ts";
import { IsolationError } from "../backend/isolation-error.ts";
import { errorCode, keyedNumber, readControlIfPresent, writeControl, writeControlNow } from "./files.ts";
import { freezerOf, type GroupDirectory, killMembers, removeDirectories } from "./kill.ts";
import type { LimitGroup } from "./limits.ts";
import { type Reading, type Readings, readings, type Setting, settings, type Version } from "./settings.ts";

/** Makes the directories of one group and sets its limits; when anything of it fails nothing is left. */
export async function makeControlGroup(
  places: readonly GroupDirectory[],
  limits: ResourceLimits,
  rlimits: LimitGroup["rlimits"],
  onRemoved: () => void,
): Promise<ControlGroup> {
  const made: GroupDirectory[] = [];
  const making = places.map(async (place) => {
    await mkdir(place.directory);
    made.push(place);
    for (const setting of settings(place.version, place.controllers, limits)) await apply(place.directory, setting);
  });
  const failed = (await Promise.allSettled(making)).find((one) => one.status === "rejected");
  if (failed !== undefined) {
    await removeDirectories(places.filter((place) => made.includes(place)));
    throw explain(failed.reason);
  }
  return new ControlGroup(places, limits.pids, rlimits, onRemoved);
}

/** bwrap and the keeper. */
const OWN_PROCESSES = 2;

/**
 * The kernel moves a thread that moves itself at once. Whole processes make it wait for all CPUs, ten milliseconds as a rule; version
 * 2 moves no others, but a process can be born in its group (see perl/launcher.pl).
 */
const ENTRANCE = { 1: "tasks", 2: "cgroup.procs" } satisfies Record<Version, string>;

/** One box's group: a directory in each hierarchy that lends it controllers. */
export class ControlGroup implements LimitGroup {
  readonly entrances: readonly string[];
  readonly rlimits: LimitGroup["rlimits"];
  readonly freezer: LimitGroup["freezer"];
  readonly #places: readonly GroupDirectory[];
  readonly #sources: { readonly [Name in keyof Readings]: Reading };
  readonly #onRemoved: () => void;
  readonly #pids: { readonly file: string; readonly limit: number } | undefined;
  #ownProcesses = 0;
  #knownOomKills = 0;
  #removal: Promise<void> | undefined;

  constructor(
    places: readonly GroupDirectory[],
    pids: number | undefined,
    rlimits: LimitGroup["rlimits"],
    onRemoved: () => void,
  ) {
    this.#places = places;
    const place = places.find(({ controllers }) => controllers.includes("pids"));
    this.#pids =
      place === undefined || pids === undefined ? undefined : { file: `${place.directory}/pids.max`, limit: pids };
    this.entrances = places.map(({ version, directory }) => `${directory}/${ENTRANCE[version]}`);
    this.rlimits = rlimits;
    // Processes enter that one first: whoever is in another is in it too.
    this.freezer = places[0] && freezerOf(places[0]);
    this.#onRemoved = onRemoved;
    this.#sources = sources(places);
  }

  makeRoom(ownProcesses: number): void {
    this.#ownProcesses = OWN_PROCESSES + ownProcesses;
    if (this.#pids === undefined || this.#removal !== undefined) return;
    const { file, limit } = this.#pids;
    writeControlNow(file, `${limit + this.#ownProcesses}`);
  }

  async oomKills(): Promise<number> {
    // A removed group has no counter any more; what was seen last remains true.
    this.#knownOomKills = (await read(this.#sources.oomKills)) ?? this.#knownOomKills;
    return this.#knownOomKills;
  }

  async usage(): Promise<ResourceUsage> {
    const [memoryBytes, pids, cpuMicros] = await Promise.all([
      read(this.#sources.memoryBytes),
      read(this.#sources.pids),
      read(this.#sources.cpuMicros),
    ]);
    return { memoryBytes, pids: pids && Math.max(0, pids - this.#ownProcesses), cpuMicros };
  }

  kill(): Promise<void> {
    return killMembers(this.#places);
  }

  remove(): Promise<void> {
    this.#removal ??= this.#removeOnce();
    return this.#removal;
  }

  async #removeOnce(): Promise<void> {
    try {
      await this.oomKills();
      await removeDirectories(this.#places);
      this.#onRemoved();
    } catch (error) {
      this.#removal = undefined; // the next call tries again
      throw error;
    }
  }
}

/** For each number the first place that has it, with the whole path. */
function sources(places: readonly GroupDirectory[]): { readonly [Name in keyof Readings]: Reading } {
  const found: Record<string, Reading> = {};
  for (const { version, controllers, directory } of places) {
    for (const [name, reading] of Object.entries(readings(version, controllers)) as [string, Reading][]) {
      found[name] ??= { ...reading, file: `${directory}/${reading.file}` };
    }
  }
  return found;
}

async function read(source: Reading | undefined): Promise<number | undefined> {
  const text = source === undefined ? undefined : await readControlIfPresent(source.file);
  if (source === undefined || text === undefined) return undefined;
  const value = source.key === undefined ? Number(text) : keyedNumber(text, source.key);
  return value === undefined ? undefined : Math.floor(value / (source.divisor ?? 1));
}

async function apply(directory: string, setting: Setting): Promise<void> {
  try {
    await writeControl(`${directory}/${setting.file}`, setting.value);
  } catch (error) {
    const code = errorCode(error);
    if (code === "ENOENT" && setting.ifPresent) return;
    if (code === "EINVAL" && setting.unlessTighterAbove) return;
    throw error;
  }
}

function explain(error: unknown): IsolationError {
  switch (errorCode(error)) {
    case "EEXIST":
      return new IsolationError("INTERNAL", "a control group of this sandbox exists already", { cause: error });
    case "ENOSPC":
    case "ENOMEM":
    case "EAGAIN":
    case "EMFILE":
    case "ENFILE":
      return new IsolationError("RESOURCES_EXHAUSTED", "the host has no room for another control group", {
        hint: "destroy sandboxes that are not needed, or raise cgroup.max.descendants",
        cause: error,
      });
    default:
      return new IsolationError("INTERNAL", "the control group of the sandbox could not be made", { cause: error });
  }
}

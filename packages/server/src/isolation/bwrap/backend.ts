import { stat } from "node:fs/promises";
import { syscalls } from "@agentfense/fuse";
import type { Backend, BoxSpec, CreateOptions } from "../backend/backend.ts";
import { DescriptorRoom } from "../backend/descriptor-room.ts";
import { SandboxError } from "../backend/errors.ts";
import type { LimitHost } from "../limits/limits.ts";
import type { LogLine } from "../log.ts";
import { descriptorLimit } from "../mount/descriptor-plan.ts";
import { seccompFilter } from "../seccomp/filter.ts";
import { POLICY_OF_COUNTED_MEMORY } from "../seccomp/policy.ts";
import { BootClock } from "./boot-clock.ts";
import { BwrapBox } from "./box.ts";
import { memoryFile } from "./descriptors.ts";
import { BoxOwners } from "./identity.ts";
import { carriedInterpreter, sharedInterpreter } from "./interpreter.ts";
import { Launcher } from "./launcher.ts";
import { PrivateNetworks } from "./network.ts";
import { endOrphans, markerOf } from "./orphans.ts";
import { checkSpec } from "./plan.ts";
import { findProcMasks, type ProcMasks } from "./proc-masks.ts";
import { findPrograms, type HostPrograms, tryBwrap } from "./programs.ts";
import { hostSystem, rootDirectorySystem, type System } from "./system.ts";

export interface BwrapOptions {
  /** Names this server on the host; what it leaves behind is found by it. */
  readonly instance: string;
  readonly limits: LimitHost;
  readonly bwrapPath?: string | undefined;
  readonly log?: ((line: LogLine) => void) | undefined;
}

/** Boxes made by bubblewrap: no daemon, no image, the host's own programs. */
export class BwrapBackend implements Backend {
  readonly name = "bwrap";
  readonly degradations: readonly string[];
  readonly #launcher: Launcher;
  readonly #marker: string;
  readonly #limits: LimitHost;
  readonly #owners: BoxOwners;
  readonly #masks: ProcMasks;
  readonly #hostSystem: System;
  /** The contents of its files, in their order; every box without a root directory of its own shares them. */
  readonly #hostFiles: readonly number[];
  readonly #clock = new BootClock();
  readonly #seccomp: number;
  readonly #seccompOfCountedMemory: number;
  readonly #programs: HostPrograms;
  readonly #network: PrivateNetworks;
  readonly #leftoverRoom = new DescriptorRoom(Math.floor(descriptorLimit() / 16));
  /** With the descriptors that belong to each. */
  readonly #boxes = new Map<BwrapBox, readonly number[]>();
  #closing: Promise<void> | undefined;

  private constructor(
    options: BwrapOptions,
    found: { programs: HostPrograms; owners: BoxOwners; masks: ProcMasks; system: System },
  ) {
    this.#marker = markerOf(options.instance);
    this.#limits = options.limits;
    this.#programs = found.programs;
    this.#owners = found.owners;
    this.#masks = found.masks;
    this.#hostSystem = found.system;
    this.#hostFiles = contentsOf(found.system);
    this.degradations = [...options.limits.degradations, ...found.owners.degradations];
    this.#seccomp = memoryFile("seccomp", seccompFilter());
    this.#seccompOfCountedMemory = memoryFile("seccomp", seccompFilter(undefined, POLICY_OF_COUNTED_MEMORY));
    this.#network = new PrivateNetworks({ setpriv: found.programs.setpriv, marker: this.#marker });
    this.#launcher = new Launcher({ perl: found.programs.perl, log: options.log ?? (() => {}) });
  }

  static async open(options: BwrapOptions): Promise<BwrapBackend> {
    const owners = new BoxOwners();
    const programs = await findPrograms({ isRoot: owners.isRoot, bwrapPath: options.bwrapPath });
    const trialOwner = owners.take();
    await tryBwrap(programs, owners.isRoot ? trialOwner : undefined);
    owners.giveBack(trialOwner);
    const backend = new BwrapBackend(options, {
      programs,
      owners,
      masks: await findProcMasks({ ownUser: owners.isRoot }),
      system: await hostSystem(),
    });
    backend.#launcher.start();
    await backend.#clock.settle();
    return backend;
  }

  /** For tests: the process that starts all others. */
  get launcherPid(): number | undefined {
    return this.#launcher.pid;
  }

  async createBox(spec: BoxSpec, options: CreateOptions = {}): Promise<BwrapBox> {
    if (this.#closing !== undefined) throw new SandboxError("SANDBOX_NOT_RUNNING", "the backend is closed");
    checkSpec(spec);
    if (spec.network === "private") await this.#network.check();
    for (const path of spec.readOnlyPaths) {
      await stat(path).catch((cause: unknown) => {
        throw new SandboxError("INVALID_ARGUMENT", `this read-only path does not exist: ${path}`, { cause });
      });
    }
    const system = spec.rootDirectory === undefined ? this.#hostSystem : await rootDirectorySystem(spec.rootDirectory);
    if (options.signal?.aborted) {
      throw new SandboxError("CANCELLED", "the call was cancelled", { cause: options.signal.reason });
    }
    const { perl } = this.#programs;
    const interpreter = spec.rootDirectory === undefined ? sharedInterpreter(perl) : await carriedInterpreter(perl);
    const group = await this.#limits.createGroup(spec.id, spec.limits);
    const ownFiles = system === this.#hostSystem ? [] : contentsOf(system);
    const box = new BwrapBox({
      spec,
      owner: this.#owners.take(),
      system,
      group,
      surroundings: {
        marker: this.#marker,
        isRoot: this.#owners.isRoot,
        masks: this.#masks,
        systemFiles: system === this.#hostSystem ? this.#hostFiles : ownFiles,
        seccomp: this.#seccomp,
        seccompOfCountedMemory: this.#seccompOfCountedMemory,
        clock: this.#clock,
        network: this.#network,
        launcher: this.#launcher,
        leftoverRoom: this.#leftoverRoom,
        programs: this.#programs,
        interpreter,
      },
      onDestroyed: async (gone) => this.#forget(gone),
    });
    this.#boxes.set(box, ownFiles);
    return box;
  }

  async removeOrphans(deadInstances: readonly string[]): Promise<void> {
    await endOrphans(deadInstances);
    await this.#limits.removeOrphans(deadInstances);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    const results = await Promise.allSettled([...this.#boxes.keys()].map((box) => box.destroy()));
    await this.#launcher.close();
    for (const fd of [this.#seccomp, this.#seccompOfCountedMemory, ...this.#hostFiles]) syscalls.close(fd);
    const failed = results.find((result) => result.status === "rejected");
    if (failed) throw failed.reason;
  }

  #forget(box: BwrapBox): void {
    for (const fd of this.#boxes.get(box) ?? []) syscalls.close(fd);
    this.#boxes.delete(box);
    this.#owners.giveBack(box.owner);
  }
}

function contentsOf(system: System): number[] {
  return Object.entries(system.files).map(([path, content]) => memoryFile(path, Buffer.from(content)));
}

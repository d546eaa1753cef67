import { stat } from "node:fs/promises";
import { syscalls } from "@agentfense/fuse";
import type { Backend, BoxSpec, CreateOptions } from "../backend/backend.ts";
import { DescriptorRoom } from "../backend/descriptor-room.ts";
import { IsolationError, throwIfCancelled } from "../backend/isolation-error.ts";
import type { LimitHost } from "../limits/limits.ts";
import type { LogLine } from "../log.ts";
import { descriptorLimit } from "../mount/descriptor-plan.ts";
import { findTrustStores, treeBelow, trustPlan } from "../network/trust.ts";
import { seccompFilter } from "../seccomp/filter.ts";
import { POLICY_OF_COUNTED_MEMORY } from "../seccomp/policy.ts";
import { type BoxSurroundings, BwrapBox } from "./box.ts";
import { memoryFile } from "./descriptors.ts";
import { BootClock } from "./host-processes.ts";
import { BoxOwners } from "./identity.ts";
import { carriedInterpreter, sharedInterpreter } from "./interpreter.ts";
import { Launcher } from "./launcher.ts";
import { PrivateNetworks } from "./network.ts";
import { endOrphans, markerOf } from "./orphans.ts";
import { checkSpec } from "./plan.ts";
import { findPrograms, type HostPrograms, tryBwrap } from "./programs.ts";
import { findProcMasks, hostSystem, type ProcMasks, rootDirectorySystem, type System, withAccount } from "./system.ts";

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
  readonly #limits: LimitHost;
  readonly #owners: BoxOwners;
  readonly #hostSystem: System;
  /** The contents of its files, in their order; every box without a root directory of its own shares them. */
  readonly #hostFiles: readonly number[];
  readonly #surroundings: BoxSurroundings;
  /** With the descriptors that belong to each. */
  readonly #boxes = new Map<BwrapBox, readonly number[]>();
  #closing: Promise<void> | undefined;

  private constructor(
    options: BwrapOptions,
    found: { programs: HostPrograms; owners: BoxOwners; masks: ProcMasks; system: System },
  ) {
    const { programs, owners, masks, system } = found;
    const marker = markerOf(options.instance);
    this.#limits = options.limits;
    this.#owners = owners;
    this.#hostSystem = system;
    this.#hostFiles = contentsOf(system);
    this.degradations = [...options.limits.degradations, ...owners.degradations];
    this.#surroundings = {
      marker,
      isRoot: owners.isRoot,
      programs,
      masks,
      seccomp: memoryFile("seccomp", seccompFilter()),
      seccompOfCountedMemory: memoryFile("seccomp", seccompFilter(undefined, POLICY_OF_COUNTED_MEMORY)),
      clock: new BootClock(),
      network: new PrivateNetworks({ setpriv: programs.setpriv, marker }),
      launcher: new Launcher({ perl: programs.perl, log: options.log ?? (() => {}) }),
      leftoverRoom: new DescriptorRoom(Math.floor(descriptorLimit() / 16)),
    };
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
    backend.#surroundings.launcher.start();
    await backend.#surroundings.clock.settle();
    return backend;
  }

  /** For tests: the process that starts all others. */
  get launcherPid(): number | undefined {
    return this.#surroundings.launcher.pid;
  }

  async createBox(spec: BoxSpec, options: CreateOptions = {}): Promise<BwrapBox> {
    if (this.#closing !== undefined) throw new IsolationError("SANDBOX_NOT_RUNNING", "the backend is closed");
    checkSpec(spec);
    if (spec.network === "private") await this.#surroundings.network.check();
    for (const path of spec.readOnlyPaths) {
      await stat(path).catch((cause: unknown) => {
        throw new IsolationError("INVALID_ARGUMENT", `this read-only path does not exist: ${path}`, { cause });
      });
    }
    const plain = spec.rootDirectory === undefined ? this.#hostSystem : await rootDirectorySystem(spec.rootDirectory);
    const system = spec.account === undefined ? plain : withAccount(plain, spec.account);
    const shows = (path: string): boolean => system.binds.some(({ target }) => path.startsWith(`${target}/`));
    const stores = spec.trust && (await findTrustStores(treeBelow(spec.rootDirectory ?? "/"), shows));
    const trust = spec.trust && stores && trustPlan(spec.trust, stores);
    throwIfCancelled(options.signal);
    const { perl } = this.#surroundings.programs;
    const interpreter = spec.rootDirectory === undefined ? sharedInterpreter(perl) : await carriedInterpreter(perl);
    const group = await this.#limits.createGroup(spec.id, spec.limits);
    const files = this.#filesOf(system);
    const owner = this.#owners.take();
    const box: BwrapBox = new BwrapBox({
      ...{ spec, owner, system, trust, interpreter, group },
      systemFiles: files.all,
      surroundings: this.#surroundings,
      onDestroyed: () => this.#forget(box),
    });
    this.#boxes.set(box, files.own);
    return box;
  }

  async removeOrphans(deadInstances: readonly string[]): Promise<void> {
    await endOrphans(deadInstances);
    await this.#limits.removeOrphans(deadInstances);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const results = await Promise.allSettled([...this.#boxes.keys()].map((box) => box.destroy()));
    const { launcher, seccomp, seccompOfCountedMemory } = this.#surroundings;
    await launcher.close();
    for (const fd of [seccomp, seccompOfCountedMemory, ...this.#hostFiles]) syscalls.close(fd);
    const failed = results.find((result) => result.status === "rejected");
    if (failed) throw failed.reason;
  }

  /** The contents of a system's files; those that are as the host's are shared. */
  #filesOf(system: System): { readonly all: readonly number[]; readonly own: readonly number[] } {
    const shared = new Map(
      Object.entries(this.#hostSystem.files).map(([, content], at) => [content, this.#hostFiles[at]]),
    );
    const own: number[] = [];
    const all = Object.entries(system.files).map(([path, content]) => {
      const known = shared.get(content);
      if (known !== undefined) return known;
      const fd = memoryFile(path, Buffer.from(content));
      own.push(fd);
      return fd;
    });
    return { all, own };
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

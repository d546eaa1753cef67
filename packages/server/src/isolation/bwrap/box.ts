import type { Socket } from "node:net";
import { syscalls } from "@agentfense/fuse";
import {
  type Box,
  type BoxCommand,
  type BoxProcess,
  type BoxSpec,
  type Cancellable,
  type ProcessExit,
  type ResourceUsage,
  refuseHostNetwork,
  type ShellCommand,
  type ShellProcess,
  type SocketOwner,
  type StartOptions,
  type TerminalCommand,
  type TerminalProcess,
} from "../backend/backend.ts";
import type { DescriptorRoom } from "../backend/descriptor-room.ts";
import { notRunning, throwIfCancelled } from "../backend/isolation-error.ts";
import { PauseSwitch } from "../backend/pause-switch.ts";
import type { Owner } from "../filesystem/presentation.ts";
import type { LimitGroup } from "../limits/limits.ts";
import { memoryForFiles } from "../limits/rlimits.ts";
import type { TrustPlan } from "../network/trust.ts";
import type { Command, CommandRequest } from "./command.ts";
import { memoryFile } from "./descriptors.ts";
import { nameFiles } from "./etc.ts";
import { explainFailure } from "./explain-failure.ts";
import type { BootClock } from "./host-processes.ts";
import type { Interpreter } from "./interpreter.ts";
import { Keeper, type KeeperRequest } from "./keeper.ts";
import type { Launcher } from "./launcher.ts";
import { loopbackOf, type PrivateNetworks } from "./network.ts";
import { boxPlan, checkCommand, checkEnvironment } from "./plan.ts";
import { boxProcess, boxShell } from "./process.ts";
import type { HostPrograms } from "./programs.ts";
import { socketOwner } from "./socket-owner.ts";
import type { ProcMasks, System } from "./system.ts";
import { boxTerminal, openPseudoTerminal } from "./terminal.ts";

interface Launched {
  readonly command: Command;
  readonly exit: Promise<ProcessExit>;
}

/** The kernel's numbers of the limits that stand in for control groups. */
const RLIMIT = { data: 2, nproc: 6 } satisfies Record<LimitGroup["rlimits"][number]["resource"], number>;

/** The keeper and the command's own waiter, which an rlimit on processes counts with those of the commands. */
const OWN_PROCESSES = 2;

/** After a cancelled command was told to end. */
const ABANDON_MS = 1_000;

/** What a box shares with the others of its backend. */
export interface BoxSurroundings {
  readonly marker: string;
  readonly isRoot: boolean;
  readonly programs: HostPrograms;
  readonly masks: ProcMasks;
  readonly seccomp: number;
  /** For a box whose memory limit is one of single processes. */
  readonly seccompOfCountedMemory: number;
  readonly clock: BootClock;
  readonly network: PrivateNetworks;
  readonly launcher: Launcher;
  readonly leftoverRoom: DescriptorRoom;
}

export interface BwrapBoxOptions {
  readonly spec: BoxSpec;
  readonly owner: Owner;
  readonly system: System;
  /** Descriptors with the contents of its files, in their order. */
  readonly systemFiles: readonly number[];
  readonly trust: TrustPlan | undefined;
  readonly interpreter: Interpreter;
  readonly group: LimitGroup;
  readonly surroundings: BoxSurroundings;
  readonly onDestroyed: () => void;
}

/**
 * A box is made at its start and lives until it is destroyed: one bwrap, in it a keeper, and every command, shell and terminal is
 * a fork of that. They share namespaces, /tmp and the loopback device, as the programs of one machine do.
 */
export class BwrapBox implements Box {
  readonly owner: Owner;
  readonly #spec: BoxSpec;
  readonly #group: LimitGroup;
  readonly #around: BoxSurroundings;
  readonly #options: BwrapBoxOptions;
  #env: Readonly<Record<string, string>> = {};
  #keeper: Keeper | undefined;
  /** With those that broke and are not gone yet. */
  readonly #keepers = new Set<Keeper>();
  readonly #pause: PauseSwitch;
  #destroying: Promise<void> | undefined;

  constructor(options: BwrapBoxOptions) {
    this.#options = options;
    this.owner = options.owner;
    this.#spec = options.spec;
    this.#group = options.group;
    this.#around = options.surroundings;
    let goOn = (): void => {};
    this.#pause = new PauseSwitch(
      this.#group.freezer ?? {
        freeze: async () => {
          goOn = (await this.#keeper?.stopAll()) ?? goOn;
        },
        thaw: async () => goOn(),
      },
    );
  }

  /** For tests: process 1 of the box, as the host counts. */
  get initPid(): number | undefined {
    return this.#keeper?.initPid;
  }

  async start({ signal, mounted }: StartOptions = {}): Promise<void> {
    throwIfCancelled(signal);
    if (this.#destroying !== undefined) throw notRunning();
    await this.#living(signal, mounted);
  }

  async run(command: BoxCommand, options: Cancellable = {}): Promise<BoxProcess> {
    const streams = { kind: "pipes", stdin: command.stdin, channel: false, owner: this.#ownerBesideUs } as const;
    const { command: running, exit } = await this.#launch(command, streams, options.signal);
    return boxProcess(running, exit);
  }

  async openShell(shell: ShellCommand, options: Cancellable = {}): Promise<ShellProcess> {
    const streams = { kind: "pipes", stdin: true, channel: true, owner: this.#ownerBesideUs } as const;
    const { command, exit } = await this.#launch(shell, streams, options.signal);
    const isLimited = this.#spec.limits.memoryBytes !== undefined;
    const oomKills = isLimited ? () => this.#group.oomKills() : undefined;
    return boxShell(command, exit, { clock: this.#around.clock, oomKills });
  }

  openTerminal(request: TerminalCommand, options: Cancellable = {}): Promise<TerminalProcess> {
    return this.#pause.awake(() => this.#openTerminal(request, options));
  }

  async #openTerminal(request: TerminalCommand, options: Cancellable): Promise<TerminalProcess> {
    const keeper = await this.#ready(options.signal);
    const opening = keeper.openTerminal();
    await this.#patiently(opening, options.signal, () => opening.then(syscalls.close, () => {}));
    const terminal = openPseudoTerminal(await opening, request.size);
    try {
      const streams = { kind: "terminal", terminal: terminal.otherSide } as const;
      const { command, exit } = await this.#launch(request, streams, options.signal);
      return boxTerminal(command, exit, terminal);
    } catch (error) {
      terminal.stream.destroy();
      throw error;
    } finally {
      syscalls.close(terminal.otherSide);
    }
  }

  async connect(port: number, options: Cancellable = {}): Promise<Socket> {
    refuseHostNetwork(this.#spec.network);
    const { sockets } = await this.#ready(options.signal);
    const connecting = sockets.connect(port, options.signal);
    const dropLate = (): unknown => connecting.then((late) => late.destroy()).catch(() => {});
    await this.#patiently(connecting, options.signal, dropLate);
    return await connecting;
  }

  async shells(): Promise<readonly string[]> {
    return this.#options.system.shells;
  }

  usage(): Promise<ResourceUsage> {
    return this.#group.usage();
  }

  get isPaused(): boolean {
    return this.#pause.isPaused;
  }

  async pause(): Promise<void> {
    this.#throwIfNotRunning();
    await this.#pause.pause();
  }

  async resume(): Promise<void> {
    this.#throwIfNotRunning();
    await this.#pause.resume();
  }

  destroy(): Promise<void> {
    this.#destroying ??= this.#destroy();
    return this.#destroying;
  }

  async #ready(signal: AbortSignal | undefined): Promise<Keeper> {
    throwIfCancelled(signal);
    this.#throwIfNotRunning();
    const keeper = await this.#living(signal);
    await keeper.attached?.renew?.();
    throwIfCancelled(signal);
    this.#throwIfNotRunning();
    return keeper;
  }

  /** The box as it is, or a new one in place of one that broke. */
  async #living(signal: AbortSignal | undefined, mounted?: Promise<unknown>): Promise<Keeper> {
    if (this.#keeper === undefined || this.#keeper.isOver) this.#keeper = this.#make(mounted);
    const keeper = this.#keeper;
    await this.#patiently(keeper.ready, signal, () => {});
    return keeper;
  }

  #make(mounted: Promise<unknown> = Promise.resolve()): Keeper {
    const { network, hostname, limits } = this.#spec;
    const { system, systemFiles, interpreter, trust } = this.#options;
    const { marker, programs } = this.#around;
    const own = nameFiles(hostname, network, network === "none" ? "" : this.#around.network.resolver(network));
    const ownFiles = this.#spec.rootDirectory === undefined ? Object.entries(own) : [];
    const plan = boxPlan({
      spec: this.#spec,
      system,
      masks: this.#around.masks,
      binds: interpreter.binds,
      files: [...Object.keys(system.files), ...ownFiles.map(([path]) => path)],
      trust,
      memoryForFiles: this.#isMemoryCounted ? undefined : memoryForFiles(limits.memoryBytes ?? 0),
    });
    this.#env = plan.env;
    this.#group.makeRoom(0);
    const ownDescriptors = [...ownFiles, ...Object.entries(trust?.files ?? {})].map(([path, content]) =>
      memoryFile(path, Buffer.from(content)),
    );
    try {
      const keeper: Keeper = new Keeper({
        launcher: this.#around.launcher,
        // The marker tells a later server whose process this was.
        bwrap: [programs.bwrap, "--unsetenv", marker],
        options: mounted.then(() => plan.options),
        interpreter: interpreter.argv,
        entrances: this.#group.entrances,
        owner: this.owner,
        becomes: this.#ownerBesideUs,
        seccomp: this.#isMemoryCounted ? this.#around.seccomp : this.#around.seccompOfCountedMemory,
        files: [...systemFiles, ...ownDescriptors],
        attach: this.#attachment(),
        listens: network === "filtered",
        explain: (said) => explainFailure(said, this.#spec),
        leftoverRoom: this.#around.leftoverRoom,
        ending: (work) => (this.#group.freezer?.frozenCanDie === false ? this.#pause.awake(work) : work()),
        onWaiters: (count) => {
          if (this.#keeper === keeper) this.#group.makeRoom(count); // not for one that broke and whose commands are told
        },
      });
      this.#keepers.add(keeper);
      void keeper.ended.then(() => this.#keepers.delete(keeper));
      return keeper;
    } finally {
      for (const fd of ownDescriptors) syscalls.close(fd);
    }
  }

  #attachment(): KeeperRequest["attach"] {
    const { network, answerIn } = this.#spec;
    if (network === "private") return (initPid) => this.#around.network.attach(initPid, this.owner);
    if (network !== "filtered" || answerIn === undefined) return undefined;
    return async (initPid, sockets) => {
      await loopbackOf(initPid);
      const owner: SocketOwner = (protocol, port) => socketOwner(initPid, protocol, port);
      return await answerIn((places) => sockets.listen(places), owner);
    };
  }

  /** Whether a control group counts the memory, with all that processes share; or there is no limit. */
  get #isMemoryCounted(): boolean {
    return !this.#group.rlimits.some(({ resource }) => resource === "data");
  }

  /** Where the box's user is another than the server's. */
  get #ownerBesideUs(): Owner | undefined {
    return this.#around.isRoot ? this.owner : undefined;
  }

  async #destroy(): Promise<void> {
    try {
      this.#keeper = undefined;
      for (const keeper of this.#keepers) keeper.kill();
      await this.#group.kill();
      await Promise.all([...this.#keepers].map((keeper) => keeper.ended));
      await this.#pause.resume(); // who waits for a pause waits no longer
    } finally {
      await this.#group.remove();
      this.#options.onDestroyed();
    }
  }

  #launch(request: ShellCommand, streams: CommandRequest["streams"], signal?: AbortSignal): Promise<Launched> {
    return this.#pause.awake(() => this.#launchAwake(request, streams, signal));
  }

  async #launchAwake(
    request: ShellCommand,
    streams: CommandRequest["streams"],
    signal: AbortSignal | undefined,
  ): Promise<Launched> {
    checkCommand(request);
    checkEnvironment(request.env);
    for (let isFirst = true; ; isFirst = false) {
      const keeper = await this.#ready(signal);
      const oomKillsBefore = this.#spec.limits.memoryBytes === undefined ? undefined : this.#group.oomKills();
      oomKillsBefore?.catch(() => {}); // asked again when the command ends
      const command = keeper.run({
        argv: request.argv,
        env: { ...this.#env, PWD: request.workdir, ...request.env },
        workdir: request.workdir,
        rlimits: () => this.#rlimits(),
        streams,
      });
      try {
        await this.#patiently(command.started, signal, () => command.kill());
      } catch (error) {
        // The box broke just before, and there will be another; or its waiter was killed, and there will be others.
        if (command.neverBegan && (keeper.isOver ? isFirst : command.wasGivenToStanding)) continue;
        throw error;
      }
      const exit = this.#exitOf(command, oomKillsBefore);
      exit.catch(() => {}); // a caller that killed it may not look any more
      return { command, exit };
    }
  }

  #rlimits(): { resource: number; value: number }[] {
    return this.#group.rlimits.map(({ resource, value }) => ({
      resource: RLIMIT[resource],
      value: resource === "nproc" ? value + OWN_PROCESSES : value,
    }));
  }

  /** What depends on the box must not hold the caller up: it may have no CPU or memory left. */
  async #patiently(promise: Promise<unknown>, signal: AbortSignal | undefined, giveUp: () => unknown): Promise<void> {
    const abandoned = Promise.withResolvers<never>();
    abandoned.promise.catch(() => {});
    let patience: NodeJS.Timeout | undefined;
    const onAbort = (): void => {
      giveUp();
      patience = setTimeout(() => abandoned.reject(new Error("it did not start in time")), ABANDON_MS);
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      await Promise.race([promise, abandoned.promise]);
    } catch (error) {
      throwIfCancelled(signal);
      this.#throwIfNotRunning();
      throw error;
    } finally {
      signal?.removeEventListener("abort", onAbort);
      clearTimeout(patience);
    }
    throwIfCancelled(signal);
  }

  async #exitOf(command: Command, oomKillsBefore: Promise<number> | undefined): Promise<ProcessExit> {
    const end = await command.ended;
    const outOfMemory = oomKillsBefore !== undefined && (await this.#group.oomKills()) > (await oomKillsBefore);
    if ("exitCode" in end) return { exitCode: end.exitCode, outOfMemory };
    if (outOfMemory) return { exitCode: 137, outOfMemory }; // the limit hit the keeper itself
    throw end.failure;
  }

  #throwIfNotRunning(): void {
    if (this.#keeper === undefined) throw notRunning();
  }
}

import { fstatSync } from "node:fs";
import type { Socket } from "node:net";
import { processes, syscalls } from "@agentfense/fuse";
import type { DescriptorRoom } from "../backend/descriptor-room.ts";
import { asIsolationError, IsolationError, notRunning } from "../backend/isolation-error.ts";
import { Leftovers, MOST_LEFT, tooManyLeft } from "../backend/leftovers.ts";
import type { Owner } from "../filesystem/presentation.ts";
import { Command, type CommandRequest } from "./command.ts";
import { killTrees, stopTree } from "./command-tree.ts";
import { DescriptorSet, readFrom, writeTo } from "./descriptors.ts";
import {
  childrenOf,
  findProcess,
  type HostProcess,
  holdProcess,
  innerPid,
  isBoxInit,
  isEnding,
  waitUntilGone,
  withDescendants,
} from "./host-processes.ts";
import type { Launcher } from "./launcher.ts";
import { type Attachment, openNamespaces } from "./network.ts";
import { askForDescriptor, type Sending, sendOrder } from "./orders.ts";
import { scriptFile } from "./scripts.ts";
import { type BoxNetwork, BoxSockets } from "./sockets.ts";
import { StandingWaiter } from "./standing-waiter.ts";

const SIGKILL = 9;
const GONE_TIMEOUT_MS = 5_000;
const VOICE_BYTES = 16 * 1024;
/** Orders that the keeper has not begun: more would only wait in the kernel, which has room for few. */
const MOST_UNBEGUN = 32;
const RETRY_MS = 5;
/** Most of what a command started ends a moment after it; only what is still there then was left behind. */
const LEFT_AFTER_MS = 1_000;

/** The descriptors of bwrap, behind those that are the keeper's: its script, twice its voice, and its orders. */
export const BoxDescriptor = { options: 4, seccomp: 5, status: 6, block: 7, firstFile: 8 } as const;

export interface KeeperRequest {
  readonly launcher: Launcher;
  /** The program and its first options, up to those of the box. */
  readonly bwrap: readonly string[];
  /** bwrap waits for them, and with them for whatever they need to be there: meanwhile it gets that far. */
  readonly options: Promise<readonly string[]>;
  readonly interpreter: readonly string[];
  readonly entrances: readonly string[];
  readonly owner: Owner;
  /** The same where the server is somebody else. */
  readonly becomes: Owner | undefined;
  readonly seccomp: number;
  /** Contents for `--file`, in the order of their descriptors; each is read from its start. */
  readonly files: readonly number[];
  /** What the box needs from outside while bwrap waits in it, before anything runs; closed when the box is gone. */
  readonly attach: ((initPid: number, sockets: BoxSockets) => Promise<Attachment>) | undefined;
  /** Whether the server listens in the box's network. */
  readonly listens: boolean;
  readonly leftoverRoom: DescriptorRoom;
  /** Why it was not made, from what was said meanwhile. */
  readonly explain: (said: string) => IsolationError;
  /** See CommandPlace. */
  readonly ending: <T>(work: () => Promise<T>) => Promise<T>;
  /** Called when processes of ours come or go in the box, with how many there are besides bwrap and the keeper. */
  readonly onWaiters: (count: number) => void;
}

/**
 * A box that lives: one bwrap, and as process 1 in it a keeper that forks what it is told to (perl/keeper.pl). bwrap's status
 * pipe tells its story: `child-pid` (process 1, as the host counts), and the end of file, when bwrap is gone.
 */
export class Keeper {
  readonly #ready = Promise.withResolvers<void>();
  readonly #end = Promise.withResolvers<void>();
  /** Resolves when commands can be run; rejects when they never will. */
  readonly ready = this.#ready.promise;
  /** Resolves when nothing of the box is left. */
  readonly ended = this.#end.promise;
  readonly #request: KeeperRequest;
  readonly #commands = new Set<Command>();
  /** Those of them that have ended and have left processes behind. */
  readonly #left = new Set<Command>();
  /** Those that have a waiter, unless it said that it ends or is free. */
  readonly #attended = new Set<Command>();
  #standing: StandingWaiter | undefined;
  #toldWaiters = 0;
  readonly #queue: (() => boolean)[] = [];
  readonly #leftovers: Leftovers;
  /** Ordered, and not yet begun. */
  readonly #unbegun = new Set<Command>();
  #sweeping: Promise<void> | undefined;
  readonly #orders: number;
  readonly #options: Socket;
  readonly #gate: number;
  #init: HostProcess | undefined;
  /** Held from the start: killing must not need a descriptor when there is none left. */
  #grip = -1;
  #attached: Attachment | undefined;
  #sockets: BoxSockets | undefined;
  #attachFailure: IsolationError | undefined;
  #voice = "";
  readonly #hasSpoken = Promise.withResolvers<void>();
  readonly #isGone = Promise.withResolvers<void>();
  #isKilled = false;
  #isOver = false;

  constructor(request: KeeperRequest) {
    this.#request = request;
    this.#leftovers = new Leftovers(request.leftoverRoom);
    this.ready.catch(() => {}); // who cares awaits it
    using lent = new DescriptorSet();
    const [ours, theirs] = lent.pair(processes.messageSockets());
    const status = lent.pipe();
    const voice = lent.pipe();
    const block = lent.pipe();
    const options = lent.pipe();
    request.launcher.launch({
      entrances: request.entrances,
      owner: request.becomes,
      argv: [
        ...request.bwrap,
        ...["--args", String(BoxDescriptor.options), "--json-status-fd", String(BoxDescriptor.status)],
        ...["--as-pid-1", "--", ...request.interpreter, "-"],
      ],
      descriptors: [
        ...[lent.add(scriptFile("keeper")), voice.writeEnd, voice.writeEnd, theirs],
        ...[options.readEnd, lent.reopen(request.seccomp), status.writeEnd, block.readEnd],
        ...request.files.map((fd) => lent.reopen(fd)),
      ],
    });
    this.#orders = lent.release(ours);
    this.#options = writeTo(lent.release(options.writeEnd));
    request.options.then(
      (list) => this.#options.end(list.map((option) => `${option}\0`).join("")),
      () => this.kill(),
    );
    this.#gate = request.attach === undefined ? -1 : lent.release(block.writeEnd);
    this.#listenToVoice(readFrom(lent.release(voice.readEnd)));
    this.#listenToStatus(readFrom(lent.release(status.readEnd)));
  }

  get initPid(): number | undefined {
    return this.#init?.pid;
  }

  /** It runs nothing any more, and is gone or about to. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** What is attached to the box from outside. */
  get attached(): Attachment | undefined {
    return this.#attached;
  }

  /** Gives the order to run a command; it is begun when the keeper comes to it. */
  run(request: CommandRequest): Command {
    if (this.#left.size >= MOST_LEFT || (this.#left.size > 0 && this.#request.leftoverRoom.isFull)) {
      throw tooManyLeft();
    }
    const command = new Command(request, {
      waiterOf: (inner) => this.#childWith(inner),
      isLiving: () => !this.#isOver && !this.#isKilled && this.#init !== undefined && !isEnding(this.#init),
      sweep: () => this.#sweep(),
      ending: this.#request.ending,
      breakDown: () => this.kill(),
      adopt: (pipe) => this.#leftovers.adopt(pipe),
      ended: this.ended,
      programs: () => this.#programs(),
    });
    this.#commands.add(command);
    void command.gone.then(() => {
      this.#commands.delete(command);
      this.#noLongerAttended(command);
      if (this.#left.delete(command)) this.#request.leftoverRoom.giveBack();
    });
    void command.ended.then(() => {
      if (command.leavesNothing) this.#noLongerAttended(command);
      else if (this.#standing?.attends(command)) this.#dismissWaiter(); // it stays with what the command left
      setTimeout(() => this.#countIfLeft(command), LEFT_AFTER_MS).unref();
    });
    this.#queue.push(() => this.#give(command));
    this.#work();
    command.listen();
    return command;
  }

  /** The master of a new terminal of the box. */
  async openTerminal(): Promise<number> {
    const { fd, said } = this.#isOver ? { fd: -1, said: "gone" } : await askForDescriptor(this.#orders, "t");
    if (fd >= 0 && isTerminalMaster(fd)) return fd;
    if (fd >= 0) syscalls.close(fd);
    throw new IsolationError("RESOURCES_EXHAUSTED", "the sandbox has no terminal left", {
      cause: new Error(said),
    });
  }

  /** For connections to the box's ports, and for listeners in its network. */
  get sockets(): BoxSockets {
    this.#sockets ??= new BoxSockets({
      launcher: this.#request.launcher,
      openNetwork: async () => this.#openNetwork(),
      listens: this.#request.listens,
    });
    return this.#sockets;
  }

  /** Ends the whole pid namespace with its first process; before that is known, as soon as it is. */
  kill(): void {
    this.#isKilled = true;
    for (const command of this.#commands) command.killedWithBox();
    this.#options.destroy(); // without options bwrap makes nothing and ends
    this.#killBox();
  }

  /** Stops all processes of the box by signals; what is returned lets them go on. */
  async stopAll(): Promise<() => void> {
    return this.#init === undefined || this.#isOver ? () => {} : await stopTree(this.#init);
  }

  /** Its waiter said so before it ends: its place would be anybody's until we hear of that. Or it is free for the next command. */
  #noLongerAttended(command: Command): void {
    this.#attended.delete(command);
    if (this.#standing?.attends(command)) {
      if (command.leavesNothing) this.#standing.becomeFree();
      else this.#dismissWaiter(); // somebody in the box killed it
    }
    this.#tellWaiters();
  }

  #tellWaiters(): void {
    const count = this.#attended.size + (this.#standing?.isFree ? 1 : 0);
    if (count === this.#toldWaiters) return;
    this.#toldWaiters = count;
    this.#request.onWaiters(count);
  }

  #dismissWaiter(): void {
    const standing = this.#standing;
    this.#standing = undefined;
    this.#tellWaiters();
    standing?.dismiss();
  }

  #countIfLeft(command: Command): void {
    if (!this.#commands.has(command)) return;
    this.#left.add(command);
    this.#request.leftoverRoom.hold();
  }

  #give(command: Command): boolean {
    if (this.#isOver) {
      command.lost();
      return true;
    }
    const sending = command.order((fields, descriptors) => this.#send(command, fields, descriptors));
    if (sending === "full") return false;
    if (sending === "gone") command.lost();
    else if (sending === "sent") {
      this.#unbegun.add(command);
      void command.begun.then(() => {
        this.#unbegun.delete(command);
        this.#work();
      });
    }
    return true;
  }

  #send(command: Command, fields: readonly (string | number)[], descriptors: readonly number[]): Sending {
    this.#attended.add(command);
    if (this.#standing?.isFree) {
      if (this.#standing.take(command, fields, descriptors) === "sent") return "sent";
      this.#dismissWaiter();
    }
    this.#tellWaiters();
    if (this.#standing !== undefined) return sendOrder(this.#orders, "r", fields, descriptors);
    using lent = new DescriptorSet();
    const [ours, theirs] = lent.pair(syscalls.socketpair());
    const sending = sendOrder(this.#orders, "s", fields, [theirs, ...descriptors]);
    if (sending === "sent") {
      this.#standing = new StandingWaiter(lent.release(ours), command, () => this.#dismissWaiter());
    }
    return sending;
  }

  #work(): void {
    while (this.#queue.length > 0 && this.#unbegun.size < MOST_UNBEGUN && this.#sweeping === undefined) {
      if (this.#queue[0]?.() !== true) {
        setTimeout(() => this.#work(), RETRY_MS);
        return;
      }
      this.#queue.shift();
    }
  }

  /**
   * Ends processes whose waiter was killed: they are children of process 1 now, which has no others than waiters. No order is
   * given meanwhile, and those that were given have begun: then all waiters are known.
   */
  #sweep(): Promise<void> {
    // One that is under way may have looked before the last of these got there.
    const sweeping = (this.#sweeping ?? Promise.resolve()).then(() => this.#sweepOnce());
    this.#sweeping = sweeping;
    return sweeping.finally(() => {
      if (this.#sweeping === sweeping) this.#sweeping = undefined;
      this.#work();
    });
  }

  async #sweepOnce(): Promise<void> {
    await Promise.race([Promise.all([...this.#unbegun].map((command) => command.begun)), this.ended]);
    if (!(await this.#request.ending(() => killTrees(() => this.#children().strays)))) this.kill();
  }

  #childWith(inner: number): HostProcess | undefined {
    return this.#children().waiters.findLast(({ pid }) => innerPid(pid) === inner);
  }

  /** All processes of the box that are not ours. */
  #programs(): HostProcess[] {
    const { waiters, strays } = this.#children();
    return withDescendants([...waiters.flatMap(({ pid }) => childrenOf(pid)), ...strays]);
  }

  /** Those of process 1, as the host counts them. */
  #children(): { readonly waiters: readonly HostProcess[]; readonly strays: readonly HostProcess[] } {
    const waiting = [
      ...[...this.#commands].map(({ waiterPid: number, knownWaiter: process }) => ({ number, process })),
      ...(this.#standing === undefined ? [] : [this.#standing]),
    ];
    const found = new Set(waiting.flatMap(({ process }) => process?.pid ?? []));
    const sought = new Set(waiting.flatMap(({ number, process }) => (process ? [] : (number ?? []))));
    const isWaiter = (pid: number): boolean => found.has(pid) || (sought.size > 0 && sought.has(innerPid(pid) ?? -1));
    const children = this.#init === undefined ? [] : childrenOf(this.#init.pid);
    const { waiters = [], strays = [] } = Object.groupBy(children, ({ pid }) => (isWaiter(pid) ? "waiters" : "strays"));
    return { waiters, strays };
  }

  #listenToVoice(voice: Socket): void {
    voice.setEncoding("utf8");
    voice.on("data", (text: string) => {
      this.#voice = (this.#voice + text).slice(0, VOICE_BYTES);
      if (this.#voice.endsWith("ready\n")) voice.destroy();
      this.#readyWhenKnown();
    });
    voice.once("close", () => this.#hasSpoken.resolve());
    // What hangs in the kernel may keep its end open for ever.
    void this.#isGone.promise.then(() => setTimeout(() => voice.destroy(), GONE_TIMEOUT_MS).unref());
  }

  #listenToStatus(status: Socket): void {
    let rest = "";
    status.setEncoding("latin1");
    status.on("data", (text: string) => {
      rest += text;
      const pid = /"child-pid":\s*(\d+)/.exec(rest)?.[1];
      if (pid !== undefined && this.#init === undefined) void this.#madeBox(Number(pid));
    });
    status.once("close", () => void this.#finish());
  }

  /** The keeper has said so, and which process it is has been told, on another pipe. */
  #readyWhenKnown(): void {
    if (this.#init !== undefined && this.#voice.endsWith("ready\n")) this.#ready.resolve();
  }

  async #madeBox(pid: number): Promise<void> {
    this.#init = findProcess(pid);
    this.#hold();
    this.#readyWhenKnown();
    if (this.#isKilled) {
      this.#killBox();
      return;
    }
    try {
      this.#attached = await this.#request.attach?.(pid, this.sockets);
    } catch (error) {
      this.#attachFailure = asIsolationError(error, "the box has no network");
      this.#killBox();
      return;
    }
    if (this.#isOver) await this.#attached?.close();
    else if (this.#request.attach !== undefined) syscalls.write(this.#gate, Buffer.from("\n"), 1);
  }

  #hold(): void {
    const init = this.#init;
    if (init === undefined || this.#grip >= 0) return;
    if (isBoxInit(init.pid, this.#request.owner.uid)) this.#grip = holdProcess(init);
  }

  /** A root server has rights over every network; another one has them in the user namespace that the box's belongs to. */
  #openNetwork(): BoxNetwork {
    const init = this.#init;
    if (init === undefined || this.#isOver) throw notRunning();
    using lent = new DescriptorSet();
    const [user, network] = openNamespaces(init.pid, lent);
    if (isEnding(init)) throw notRunning(); // they may be of another process, which has the number by now
    const namespaces: BoxNetwork["namespaces"] = process.geteuid?.() === 0 ? [network] : [network, user];
    for (const fd of namespaces) lent.release(fd!);
    const close = async (): Promise<void> => {
      for (const fd of namespaces) syscalls.close(fd!);
    };
    return { namespaces, [Symbol.asyncDispose]: close };
  }

  #killBox(): void {
    if (this.#isOver) return;
    this.#hold(); // when it could not be done at first
    if (this.#grip >= 0) processes.pidfdSendSignal(this.#grip, SIGKILL);
  }

  async #finish(): Promise<void> {
    this.#killBox(); // bwrap died before it could arrange that the box dies with it
    this.#isOver = true;
    if (this.#init !== undefined) await waitUntilGone(this.#init, GONE_TIMEOUT_MS);
    this.#isGone.resolve();
    await this.#hasSpoken.promise;
    this.#ready.reject(this.#failure());
    for (const fd of [this.#grip, this.#gate, this.#orders]) if (fd >= 0) syscalls.close(fd);
    this.#sockets?.close();
    this.#standing?.dismiss();
    this.#leftovers.close();
    await this.#attached?.close();
    this.#end.resolve();
    this.#work(); // what was never ordered is told
  }

  #failure(): IsolationError {
    if (this.#attachFailure !== undefined) return this.#attachFailure;
    if (this.#isKilled) return new IsolationError("CANCELLED", "the box was ended while it was set up");
    return this.#request.explain(this.#voice);
  }
}

/** What comes from the box may be anything. */
function isTerminalMaster(fd: number): boolean {
  const { rdev } = fstatSync(fd);
  return rdev === ((5 << 8) | 2);
}

import { mkdir } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import {
  type FuseDevice,
  invalidateEntryMessage,
  invalidateInodeMessage,
  mountFuse,
  Notifier,
  syscalls,
  unmountFuse,
  unmountNow,
} from "@agentfense/fuse";
import { compileRules, type Rule } from "@agentfense/permission";
import { IsolationError } from "../backend/isolation-error.ts";
import { ChangesError, type ChangesErrorCode } from "../changes/changes-error.ts";
import type { DiscardReport } from "../changes/discard.ts";
import { readFuseDevice } from "../doctor/facts.ts";
import { judgeFuseDevice } from "../doctor/judgement.ts";
import type { FileSystemEvent } from "../filesystem/denials.ts";
import type { FreezeSpec, Frozen } from "../filesystem/freezing.ts";
import { DescriptorBudget } from "../filesystem/openings.ts";
import type { Owner } from "../filesystem/presentation.ts";
import type { QuotaLimits, QuotaUse } from "../filesystem/quota.ts";
import type { StaleReport } from "../filesystem/refresh.ts";
import type { SettledEntry } from "../filesystem/settlement.ts";
import type { LogLine } from "../log.ts";
import { settledWithin } from "../waiting.ts";
import type { CallInput, CallName, CallResult } from "./calls.ts";
import { descriptorLimit, planDescriptors } from "./descriptor-plan.ts";
import { type FromMountThread, MountCounters, type MountCounts } from "./messages.ts";
import { MOUNT_NAME, mountPointPath, raiseReadahead } from "./mount-table.ts";
import { MountThread } from "./mount-thread.ts";
import { type MountThreadPlace, MountThreadPool } from "./mount-thread-pool.ts";

/** Refusals and losses, for the audit log. */
export type WorkspaceEvent = FileSystemEvent | { readonly kind: "mount_lost"; readonly reason: string };

/** One workspace. */
export interface TreeSpec {
  /** Codebase directories, top first; usually one. They are never written. None: the delta is a home (see Delta). */
  readonly lowers: readonly string[];
  /** What snapshots froze, top first: it lies on the codebases, and is never written. */
  readonly frozen?: readonly string[];
  /** Where writes go; made if absent. Without one the workspace is read-only (EROFS). */
  readonly delta?: string | undefined;
  readonly rules: readonly Rule[];
  /** Check open handles at each read and write, so that a change of rules reaches them; excludes passthrough. */
  readonly revocable?: boolean;
  /** Events tell of what is looked at, read and written, too: each path once for each level. */
  readonly recordsAccess?: boolean;
  readonly onEvent?: (event: WorkspaceEvent) => void;
}

interface MountPlan {
  readonly mountPoint: string;
  /** The quota of all workspaces of the mount together. */
  readonly quota?: QuotaLimits;
  /** What lies beneath the deltas takes of it. */
  readonly usedBeneath?: QuotaUse | undefined;
  /** Show every entry as this user's; the rules alone then decide, not the modes of the host. */
  readonly owner?: Owner;
  /** Default: when the kernel and the server's privileges allow it. */
  readonly passthrough?: boolean;
  /** Default true. Without them every new file costs the kernel one request less. */
  readonly xattrs?: boolean;
  /** Let other users in. Default: when the server is root. */
  readonly allowOther?: boolean;
}

/** A workspace that is a mount by itself. */
export interface WorkspaceSpec extends TreeSpec, MountPlan {}

/** Workspaces that are directories of one mount, named by their numbers from 0 on. */
export interface JoinedSpec extends MountPlan {
  readonly trees: readonly TreeSpec[];
}

export type JoinedMount = Pick<ServedMount, "trees" | "served">;

/** Where a workspace of a joint mount is. */
export function treePath(mountPoint: string, tree: number): string {
  return join(mountPoint, String(tree));
}

export interface MountHostOptions {
  /** The most threads that serve mounts; default, and at most: one per CPU. */
  readonly threads?: number | undefined;
  readonly log?: (line: LogLine) => void;
  /** Default true: the process lives until the host is closed. Otherwise it may end, which takes the mounts away. */
  readonly holdsProcess?: boolean | undefined;
}

const READY_TIMEOUT_MS = 10_000;
/** How long an unmounted connection may live on for the sake of files that are still open. */
const LINGER_MS = 1_000;

/**
 * Owns the mount threads and the mounts they serve. When a mount thread dies, its mounts are detached and reported; those of
 * other mount threads go on.
 */
export class MountHost implements AsyncDisposable {
  readonly #pool: MountThreadPool;
  readonly #mounts = new Map<number, ServedMount>();
  readonly #log: (line: LogLine) => void;
  readonly #holdsProcess: boolean;
  readonly #budget: DescriptorBudget;
  readonly #openDirectories: number;
  readonly #awake = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  #nextMount = 1;
  #closing = false;

  private constructor({ threads, log, holdsProcess }: MountHostOptions) {
    const limit = Math.max(1, Math.min(threads ?? Number.POSITIVE_INFINITY, availableParallelism()));
    this.#pool = new MountThreadPool(limit, () => this.#startThread());
    const plan = planDescriptors(descriptorLimit(), limit);
    this.#log = log ?? (() => {});
    this.#holdsProcess = holdsProcess ?? true;
    this.#budget = DescriptorBudget.of(plan.openings);
    this.#openDirectories = plan.directories;
    process.on("exit", this.#onExit);
  }

  // Whoever ends the process without closing the host first must not leave dead mounts behind, nor wait for threads that
  // sleep in the kernel.
  readonly #onExit = (): void => {
    for (const mount of this.#mounts.values()) mount.abandon();
    for (const thread of this.#pool.threads) thread.abandon();
  };

  /** Waits for the first thread: what prevents it is told here. */
  static async start(options: MountHostOptions = {}): Promise<MountHost> {
    const host = new MountHost(options);
    await host.#pool.open();
    return host;
  }

  /** The first thread starts meanwhile; the first mount waits for it, and is told what prevents it. */
  static open(options: MountHostOptions = {}): MountHost {
    const host = new MountHost(options);
    host.#pool.open().catch(() => {});
    return host;
  }

  async mount(spec: WorkspaceSpec): Promise<WorkspaceMount> {
    const mount = await this.#mount({ ...spec, trees: [spec] }, false);
    await mount.served;
    return mount.trees[0]!;
  }

  /** One connection to the kernel serves them all, and what they use counts in one quota. Unmounting one unmounts all. */
  mountTogether(spec: JoinedSpec): Promise<JoinedMount> {
    return this.#mount(spec, true);
  }

  async #mount(spec: JoinedSpec, joined: boolean): Promise<ServedMount> {
    for (const { rules } of spec.trees) compileRules(rules); // refuses bad ones here, with the error the caller can use
    if (this.#closing) throw new Error("the mount host is closed");
    const place = await this.#pool.take();
    const mount = await this.#place(spec, joined, place).catch((error: unknown) => {
      place.leave();
      throw error;
    });
    try {
      await mount.start();
      return mount;
    } catch (error) {
      await mount.unmount().catch(() => {});
      throw error;
    }
  }

  async #place(spec: JoinedSpec, joined: boolean, place: MountThreadPlace): Promise<ServedMount> {
    const [mountPoint] = await Promise.all([
      mountPointPath(spec.mountPoint),
      ...spec.trees.flatMap(({ delta }) => (delta === undefined ? [] : mkdir(delta, { recursive: true, mode: 0o700 }))),
    ]);
    const id = this.#nextMount;
    this.#nextMount += 1;
    const onGone = (): void => {
      if (this.#mounts.delete(id)) place.leave();
    };
    const { thread } = place;
    const mount = new ServedMount({ id, thread, mountPoint, spec, joined, log: this.#log, onGone });
    this.#mounts.set(id, mount);
    return mount;
  }

  /** Counts over all mount threads, those that died included. */
  counts(): MountCounts {
    return MountCounters.sum(this.#pool.threads.map((thread) => thread.counters));
  }

  async close(): Promise<void> {
    this.#closing = true;
    const results = await Promise.allSettled([...this.#mounts.values()].map((mount) => mount.unmount()));
    await this.#pool.close();
    process.off("exit", this.#onExit);
    const failed = results.find((result) => result.status === "rejected");
    if (failed) throw failed.reason;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #startThread(): Promise<MountThread> {
    const thread = await MountThread.start({
      onMessage: (message) => this.#dispatch(message),
      onLost: (reason) => this.#threadLost(thread, reason),
      holdsProcess: this.#holdsProcess,
      shared: { budget: this.#budget.buffer, openDirectories: this.#openDirectories, awake: this.#awake },
    });
    return thread;
  }

  #dispatch(message: FromMountThread): void {
    if (message.kind === "log" && message.mount === undefined) this.#log({ level: "error", message: message.message });
    else if ("mount" in message && message.mount !== undefined) this.#mounts.get(message.mount)?.receive(message);
  }

  #threadLost(thread: MountThread, reason: string): void {
    this.#log({ level: "error", message: `a mount thread died: ${reason}` });
    for (const mount of this.#mounts.values()) {
      if (mount.thread === thread) void mount.lost(reason);
    }
  }
}

interface ServedMountOptions {
  readonly id: number;
  readonly thread: MountThread;
  readonly mountPoint: string;
  readonly spec: JoinedSpec;
  readonly joined: boolean;
  readonly log: (line: LogLine) => void;
  readonly onGone: () => void;
}

/** One connection to the kernel. */
class ServedMount {
  readonly mountPoint: string;
  readonly thread: MountThread;
  readonly trees: readonly WorkspaceMount[];
  readonly privileged = process.geteuid?.() === 0;
  /** Resolves when the kernel has been greeted. Until then whoever looks into the mount waits. */
  served: Promise<void> = Promise.resolve();
  /** What the kernel granted, by tree. */
  passthrough: readonly boolean[] = [];
  readonly #options: ServedMountOptions;
  readonly #steps = new Map<string, PromiseWithResolvers<FromMountThread>>();
  #fd = -1;
  #deltaLocks: readonly number[] = [];
  #closed = false;
  #unmounting: Promise<void> | undefined;
  #calls = 0;

  constructor(options: ServedMountOptions) {
    this.mountPoint = options.mountPoint;
    this.thread = options.thread;
    this.#options = options;
    this.trees = options.spec.trees.map((_, tree) => new WorkspaceMount(this, tree, options.joined));
  }

  async start(): Promise<void> {
    const prepared = this.#prepare();
    // Who asks a mount that is not served yet waits. An ordinary user's nobody else can ask.
    if (this.privileged) await prepared;
    const mounted = this.#mount();
    await Promise.allSettled([prepared, mounted]); // whichever fails, the other is over when it is told
    await prepared;
    const { fd } = await mounted;
    this.served = this.#serve(fd);
    this.served.catch(() => this.unmount()).catch(() => {});
  }

  async #serve(fd: number): Promise<void> {
    const ready = this.#expect("ready");
    this.thread.send({ kind: "serve", mount: this.#options.id, fd });
    if (!(await settledWithin(READY_TIMEOUT_MS, ready))) throw new Error("the kernel did not greet the mount");
    const greeting = await ready;
    if (greeting.kind === "ready") this.passthrough = greeting.passthrough;
    if (this.privileged) void raiseReadahead(this.mountPoint);
  }

  async #prepare(): Promise<void> {
    const { trees, quota, usedBeneath, owner, passthrough = true, xattrs = true } = this.#options.spec;
    const { privileged } = this;
    const prepared = this.#expect("prepared");
    this.thread.send({
      kind: "prepare",
      mount: this.#options.id,
      spec: {
        trees: trees.map(({ lowers, frozen = [], delta, rules, revocable = false, recordsAccess = false }) => {
          return { lowers, frozen, delta, rules, revocable, recordsAccess };
        }),
        joined: this.#options.joined,
        passthrough: passthrough && privileged,
        ...{ quota, usedBeneath, owner, xattrs, privileged },
      },
    });
    const answer = await prepared;
    if (answer.kind === "prepared") this.#deltaLocks = answer.locks;
  }

  async #mount(): Promise<FuseDevice> {
    const { trees, owner, allowOther = this.privileged } = this.#options.spec;
    try {
      const device = await mountFuse({
        mountPoint: this.mountPoint,
        name: MOUNT_NAME,
        allowOther,
        checkModes: allowOther && owner === undefined && trees.every(({ rules }) => leavesAllToModes(rules)),
        privileged: this.privileged,
      });
      this.#fd = device.fd;
      return device;
    } catch (error) {
      throw await explainMountFailure(error);
    }
  }

  /** Has the mount thread do something with a tree, and the kernel forget what is no longer true then. */
  async call<Name extends CallName>(tree: number, name: Name, input: CallInput<Name>): Promise<CallResult<Name>> {
    if (this.#closed) throw new Error("the workspace is not mounted");
    this.#calls += 1;
    const call = this.#calls;
    const answered = this.#expect(`call ${call}`);
    this.thread.send({ kind: "call", mount: this.#options.id, tree, call, name, input });
    const message = await answered;
    if (message.kind !== "answer") throw new Error(`a mount thread answered a call with ${message.kind}`);
    await this.#invalidate(message.stale);
    return message.result as CallResult<Name>;
  }

  unmount(): Promise<void> {
    this.#unmounting ??= this.#unmount();
    return this.#unmounting;
  }

  receive(message: FromMountThread): void {
    switch (message.kind) {
      case "prepared":
      case "ready":
      case "closed":
        this.#settle(message.kind, message);
        if (message.kind === "closed") this.#ended();
        break;
      case "failed":
        this.#reject("prepared", message.error);
        break;
      case "answer":
        this.#settle(`call ${message.call}`, message);
        break;
      case "refusal":
        this.#reject(`call ${message.call}`, errorOf(message));
        break;
      case "stale":
        this.#invalidate(message.stale).catch((error: unknown) => this.#error(`invalidation failed: ${String(error)}`));
        break;
      case "event":
        this.#options.spec.trees[message.tree]?.onEvent?.(message.event);
        break;
      case "log":
        this.#error(message.message);
        break;
    }
  }

  /** The mount thread is gone: fail what waits for it, abort the connection, take the mount away. */
  async lost(reason: string): Promise<void> {
    for (const step of this.#steps.values()) step.reject(new Error(`the mount thread died: ${reason}`));
    this.#steps.clear();
    this.#forgetDescriptor();
    for (const lock of this.#deltaLocks) syscalls.close(lock);
    this.#unmounting ??= unmountFuse(this.mountPoint, { privileged: this.privileged }).catch((error: unknown) =>
      this.#error(`unmounting failed: ${String(error)}`),
    );
    await this.#unmounting;
    this.#gone(reason);
  }

  /** Detaches the mount at once, while the process exits. */
  abandon(): void {
    if (this.#fd >= 0) unmountNow(this.mountPoint, { privileged: this.privileged });
  }

  // The connection is over; if nobody asked for that, somebody unmounted it behind our back.
  #ended(): void {
    this.#forgetDescriptor();
    if (this.#unmounting !== undefined) return;
    this.#unmounting = Promise.resolve();
    this.#gone("the workspace was unmounted from outside");
  }

  #gone(reason: string): void {
    this.#options.onGone();
    this.#options.spec.trees[0]?.onEvent?.({ kind: "mount_lost", reason });
  }

  async #unmount(): Promise<void> {
    try {
      if (this.#fd >= 0) await unmountFuse(this.mountPoint, { privileged: this.privileged });
    } finally {
      await this.#drain();
      this.#options.onGone();
    }
  }

  // The connection ends by itself once nothing uses the detached mount; what still does is cut off.
  async #drain(): Promise<void> {
    if (this.#closed || !this.thread.alive) return;
    const closed = this.#expect("closed");
    const served = this.#fd >= 0;
    const ended = served && (await settledWithin(LINGER_MS, closed));
    if (!ended) {
      this.thread.send({ kind: "drop", mount: this.#options.id });
      await settledWithin(LINGER_MS, closed);
    }
    this.#forgetDescriptor();
  }

  // Closing the last descriptor of the connection aborts it: whoever still waits on the mount gets ENOTCONN.
  #forgetDescriptor(): void {
    this.#closed = true;
    for (const step of this.#steps.keys()) {
      if (step === "ready" || step.startsWith("call ")) this.#reject(step, new Error("the workspace is not mounted"));
    }
    if (this.#fd >= 0) syscalls.close(this.#fd);
    this.#fd = -1;
  }

  async #invalidate(stale: StaleReport): Promise<void> {
    if (this.#fd < 0) return;
    const notifier = new Notifier(this.#fd);
    for (const { parent, name, expireOnly } of stale.entries) {
      await notifier.send(invalidateEntryMessage(parent, name, { expireOnly: expireOnly ?? false }));
    }
    for (const inode of stale.inodes) await notifier.send(invalidateInodeMessage(inode, 0, 0));
  }

  #expect(step: string): Promise<FromMountThread> {
    const deferred = Promise.withResolvers<FromMountThread>();
    deferred.promise.catch(() => {}); // awaited by some callers only
    this.#steps.set(step, deferred);
    return deferred.promise;
  }

  #settle(step: string, message: FromMountThread): void {
    this.#steps.get(step)?.resolve(message);
    this.#steps.delete(step);
  }

  #reject(step: string, error: Error): void {
    this.#steps.get(step)?.reject(error);
    this.#steps.delete(step);
  }

  #error(message: string): void {
    this.#options.log({ level: "error", message, mountPoint: this.mountPoint });
  }
}

/** One workspace of a mount. */
export class WorkspaceMount implements AsyncDisposable {
  readonly mountPoint: string;
  /** The directory on the host that the mount is in. */
  readonly outside: string;
  readonly #mount: ServedMount;
  readonly #number: number;

  constructor(mount: ServedMount, number: number, joined: boolean) {
    this.mountPoint = joined ? treePath(mount.mountPoint, number) : mount.mountPoint;
    this.outside = dirname(mount.mountPoint);
    this.#mount = mount;
    this.#number = number;
  }

  get features(): { readonly passthrough: boolean; readonly privileged: boolean } {
    const { passthrough, privileged } = this.#mount;
    return { passthrough: passthrough[this.#number] ?? false, privileged };
  }

  /** Resolves when no cache of the kernel remembers the old rules. */
  async updateRules(rules: readonly Rule[]): Promise<void> {
    compileRules(rules);
    await this.#mount.call(this.#number, "rules", rules);
  }

  /** Somebody changed these paths of the codebase; resolves when nothing old is shown. */
  async codebaseChanged(paths: readonly string[]): Promise<readonly string[]> {
    return paths.length === 0 ? [] : await this.#mount.call(this.#number, "codebase", paths);
  }

  /** For a codebase that others change without telling: resolves when what it was at the time of the call, or later, is shown. */
  lookAgain(): Promise<void> {
    return this.#mount.call(this.#number, "lookAgain", undefined);
  }

  /** Takes entries that the codebase has too out of the delta; gives the paths of those that stayed. */
  async settle(entries: readonly SettledEntry[]): Promise<readonly string[]> {
    return entries.length === 0 ? [] : await this.#mount.call(this.#number, "settle", entries);
  }

  /** Takes changes out of the delta (all without paths); what is open for writing stays. */
  discard(paths: readonly string[] | undefined): Promise<DiscardReport> {
    return this.#mount.call(this.#number, "discard", paths);
  }

  /** Freezes the delta of this mount, with an empty one in its place; no process notices. */
  freeze(spec: FreezeSpec): Promise<Frozen> {
    return this.#mount.call(this.#number, "freeze", spec);
  }

  unmount(): Promise<void> {
    return this.#mount.unmount();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.unmount();
  }
}

/**
 * The rules let everything be written but single files, so that mode bits alone decide and the kernel may check them: without
 * that nobody is asked when a FIFO is opened. It then also answers access(2), which knows no rules: of such a file it tells root
 * that writing is allowed, and the mount thread refuses to open it.
 */
function leavesAllToModes(rules: readonly Rule[]): boolean {
  const coversAll = rules.some(({ pattern, permission }) => permission === "write" && EVERYTHING.includes(pattern));
  return coversAll && rules.every(({ permission, type }) => permission === "write" || type === "file");
}

/** Patterns that every path below the workspace matches. */
const EVERYTHING: readonly string[] = ["**/*", "/**", "**"];

// Errors cross threads without their class.
function errorOf({ error, code }: { readonly error: Error; readonly code?: string }): Error {
  return code === undefined ? error : new ChangesError(code as ChangesErrorCode, error.message);
}

/** Why a workspace cannot be mounted on this host, in the doctor's words where it has some. */
async function explainMountFailure(cause: unknown): Promise<IsolationError> {
  const { verdict, summary, fix } = judgeFuseDevice({ fuseDevice: await readFuseDevice() });
  const message = `the workspace cannot be mounted (${cause instanceof Error ? cause.message : cause})`;
  return new IsolationError("RUNTIME_UNAVAILABLE", verdict === "ok" ? message : summary, { hint: fix, cause });
}

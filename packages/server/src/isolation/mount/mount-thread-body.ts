import { type MessagePort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { check, FuseSession, MessageBuffers, ServeLoop, syscalls } from "@agentfense/fuse";
import { compileRules } from "@agentfense/permission";
import { ChangesError } from "../changes/changes-error.ts";
import { DescriptorCache } from "../filesystem/descriptor-cache.ts";
import { DescriptorBudget } from "../filesystem/openings.ts";
import { Quota } from "../filesystem/quota.ts";
import { Trees } from "../filesystem/trees.ts";
import { turn, type Walk, walkInBackground } from "../filesystem/walks.ts";
import { Workspace } from "../filesystem/workspace.ts";
import { MountCalls } from "./calls.ts";
import {
  type FromMountThread,
  MountCounters,
  type MountSpec,
  type MountThreadData,
  type ToMountThread,
} from "./messages.ts";

// The body of a mount thread. It serves all its mounts from one loop and never returns to Node's own event loop while it
// lives: messages are fetched when the doorbell rings. It must never touch a path inside one of its mounts.

interface ThreadTree {
  readonly workspace: Workspace;
  readonly passthrough: boolean;
  readonly calls: MountCalls;
}

interface ThreadMount {
  readonly id: number;
  readonly trees: readonly ThreadTree[];
  readonly fileSystem: Workspace | Trees;
  session: FuseSession | undefined;
}

class MountThreadBody {
  readonly #port: MessagePort;
  readonly #mounts = new Map<number, ThreadMount>();
  readonly #buffers = new MessageBuffers();
  readonly #descriptors: DescriptorCache;
  readonly #budget: DescriptorBudget;
  readonly #loop: ServeLoop;
  readonly #counters: MountCounters;
  /** Mounts whose trees are being opened. */
  readonly #opening = new Map<number, Walk<readonly ThreadTree[]>>();

  constructor({ port, counters, openDirectories, budget, awake }: MountThreadData) {
    this.#port = port;
    this.#counters = new MountCounters(counters);
    this.#descriptors = new DescriptorCache(openDirectories);
    this.#budget = new DescriptorBudget(budget);
    this.#loop = new ServeLoop({
      onDoorbell: () => this.#fetchMessages(),
      onClosed: (session) => this.#closed(session),
      onTurn: () => this.#counters.tookTurn(turn.next()),
      awake: new Int32Array(awake),
    });
  }

  run(): void {
    check("unshare", syscalls.isolateUmask());
    this.#send({ kind: "started", doorbell: this.#loop.doorbell });
    this.#loop.run();
    for (const mount of [...this.#mounts.values()]) this.#drop(mount);
    this.#loop.close();
    this.#port.close();
  }

  #send(message: FromMountThread): void {
    this.#port.postMessage(message);
  }

  #fetchMessages(): void {
    for (;;) {
      const received = receiveMessageOnPort(this.#port);
      if (received === undefined) return;
      this.#handle(received.message as ToMountThread);
    }
  }

  #handle(message: ToMountThread): void {
    switch (message.kind) {
      case "prepare":
        this.#prepare(message.mount, message.spec);
        break;
      case "serve":
        this.#serve(message.mount, message.fd);
        break;
      case "call":
        this.#call(message);
        break;
      case "drop": {
        const mount = this.#mounts.get(message.mount);
        if (mount !== undefined) this.#drop(mount);
        this.#opening.get(message.mount)?.return(undefined as never);
        this.#forget(message.mount);
        this.#send({ kind: "closed", mount: message.mount });
        break;
      }
      case "stop":
        this.#loop.stop();
        break;
    }
  }

  #prepare(id: number, spec: MountSpec): void {
    const opening = this.#openTrees(id, spec);
    this.#opening.set(id, opening);
    const opened = (trees: readonly ThreadTree[]): void => {
      this.#opening.delete(id);
      const [first] = trees;
      const fileSystem = spec.joined ? new Trees(trees.map(({ workspace }) => workspace)) : first!.workspace;
      this.#mounts.set(id, { id, trees, fileSystem, session: undefined });
      const locks = trees.map(({ workspace }) => workspace.deltaLock).filter((lock) => lock >= 0);
      this.#send({ kind: "prepared", mount: id, locks });
    };
    const failed = (error: unknown): void => {
      this.#forget(id);
      this.#send({ kind: "failed", mount: id, error: toError(error) });
    };
    const job = walkInBackground(opening, opened, failed);
    if (!job()) this.#loop.background(() => !this.#opening.has(id) || job());
  }

  /** All of them, one after the other, or none. */
  *#openTrees(id: number, spec: MountSpec): Walk<readonly ThreadTree[]> {
    const { owner, xattrs, privileged } = spec;
    const trees: ThreadTree[] = [];
    let quota: Quota | undefined;
    try {
      for (const [tree, { lowers, frozen, delta, rules, revocable, recordsAccess }] of spec.trees.entries()) {
        if (spec.quota?.bytes !== undefined || spec.quota?.files !== undefined) {
          const first = quota === undefined;
          quota = new Quota(spec.quota, quota);
          if (first) quota.take(spec.usedBeneath ?? { bytes: 0, files: 0 });
        }
        const policy = compileRules(rules);
        const layers = [...frozen, ...lowers].map((path) => openLower(path, privileged));
        const [held, bases] = [layers.slice(0, frozen.length), layers.slice(frozen.length)];
        // Passthrough reopens the backing file with the client's flags: a layer that could be written through it must not
        // take part.
        const passthrough = spec.passthrough && !revocable && layers.every((layer) => layer.readOnly);
        const workspace = yield* Workspace.open({
          place: spec.joined ? tree + 1 : 0,
          lowers: bases.map((layer) => layer.fd),
          frozen: held.map((layer) => layer.fd),
          deltaPath: delta === undefined ? undefined : pathBytes(delta),
          ...{ policy, quota, owner, passthrough, xattrs, revocable, recordsAccess, privileged },
          descriptors: this.#descriptors,
          budget: this.#budget,
          background: (job) => this.#loop.background(job),
          onEvent: (event) => this.#send({ kind: "event", mount: id, tree, event }),
          onDenied: () => this.#counters.denied(),
          stalePages: (node) => this.#send({ kind: "stale", mount: id, stale: { inodes: [node], entries: [] } }),
        });
        trees.push({ workspace, passthrough, calls: new MountCalls((job) => this.#loop.background(job)) });
      }
      return trees;
    } finally {
      if (trees.length < spec.trees.length) for (const { workspace } of trees) workspace.destroy();
    }
  }

  #forget(id: number): void {
    this.#opening.delete(id);
    this.#mounts.delete(id);
  }

  #serve(id: number, fd: number): void {
    const mount = this.#mounts.get(id);
    if (mount === undefined) return;
    const { fileSystem, trees } = mount;
    const session = new FuseSession({
      fd,
      fileSystem,
      buffers: this.#buffers,
      passthrough: trees.some(({ passthrough }) => passthrough),
      requestCounts: this.#counters.requests,
      background: (job) => this.#loop.background(job),
      log: (message) => this.#send({ kind: "log", mount: id, message }),
      onReady: (connection) =>
        this.#send({
          kind: "ready",
          mount: id,
          passthrough: trees.map(({ passthrough }) => passthrough && connection.passthrough),
        }),
    });
    mount.session = session;
    this.#loop.add(session);
  }

  #call({ mount: id, tree, call, name, input }: Extract<ToMountThread, { kind: "call" }>): void {
    const mount = this.#mounts.get(id);
    const asked = mount?.trees[tree];
    const refuse = (error: unknown): void => {
      const code = error instanceof ChangesError ? { code: error.code } : {};
      this.#send({ kind: "refusal", mount: id, call, error: toError(error), ...code });
    };
    if (asked === undefined) {
      refuse(new Error("the workspace is not mounted"));
      return;
    }
    // A file that was closed before the call is closed: the kernel tells later, and does not wait for an answer.
    if (mount?.session !== undefined) this.#loop.catchUp(mount.session);
    const workspaces = mount!.trees.map(({ workspace }) => workspace);
    asked.calls.run(name, input, asked.workspace, workspaces, {
      answer: (answer) => this.#send({ kind: "answer", mount: id, call, ...answer }),
      refuse,
    });
  }

  // The session has told its file system already.
  #closed(session: FuseSession): void {
    for (const mount of this.#mounts.values()) {
      if (mount.session !== session) continue;
      this.#forget(mount.id);
      for (const { calls } of mount.trees) calls.close();
      this.#send({ kind: "closed", mount: mount.id });
    }
  }

  #drop(mount: ThreadMount): void {
    this.#forget(mount.id);
    if (mount.session) this.#loop.remove(mount.session);
    for (const { calls } of mount.trees) calls.close();
    mount.fileSystem.destroy();
  }
}

/** The root of a codebase layer. With privileges, on a detached mount that nothing can be written through. */
function openLower(path: string, privileged: boolean): { fd: number; readOnly: boolean } {
  const bytes = pathBytes(path);
  const tree = privileged ? syscalls.openReadOnlyTree(bytes) : -1;
  if (tree >= 0) return { fd: tree, readOnly: true };
  const fd = check(`open ${path}`, syscalls.open(bytes, syscalls.Open.PATH | syscalls.Open.DIRECTORY));
  return { fd, readOnly: false };
}

function pathBytes(path: string): string {
  return Buffer.from(path, "utf8").toString("latin1");
}

// Errors cross threads by structured clone, which keeps the message but not the class or own fields.
function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

new MountThreadBody(workerData as MountThreadData).run();

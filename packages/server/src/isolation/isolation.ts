import { randomBytes } from "node:crypto";
import type { Backend, BackendName, BoxSpec, CreateOptions } from "./backend/backend.ts";
import { DescriptorRoom } from "./backend/descriptor-room.ts";
import { IsolationError } from "./backend/isolation-error.ts";
import { Backends } from "./backends.ts";
import { checkId, type TimeLimits } from "./exec/request.ts";
import { Instance } from "./instance/instance.ts";
import { Watchdog } from "./instance/watchdog.ts";
import type { LogLine } from "./log.ts";
import type { MockOptions } from "./mock/backend.ts";
import { descriptorLimit } from "./mount/descriptor-plan.ts";
import { MountHost } from "./mount/host.ts";
import type { MountCounts } from "./mount/messages.ts";
import { cleanStaleMount } from "./mount/mount-table.ts";
import { FilteredNetwork } from "./network/filtered.ts";
import { NetworkGates, type Opening, type TestInternet } from "./network/gate.ts";
import { NetworkPolicy } from "./network/policy.ts";
import { openedNames } from "./network/secrets.ts";
import type { BoxedWorkspace, SandboxSpec } from "./sandbox/api.ts";
import { GuardedBox } from "./sandbox/guarded-box.ts";
import { boxSpec, checkSpecification } from "./sandbox/specification.ts";
import { KernelWatch } from "./view/kernel-watch.ts";
import { ViewThread } from "./view/thread.ts";

export interface IsolationOptions {
  /** Where mount points are made; default /run/agentfense, or the user's runtime directory. */
  readonly stateDirectory?: string;
  /** Default: bwrap alone. Only these are looked for on the host. */
  readonly runtimes?: readonly [BackendName, ...BackendName[]];
  /** Default false: all runtimes have to be there. Otherwise the first one; each other when the first sandbox asks for it. */
  readonly opensOnDemand?: boolean;
  /** The bwrap program; default: the first on the PATH. */
  readonly bwrapPath?: string;
  readonly docker?: {
    readonly socketPath?: string;
    /** Used when a sandbox names none. */
    readonly image?: string;
    /** Default false: images come from the operator. */
    readonly allowPull?: boolean;
    readonly allowedImages?: readonly string[];
  };
  readonly mock?: MockOptions;
  /** A control group to put the sandboxes' groups in. */
  readonly cgroupParent?: string;
  /** The most threads that serve file systems; default, and at most: one per CPU. */
  readonly mountThreads?: number;
  /** Time limits of commands; default: none. */
  readonly timeLimits?: TimeLimits;
  /**
   * Default false. For whoever tells sandboxes of changes to their codebases: killed while doing so, it can need help to
   * die.
   */
  readonly watchdog?: boolean;
  /**
   * Default true: the process lives until this is closed. Otherwise nothing here keeps it alive, commands that run included;
   * whoever waits for one has to. With the process everything ends.
   */
  readonly holdsProcess?: boolean;
  /** For tests: what filtered networks take for the internet. */
  readonly internet?: TestInternet;
  readonly log?: (line: LogLine) => void;
}

/** Sandboxes on this host. Closing destroys every one that is left. */
export interface Isolation extends AsyncDisposable {
  /** Limits that this host cannot enforce, each as a sentence. */
  readonly degradations: readonly string[];
  create(spec: SandboxSpec, options?: CreateOptions): Promise<BoxedWorkspace>;
  /** What the file systems of all sandboxes have been asked and have refused since this was opened. */
  counters(): MountCounts;
  close(): Promise<void>;
}

/** Puts the parts together, and cleans up after instances that died. */
export async function openIsolation(options: IsolationOptions = {}): Promise<Isolation> {
  const log = options.log ?? (() => {});
  const runtimes = options.runtimes ?? ["bwrap"];
  const real = runtimes.some((runtime) => runtime !== "mock");
  await using undo = new AsyncDisposableStack();
  if (options.holdsProcess ?? true) undo.use(holdProcess());

  const atOnce = options.opensOnDemand ? runtimes.slice(0, 1) : runtimes;
  const instance = await Instance.open({ stateDirectory: options.stateDirectory });
  undo.defer(() => instance.close());
  const backends = undo.use(
    new Backends({
      allowed: runtimes,
      open: async (runtime, parts) => {
        await instance.willUse(runtime);
        return await openBackend(runtime, instance, options, parts);
      },
      opened: (open) => cleanUpAfterDead(instance, open, log),
    }),
  );
  // The mount thread takes the longest to start, and needs nobody for it; the first mount waits for it.
  const { mountThreads: threads, holdsProcess } = options;
  const mounts = real ? undo.use(MountHost.open({ log, threads, holdsProcess })) : undefined;
  for (const runtime of atOnce) await backends.get(runtime);
  if (real && options.watchdog) undo.use(await Watchdog.start(instance.directory));
  const kernelWatch = undo.use(new KernelWatch());
  const view = undo.use(new ViewThread());
  const gates = new NetworkGates();
  undo.defer(() => gates.close());

  const parts = undo.move();
  const { timeLimits = {}, internet } = options;
  return new HostIsolation({ instance, backends, mounts, view, kernelWatch, gates, internet, timeLimits, parts });
}

/** Cleans up after those instances that died whose backends are all open here. */
async function cleanUpAfterDead(
  instance: Instance,
  backends: ReadonlyMap<BackendName, Backend>,
  log: NonNullable<IsolationOptions["log"]>,
): Promise<void> {
  const left = await instance.adoptDead(new Set(backends.keys()), async (names, mountPoints) => {
    log({ level: "info", message: `cleaning up after ${names.length} server process(es) that died` });
    for (const backend of backends.values()) await backend.removeOrphans(names);
    for (const mountPoint of mountPoints) await cleanStaleMount(mountPoint);
  });
  for (const error of left) log({ level: "error", message: `not everything could be cleaned up: ${String(error)}` });
}

/** Until the very last of it is closed: pipes to helpers keep nothing alive by themselves. */
function holdProcess(): Disposable {
  const timer = setInterval(() => {}, 2 ** 31 - 1);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** Backends load when they are wanted: a command line that runs bwrap needs no client of the Docker engine. */
async function openBackend(
  runtime: BackendName,
  { name: instance, directory }: Instance,
  options: IsolationOptions,
  undo: AsyncDisposableStack,
): Promise<Backend> {
  const log = options.log ?? (() => {});
  switch (runtime) {
    case "bwrap": {
      const [{ BwrapBackend }, { openLimitHost }] = await Promise.all([
        import("./bwrap/backend.ts"),
        import("./limits/open-limit-host.ts"),
      ]);
      const { cgroupParent, bwrapPath } = options;
      const limits = await openLimitHost({ instance, log, cgroupParent });
      undo.defer(() => limits.close());
      return await BwrapBackend.open({ instance, limits, log, bwrapPath });
    }
    case "docker": {
      const { DockerBackend } = await import("./docker/backend.ts");
      return await DockerBackend.open({ instance, directory, log, ...options.docker });
    }
    case "mock": {
      const { MockBackend } = await import("./mock/backend.ts");
      return new MockBackend(options.mock ?? {});
    }
  }
}

interface HostParts {
  readonly instance: Instance;
  readonly backends: Backends;
  readonly mounts: MountHost | undefined;
  readonly view: ViewThread;
  readonly kernelWatch: KernelWatch;
  readonly gates: NetworkGates;
  readonly internet: TestInternet | undefined;
  readonly timeLimits: TimeLimits;
  /** Everything that was opened, in the order in which it must be closed. */
  readonly parts: AsyncDisposableStack;
}

class HostIsolation implements Isolation {
  readonly #host: HostParts;
  readonly #sandboxes = new Map<string, BoxedWorkspace>();
  /** Ids in use, those of sandboxes in the making too. */
  readonly #ids = new Set<string>();
  readonly #connectionRoom = new DescriptorRoom(Math.floor(descriptorLimit() / 16));
  /** One half of the quarter of descriptors that file systems leave (see planDescriptors). */
  readonly #processDescriptors = new DescriptorRoom(Math.floor(descriptorLimit() / 8));
  #closing: Promise<void> | undefined;

  constructor(host: HostParts) {
    this.#host = host;
  }

  get degradations(): readonly string[] {
    return [...this.#host.backends.opened.values()].flatMap((backend) => backend.degradations);
  }

  counters(): MountCounts {
    return this.#host.mounts?.counts() ?? { fuseOperations: {}, denials: 0, longestTurn: 0 };
  }

  async create(spec: SandboxSpec, options: CreateOptions = {}): Promise<BoxedWorkspace> {
    if (this.#closing !== undefined) throw new IsolationError("SANDBOX_NOT_RUNNING", "the server is shutting down");
    checkSpecification(spec);
    const backend = await this.#host.backends.get(spec.runtime);
    const id = checkId(spec.id ?? `sb_${randomBytes(16).toString("hex")}`);
    if (this.#ids.has(id)) throw new IsolationError("INVALID_ARGUMENT", `there is a sandbox with the id ${id} already`);
    this.#ids.add(id);
    try {
      const sandbox = await this.#make(id, spec, backend, options);
      this.#sandboxes.set(id, sandbox);
      if (this.#closing !== undefined) await sandbox.destroy();
      return sandbox;
    } catch (error) {
      this.#ids.delete(id);
      throw error;
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #make(id: string, spec: SandboxSpec, backend: Backend, options: CreateOptions): Promise<BoxedWorkspace> {
    const { instance, mounts } = this.#host;
    const real = backend.name !== "mock";
    const mountPoint = instance.mountPointOf(id);
    const { secrets: _, ...known } = spec; // what lives on does not have their values
    const opening = await this.#openingOf(spec);
    const network = this.#networkOf(spec, opening);
    const answerIn: BoxSpec["answerIn"] = network && ((listen, owner) => network.answerIn(listen, owner));
    const { trust, placeholders } = opening ?? {};
    const box = await backend
      .createBox(boxSpec(id, known, { mountPoint, answerIn, trust, placeholders }), options)
      .catch(async (error: unknown) => {
        await opening?.forget();
        throw error;
      });
    try {
      await instance.makeMountPoint(id, box.owner);
      return new GuardedBox({
        ...this.#host,
        ...{ id, spec: known, backend, box, network, mountPoint },
        mounts: real ? mounts : undefined,
        connectionRoom: this.#connectionRoom,
        descriptors: this.#processDescriptors,
        onDestroyed: () => {
          this.#sandboxes.delete(id);
          this.#ids.delete(id);
          void opening?.forget();
        },
      });
    } catch (error) {
      await Promise.allSettled([instance.removeMountPoint(id), box.destroy(), opening?.forget()]);
      throw error;
    }
  }

  /** Nothing where no connection is opened. */
  async #openingOf({ network, networkRules = [], secrets = [] }: SandboxSpec): Promise<Opening | undefined> {
    const names = network === "filtered" ? openedNames(networkRules, secrets) : [];
    return names.length === 0 ? undefined : await this.#host.gates.prepare(names, secrets);
  }

  #networkOf(spec: SandboxSpec, opening: Opening | undefined): FilteredNetwork | undefined {
    const { network, networkRules = [], onEvent } = spec;
    if (network !== "filtered") return undefined;
    const { gates, internet } = this.#host;
    return new FilteredNetwork({
      ...{ gates, internet, opening, policy: NetworkPolicy.of(networkRules) },
      onEvent: ({ kind, ...event }) =>
        onEvent?.({ ...event, kind: kind === "allowed" || kind === "denied" ? `connection_${kind}` : kind }),
    });
  }

  async #close(): Promise<void> {
    const results = await Promise.allSettled([...this.#sandboxes.values()].map((sandbox) => sandbox.destroy()));
    await this.#host.parts.disposeAsync();
    const failed = results.find((result) => result.status === "rejected");
    if (failed) throw failed.reason;
  }
}

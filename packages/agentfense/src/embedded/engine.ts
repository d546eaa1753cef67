import { ConnectionError, RuntimeUnavailableError } from "@agentfense/sdk";
import { type Engine, sandboxError } from "@agentfense/sdk/engine";
import type { EmbeddedServer } from "@agentfense/server/embedded";
import type { Transport } from "@connectrpc/connect";
import { keepCompiledCode } from "../compiled-code.ts";
import { toolchainsFor } from "../toolchains/workspaces.ts";

/** What the server's parts need; the classes of the SDK run on older ones. */
const OLDEST_NODE = 24;

export interface EmbeddedEngineOptions {
  /** What sandboxes may run in, the default one first; default: bwrap, and docker for those that name it. */
  readonly runtimes?: readonly [EmbeddedRuntime, ...EmbeddedRuntime[]] | undefined;
  readonly docker?: EmbeddedDockerOptions | undefined;
  /** Where the engine makes its directory for what sandboxes write; default: the system's place for temporary files. */
  readonly stateDirectory?: string | undefined;
  /** Networks that a sandbox may ask for; default: all of them. A sandbox that asks for none has none. */
  readonly networks?: readonly ("none" | "filtered" | "private" | "host")[] | undefined;
  /**
   * `auto`: bwrap sandboxes also show, read-only, the programs that this process finds in its PATH outside of /usr, with what
   * they need. Default `off`.
   */
  readonly toolchains?: "auto" | "off" | undefined;
  /** The time limit of a command that names none; default: no limit. */
  readonly defaultTimeoutMs?: number | undefined;
  /** A command that asks for more is refused; default: no limit. */
  readonly maxTimeoutMs?: number | undefined;
  /** Told what an operator would be: what could not be cleaned up, what failed inside. Default: nobody. */
  readonly log?: ((entry: EngineLogEntry) => void) | undefined;
}

export type EmbeddedRuntime = "bwrap" | "docker";

export interface EmbeddedDockerOptions {
  /** Where the Docker engine listens. */
  readonly socketPath?: string;
  /** Used when a sandbox names none. */
  readonly image?: string;
  /** Default false: only images that are there. */
  readonly allowPull?: boolean;
  readonly allowedImages?: readonly string[];
}

export interface EngineLogEntry {
  readonly level: "info" | "warn" | "error";
  readonly message: string;
  readonly [fact: string]: unknown;
}

/**
 * Sandboxes in this process: no server, no upload. It starts with the first call and keeps no process alive: when nobody
 * waits for it any more the process ends, and everything with it, forgotten sandboxes included. However the process ends, no
 * process and no mount is left.
 */
export class EmbeddedEngine implements Engine {
  readonly name = "embedded";
  readonly transport: Transport;
  readonly #options: EmbeddedEngineOptions;
  readonly #hold = new ProcessHold();
  #server: Promise<EmbeddedServer> | undefined;
  #closing: Promise<void> | undefined;

  private constructor(options: EmbeddedEngineOptions) {
    this.#options = options;
    this.transport = heldTransport(async () => (await this.#started()).transport, this.#hold);
  }

  /** Starts nothing yet: what this machine lacks for it is told by the first call. */
  static async open(options: EmbeddedEngineOptions = {}): Promise<EmbeddedEngine> {
    return EmbeddedEngine.lazily(options);
  }

  /** The same, at once. */
  static lazily(options: EmbeddedEngineOptions = {}): EmbeddedEngine {
    return new EmbeddedEngine(options);
  }

  /**
   * Each opening is a codebase of its own, also of one directory. Sandboxes on it keep what they write to themselves until
   * it is applied; then it goes into the directory itself, and all sandboxes that show it see it. What others change there
   * shows from the next command on.
   */
  async openDirectory(
    directory: string,
    options: { readonly name?: string | undefined; readonly signal?: AbortSignal | undefined } = {},
  ): Promise<string> {
    const { name, signal } = options;
    signal?.throwIfAborted();
    const opening = this.#started().then((server) =>
      server.openDirectory(directory, name === undefined ? {} : { name }),
    );
    try {
      return await this.#hold.during(opening);
    } catch (error) {
      throw sandboxError(error, this);
    }
  }

  get isClosed(): boolean {
    return this.#closing !== undefined;
  }

  /** Destroys every sandbox that is left, and all that the engine kept. */
  close(): Promise<void> {
    this.#closing ??= this.#hold.during(this.#close());
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #started(): Promise<EmbeddedServer> {
    if (this.isClosed) return Promise.reject(closed());
    this.#server ??= this.#start().catch((error: unknown) => {
      this.#server = undefined; // what is missing may be there next time
      throw error;
    });
    return this.#server;
  }

  async #start(): Promise<EmbeddedServer> {
    if (process.platform !== "linux") throw onlyLinux();
    if (Number.parseInt(process.versions.node, 10) < OLDEST_NODE) throw onlyNewerNode();
    const {
      runtimes = ["bwrap", "docker"],
      networks = ["filtered", "private", "host"],
      log = () => {},
      ...rest
    } = this.#options;
    keepCompiledCode(process.env);
    const { openEmbedded } = await import("@agentfense/server/embedded");
    const toolchains = rest.toolchains === "auto" ? toolchainsFor : undefined;
    const server = await openEmbedded({ ...rest, runtimes, networks, toolchains, log });
    process.once("beforeExit", this.#onIdle);
    return server;
  }

  // Nothing holds the process any more: what was forgotten goes now, in peace.
  readonly #onIdle = (): void => {
    this.close().catch((error: unknown) => {
      this.#options.log?.({ level: "error", message: "not everything could be cleaned up", error });
    });
  };

  async #close(): Promise<void> {
    process.off("beforeExit", this.#onIdle);
    const server = await this.#server?.catch(() => undefined);
    process.off("beforeExit", this.#onIdle);
    await server?.shutDown();
  }
}

function closed(): ConnectionError {
  return new ConnectionError("the engine is closed", { code: "CONNECTION_FAILED" });
}

function onlyNewerNode(): RuntimeUnavailableError {
  const message = `sandboxes in this process need Node ${OLDEST_NODE} or newer; this is Node ${process.versions.node}`;
  return new RuntimeUnavailableError(message, {
    code: "RUNTIME_UNAVAILABLE",
    hint: "run it with a newer Node, or name a server: AGENTFENSE_ENDPOINT, or the option endpoint; that takes Node 20",
  });
}

function onlyLinux(): RuntimeUnavailableError {
  return new RuntimeUnavailableError(`sandboxes run on Linux, not on ${process.platform}`, {
    code: "RUNTIME_UNAVAILABLE",
    hint: "run `agentfense serve` on a Linux machine and name it: AGENTFENSE_ENDPOINT, or the option endpoint",
  });
}

/** As long as a timer waits; it never gets to do anything. */
const LONGEST_MS = 2 ** 31 - 1;

/** Keeps the process alive while something is waited for, and only then: nothing in the engine does. */
class ProcessHold {
  readonly #timer = setInterval(() => {}, LONGEST_MS).unref();
  #waiting = 0;

  async during<T>(work: Promise<T>): Promise<T> {
    this.#waiting += 1;
    if (this.#waiting === 1) this.#timer.ref();
    try {
      return await work;
    } finally {
      this.#waiting -= 1;
      if (this.#waiting === 0) this.#timer.unref();
    }
  }
}

/**
 * A transport that is there with its first call, and keeps the process alive while an answer is waited for. A stream that
 * nobody reads from at the moment does not: whoever forgot it must not be kept.
 */
function heldTransport(open: () => Promise<Transport>, hold: ProcessHold): Transport {
  return {
    async unary(...call) {
      return await hold.during(open().then((transport) => transport.unary(...call)));
    },
    async stream(...call) {
      const response = await hold.during(open().then((transport) => transport.stream(...call)));
      return { ...response, message: heldMessages(response.message, hold) };
    },
  };
}

function heldMessages<T>(messages: AsyncIterable<T>, hold: ProcessHold): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      const iterator = messages[Symbol.asyncIterator]();
      return {
        next: () => hold.during(iterator.next()),
        return: (value) => hold.during(iterator.return?.(value) ?? Promise.resolve({ done: true, value: undefined })),
        throw: (error) => hold.during(iterator.throw?.(error) ?? Promise.reject(error)),
      };
    },
  };
}

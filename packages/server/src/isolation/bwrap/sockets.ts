import { Socket } from "node:net";
import { processes, syscalls } from "@agentfense/fuse";
import { unusedOwner } from "../backend/box-owner.ts";
import { cancelled, notRunning, SandboxError } from "../backend/errors.ts";
import { requireProgram } from "../backend/find-program.ts";
import { Queue } from "../queue.ts";
import { DescriptorSet, readFrom } from "./descriptors.ts";
import type { Launcher } from "./launcher.ts";
import { askForDescriptor } from "./orders.ts";
import { scriptFile } from "./scripts.ts";

/** Loopback answers at once or not at all: a full queue of a program that does not accept keeps silent. */
const CONNECT_TIMEOUT_MS = 10_000;
const COMPLAINT_BYTES = 4096;
/** A box whose ports nobody uses has no process for them. */
const IDLE_MS = 60_000;

/** The network of a box, held open. */
export interface BoxNetwork extends AsyncDisposable {
  /** Descriptors of the network namespace and, for a server that is not root, of the user namespace that rules over it. */
  readonly namespaces: readonly [network: number, user?: number];
}

/**
 * Connections to ports of a box. A small process that entered the network of the box (perl/sockets.pl) makes unconnected sockets
 * there and passes them to the server, which connects them to the loopback device. That process is ours and outside of the box. A
 * socket that came from inside could be shared with somebody there, who could make it block the server at any time, and no look at it
 * would show that.
 */
export class BoxSockets {
  readonly #options: { readonly launcher: Launcher; readonly openNetwork: () => Promise<BoxNetwork> };
  #maker: Promise<SocketMaker> | undefined;
  #idle: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: { launcher: Launcher; openNetwork: () => Promise<BoxNetwork> }) {
    this.#options = options;
  }

  /** To 127.0.0.1, or ::1 where nothing listens there. */
  async connect(port: number, signal: AbortSignal | undefined): Promise<Socket> {
    try {
      return await connected(await this.#open("4"), { host: "127.0.0.1", port }, signal);
    } catch (error) {
      if (!isRefusal(error)) throw error;
    }
    try {
      return await connected(await this.#open("6"), { host: "::1", port }, signal);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      throw new SandboxError("PORT_CLOSED", `nothing listens at port ${port} of the sandbox`, {
        hint: "start a server there, on localhost or all addresses, or wait for the port",
        cause: error,
      });
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#end();
  }

  async #open(version: "4" | "6"): Promise<number> {
    if (this.#isClosed) throw notRunning();
    clearTimeout(this.#idle);
    for (let isFirst = true; ; isFirst = false) {
      this.#maker ??= this.#start();
      const current = this.#maker;
      try {
        return await (await current).make(version);
      } catch (error) {
        if (this.#maker === current) this.#end();
        if (!isFirst || this.#isClosed) throw error; // it may have died since the last one
      } finally {
        clearTimeout(this.#idle);
        this.#idle = setTimeout(() => this.#end(), IDLE_MS).unref();
      }
    }
  }

  async #start(): Promise<SocketMaker> {
    const need = "ports of a sandbox need";
    const [nsenter, perl] = await Promise.all([
      requireProgram("nsenter", "util-linux", need),
      requireProgram("perl", "perl", need),
    ]);
    await using network = await this.#options.openNetwork();
    return new SocketMaker(this.#options.launcher, { nsenter, perl, namespaces: network.namespaces });
  }

  #end(): void {
    clearTimeout(this.#idle);
    const maker = this.#maker;
    this.#maker = undefined;
    maker?.then((running) => running.close()).catch(() => {}); // whoever asked for it was told
  }
}

/** The process in the network of one box. */
class SocketMaker {
  readonly #orders: number;
  readonly #turns = new Queue();
  #complaint = "";
  #isClosed = false;

  constructor(
    launcher: Launcher,
    { nsenter, perl, namespaces: [network, user] }: Pick<BoxNetwork, "namespaces"> & { nsenter: string; perl: string },
  ) {
    using lent = new DescriptorSet();
    const [ours, theirs] = lent.pair(processes.messageSockets());
    const voice = lent.pipe();
    const { uid, gid } = unusedOwner();
    const become =
      user === undefined
        ? [`--setuid=${uid}`, `--setgid=${gid}`]
        : ["--preserve-credentials", "--user=/proc/self/fd/5"];
    launcher.launch({
      entrances: [],
      argv: [nsenter, ...become, "--net=/proc/self/fd/4", "--", perl, "-"],
      descriptors: [
        ...[lent.add(scriptFile("sockets")), voice.writeEnd, voice.writeEnd, theirs, network],
        ...(user === undefined ? [] : [user]),
      ],
    });
    this.#orders = lent.release(ours);
    readFrom(lent.release(voice.readEnd))
      .setEncoding("utf8")
      .on("data", (text: string) => {
        this.#complaint = (this.#complaint + text).slice(-COMPLAINT_BYTES);
      });
  }

  /** One after the other: the kernel has room for few descriptors on their way. */
  make(version: "4" | "6"): Promise<number> {
    return this.#turns.run(() => this.#make(version));
  }

  close(): void {
    void this.#turns.run(() => {
      if (!this.#isClosed) syscalls.close(this.#orders);
      this.#isClosed = true;
    });
  }

  async #make(version: "4" | "6"): Promise<number> {
    const { fd, said } = this.#isClosed ? { fd: -1, said: "closed" } : await askForDescriptor(this.#orders, version);
    if (fd >= 0) return fd;
    throw new SandboxError("INTERNAL", "the network of the sandbox could not be entered", {
      cause: new Error(`${said.trim()} ${this.#complaint}`),
    });
  }
}

/** Takes the descriptor, also when it fails. */
async function connected(
  fd: number,
  to: { readonly host: string; readonly port: number },
  signal: AbortSignal | undefined,
): Promise<Socket> {
  // Without manualStart it would read before it is connected, and fail.
  const socket = new Socket({ fd, allowHalfOpen: true, manualStart: true } as ConstructorParameters<typeof Socket>[0]);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onAbort = (): void => reject(cancelled(signal?.reason));
  const patience = setTimeout(() => reject(silent(to.port)), CONNECT_TIMEOUT_MS);
  socket.once("error", reject);
  if (signal?.aborted) onAbort();
  else signal?.addEventListener("abort", onAbort, { once: true });
  socket.connect(to, resolve);
  try {
    await promise;
    return socket.setNoDelay(true);
  } catch (error) {
    socket.on("error", () => {}).destroy();
    throw error;
  } finally {
    clearTimeout(patience);
    socket.off("error", reject);
    signal?.removeEventListener("abort", onAbort);
  }
}

function silent(port: number): SandboxError {
  return new SandboxError("PORT_CLOSED", `what listens at port ${port} of the sandbox does not accept connections`);
}

/** EADDRNOTAVAIL: the box has no such version of IP. */
function isRefusal(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code ?? "";
  return ["ECONNREFUSED", "EADDRNOTAVAIL", "EAFNOSUPPORT", "ENETUNREACH", "ECONNRESET"].includes(code);
}

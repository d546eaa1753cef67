import { Socket } from "node:net";
import { constants } from "node:os";
import { processes, syscalls } from "@agentfense/fuse";
import type { ListeningPlace } from "../backend/backend.ts";
import { unusedOwner } from "../backend/box-owner.ts";
import { PERL_PACKAGE, requireProgram } from "../backend/find-program.ts";
import { cancelled, IsolationError, notRunning } from "../backend/isolation-error.ts";
import { Queue } from "../waiting.ts";
import { DescriptorSet, readFrom } from "./descriptors.ts";
import type { Launcher } from "./launcher.ts";
import { askForDescriptors } from "./orders.ts";
import { scriptFile } from "./scripts.ts";

/** Loopback answers at once or not at all: a full queue of a program that does not accept keeps silent. */
const CONNECT_TIMEOUT_MS = 10_000;
const COMPLAINT_BYTES = 4096;
/** A box whose ports nobody uses has no process for them. */
const IDLE_MS = 60_000;

/** How many sockets one order asks for: more would not fit on the way to us. */
const MOST_AT_ONCE = 32;

/** The network of a box, held open. */
export interface BoxNetwork extends AsyncDisposable {
  /** Descriptors of the network namespace and, for a server that is not root, of the user namespace that rules over it. */
  readonly namespaces: readonly [network: number, user?: number];
}

interface BoxSocketsOptions {
  readonly launcher: Launcher;
  readonly openNetwork: () => Promise<BoxNetwork>;
  /** Whether there will be listeners, too: only then the process may change the network and take any port. */
  readonly listens: boolean;
}

/**
 * Sockets in the network of a box. A small process that entered it (perl/sockets.pl) makes them there and passes them to the server:
 * unconnected ones, which the server connects to the loopback device, and such that listen. That process is ours and outside of the
 * box. A socket that came from inside could be shared with somebody there, who could make it block the server at any time, and no look
 * at it would show that.
 */
export class BoxSockets {
  readonly #options: BoxSocketsOptions;
  #maker: Promise<SocketMaker> | undefined;
  #idle: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: BoxSocketsOptions) {
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
      throw new IsolationError("PORT_CLOSED", `nothing listens at port ${port} of the sandbox`, {
        hint: "start a server there, on localhost or all addresses, or wait for the port",
        cause: error,
      });
    }
  }

  /** See Listen. */
  async listen(places: readonly ListeningPlace[]): Promise<readonly number[]> {
    const made = new DescriptorSet();
    try {
      const descriptors: number[] = [];
      for (let done = 0; done < places.length; done += MOST_AT_ONCE) {
        const some = places.slice(done, done + MOST_AT_ONCE);
        for (const fd of await this.#order((maker) => maker.listeners(some))) descriptors.push(made.add(fd));
      }
      for (const fd of descriptors) made.release(fd);
      return descriptors;
    } finally {
      made[Symbol.dispose]();
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#end();
  }

  #open(version: "4" | "6"): Promise<number> {
    return this.#order((maker) => maker.unconnected(version));
  }

  async #order<T>(give: (maker: SocketMaker) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw notRunning();
    clearTimeout(this.#idle);
    for (let isFirst = true; ; isFirst = false) {
      this.#maker ??= this.#start();
      const current = this.#maker;
      try {
        return await give(await current);
      } catch (error) {
        if (error instanceof PlaceTaken) throw error;
        if (this.#maker === current) this.#end();
        if (!isFirst || this.#isClosed) throw error; // it may have died since the last one
      } finally {
        clearTimeout(this.#idle);
        this.#idle = setTimeout(() => this.#end(), IDLE_MS).unref();
      }
    }
  }

  async #start(): Promise<SocketMaker> {
    const { launcher, listens } = this.#options;
    const need = listens ? "a filtered network needs" : "ports of a sandbox need";
    const [nsenter, setpriv, perl] = await Promise.all([
      requireProgram("nsenter", "util-linux", need),
      requireProgram("setpriv", "util-linux", need),
      requireProgram("perl", PERL_PACKAGE, need),
    ]);
    await using network = await this.#options.openNetwork();
    return new SocketMaker(launcher, { nsenter, setpriv, perl, listens, namespaces: network.namespaces });
  }

  #end(): void {
    clearTimeout(this.#idle);
    const maker = this.#maker;
    this.#maker = undefined;
    maker?.then((running) => running.close()).catch(() => {}); // whoever asked for it was told
  }
}

/** Something in the box has the port, or all addresses of it. */
class PlaceTaken extends IsolationError {
  constructor({ address, port }: ListeningPlace) {
    super("RESOURCES_EXHAUSTED", `a program in the sandbox has port ${port}, so that ${address} cannot be given it`, {
      hint: "end that program, or let it listen at 127.0.0.1 alone",
    });
  }
}

interface SocketMakerRequest extends Pick<BoxNetwork, "namespaces"> {
  readonly nsenter: string;
  readonly setpriv: string;
  readonly perl: string;
  readonly listens: boolean;
}

/** The process in the network of one box. */
class SocketMaker {
  readonly #orders: number;
  readonly #turns = new Queue();
  #complaint = "";
  #isClosed = false;

  constructor(launcher: Launcher, { nsenter, perl, namespaces: [network, user], ...request }: SocketMakerRequest) {
    using lent = new DescriptorSet();
    const [ours, theirs] = lent.pair(processes.messageSockets());
    const voice = lent.pipe();
    const become =
      user === undefined ? withoutPrivileges(request) : ["--preserve-credentials", "--user=/proc/self/fd/5", "--"];
    launcher.launch({
      entrances: [],
      argv: [nsenter, "--net=/proc/self/fd/4", ...become, perl, "-"],
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

  async unconnected(version: "4" | "6"): Promise<number> {
    const { descriptors, said } = await this.#ask(version, [], 1);
    return descriptors[0] ?? this.#failed(said);
  }

  async listeners(places: readonly ListeningPlace[]): Promise<readonly number[]> {
    const fields = places.flatMap(({ protocol, address, port }) => [protocol, address, port]);
    const { descriptors, said } = await this.#ask("n", fields, places.length);
    if (descriptors.length === places.length) return descriptors;
    const [errno, which] = /f (\d+) (\d+)\n$/.exec(said)?.slice(1).map(Number) ?? [];
    const place = errno === constants.errno.EADDRINUSE ? places[which ?? -1] : undefined;
    if (place !== undefined) throw new PlaceTaken(place);
    return this.#failed(said);
  }

  close(): void {
    void this.#turns.run(() => {
      if (!this.#isClosed) syscalls.close(this.#orders);
      this.#isClosed = true;
    });
  }

  /** One after the other: the kernel has room for few descriptors on their way. */
  #ask(letter: string, fields: readonly (string | number)[], count: number): ReturnType<typeof askForDescriptors> {
    return this.#turns.run(async () => {
      if (this.#isClosed) return { descriptors: [], said: "closed" };
      return await askForDescriptors(this.#orders, letter, fields, count);
    });
  }

  #failed(said: string): never {
    throw new IsolationError("INTERNAL", "the network of the sandbox could not be entered", {
      cause: new Error(`${said.trim()} ${this.#complaint}`),
    });
  }
}

/** For a root server, whose rights over every network are more than is needed in this one. The end of nsenter's arguments. */
function withoutPrivileges({ setpriv, listens }: Pick<SocketMakerRequest, "setpriv" | "listens">): string[] {
  const { uid, gid } = unusedOwner();
  if (!listens) return [`--setuid=${uid}`, `--setgid=${gid}`, "--"];
  const rights = "-all,+net_admin,+net_bind_service";
  return [
    ...["--", setpriv, `--reuid=${uid}`, `--regid=${gid}`, "--clear-groups"],
    ...[`--inh-caps=${rights}`, `--ambient-caps=${rights}`, `--bounding-set=${rights}`, "--"],
  ];
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

function silent(port: number): IsolationError {
  return new IsolationError("PORT_CLOSED", `what listens at port ${port} of the sandbox does not accept connections`);
}

/** EADDRNOTAVAIL: the box has no such version of IP. */
function isRefusal(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code ?? "";
  return ["ECONNREFUSED", "EADDRNOTAVAIL", "EAFNOSUPPORT", "ENETUNREACH", "ECONNRESET"].includes(code);
}

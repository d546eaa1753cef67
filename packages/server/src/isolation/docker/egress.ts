import { spawn } from "node:child_process";
import { once } from "node:events";
import { constants, existsSync } from "node:fs";
import { type FileHandle, open, readFile, readlink } from "node:fs/promises";
import { basename } from "node:path";
import { text } from "node:stream/consumers";
import type { IpFamily } from "@agentfense/permission";
import { egressPolicy, hostAddresses, packetFilter, resolversIn } from "../backend/egress.ts";
import { requireProgram } from "../backend/find-program.ts";
import { IsolationError } from "../backend/isolation-error.ts";
import type { LogLine } from "../log.ts";

const TIMEOUT_MS = 10_000;
const NEED = "a private network needs";
/** How long to wait for somebody else who changes a packet filter. */
const LOCK_SECONDS = 5;
/** Runtimes whose containers send through the kernel's own network namespaces; gVisor and virtual machines do not. */
const KERNEL_RUNTIMES: readonly string[] = ["runc", "crun"];

function usesKernelNetwork(runtimeProgram: string): boolean {
  return KERNEL_RUNTIMES.includes(basename(runtimeProgram));
}

/** Why the server can make no sockets in a container's network that lead anywhere; undefined where it can. */
export function reasonAgainstSockets(runtimeProgram: string): string | undefined {
  if (process.geteuid?.() !== 0) return "only a server of root can enter its network";
  return usesKernelNetwork(runtimeProgram) ? undefined : `${basename(runtimeProgram)} has a network stack of its own`;
}

/** What the daemon says of a running container, as far as its network goes. */
export interface NetworkedContainer {
  readonly Id: string;
  readonly ResolvConfPath?: string;
  readonly State: { readonly Pid: number };
  readonly NetworkSettings: {
    readonly Networks?: Readonly<Record<string, Attachment>> | null;
  };
}

interface Attachment {
  readonly Gateway?: string;
  readonly IPAddress?: string;
  readonly IPPrefixLen?: number;
  readonly IPv6Gateway?: string;
  readonly GlobalIPv6Address?: string;
  readonly GlobalIPv6PrefixLen?: number;
}

/** Puts the egress policy into containers' network namespaces, from outside: nobody in them has a capability to take it away. */
export class EgressGuard {
  readonly #nsenter: string;
  readonly #restore: Readonly<Record<IpFamily, string>>;
  readonly #log: (line: LogLine) => void;

  private constructor(nsenter: string, restore: Record<IpFamily, string>, log: (line: LogLine) => void) {
    this.#nsenter = nsenter;
    this.#restore = restore;
    this.#log = log;
  }

  /** Refuses where there can be no such policy, and so no private network. */
  static async open(runtimeProgram: string, log: (line: LogLine) => void): Promise<EgressGuard> {
    if (process.geteuid?.() !== 0) throw refusal("only a server of root can confine it", "use the network none");
    if (!usesKernelNetwork(runtimeProgram)) {
      throw refusal("this OCI runtime has a network stack of its own", "use runc, or the network none");
    }
    const [ipv4, ipv6, nsenter] = await Promise.all([
      requireProgram("iptables-restore", "iptables", NEED),
      requireProgram("ip6tables-restore", "iptables", NEED),
      requireProgram("nsenter", "util-linux", NEED),
    ]);
    return new EgressGuard(nsenter, { ipv4, ipv6 }, log);
  }

  /** Called when a container has just been started, before anything of the agent runs in it. */
  async confine(container: NetworkedContainer): Promise<void> {
    const attachments = Object.values(container.NetworkSettings.Networks ?? {});
    const surroundings = {
      // The gateway is the daemon's host, which need not have the server's network.
      hostAddresses: [...hostAddresses(), ...attachments.flatMap(gatewaysOf)],
      networks: attachments.flatMap(networksOf),
      resolvers: await resolversOf(container),
    };
    await using network = await openNetwork(container);
    let usableResolvers = 0;
    for (const family of FAMILIES.filter(isSpoken)) {
      const policy = egressPolicy(family, surroundings);
      await this.#filter(family, packetFilter(family, policy), network);
      usableResolvers += policy.resolvers.length;
    }
    if (usableResolvers === 0) {
      const message = "a sandbox has no name server but this host, which it may not reach: set dns in daemon.json";
      this.#log({ level: "error", message });
    }
  }

  async #filter(family: IpFamily, rules: string, network: FileHandle): Promise<void> {
    const parameters = ["--net=/proc/self/fd/3", "--", this.#restore[family], "--wait", String(LOCK_SECONDS)];
    const child = spawn(this.#nsenter, parameters, {
      cwd: "/",
      env: {},
      stdio: ["pipe", "ignore", "pipe", network.fd],
      timeout: TIMEOUT_MS,
      killSignal: "SIGKILL",
    });
    child.stdin?.on("error", () => {}).end(rules);
    const [[code], complaint] = await Promise.all([once(child, "close"), text(child.stderr!)]);
    if (code === 0) return;
    throw refusal("this host could not confine it", "load the kernel's netfilter modules, or use the network none", {
      cause: new Error(`${family}: ${complaint.trim()}`),
    });
  }
}

const FAMILIES: readonly IpFamily[] = ["ipv4", "ipv6"];

function isSpoken(family: IpFamily): boolean {
  return family === "ipv4" || existsSync("/proc/sys/net/ipv6");
}

function gatewaysOf({ Gateway = "", IPv6Gateway = "" }: Attachment): string[] {
  return [Gateway, IPv6Gateway].filter((address) => address !== "");
}

function networksOf(attachment: Attachment): string[] {
  const { IPAddress = "", IPPrefixLen, GlobalIPv6Address = "", GlobalIPv6PrefixLen } = attachment;
  return [
    ...(IPAddress === "" ? [] : [`${IPAddress}/${IPPrefixLen}`]),
    ...(GlobalIPv6Address === "" ? [] : [`${GlobalIPv6Address}/${GlobalIPv6PrefixLen}`]),
  ];
}

async function resolversOf({ ResolvConfPath = "" }: NetworkedContainer): Promise<string[]> {
  if (ResolvConfPath === "") return [];
  try {
    return resolversIn(await readFile(ResolvConfPath, "utf8"));
  } catch {
    return []; // without an exception for them, which is safe
  }
}

/**
 * The network namespace of a container's process 1, held open. The daemon may count processes in another namespace than
 * we do: then the number is nobody's here, or, worse, somebody else's, whose network is not ours to change.
 */
export async function openNetwork({ Id, State }: NetworkedContainer): Promise<FileHandle> {
  try {
    await using process = await open(`/proc/${State.Pid}`, constants.O_RDONLY | constants.O_DIRECTORY);
    // Through the descriptor it stays this process, whatever becomes of its number.
    const seen = `/proc/self/fd/${process.fd}`;
    const isContainer = State.Pid > 1 && (await readFile(`${seen}/cgroup`, "utf8")).includes(Id);
    const isOurs = (await readlink(`${seen}/ns/net`)) === (await readlink("/proc/self/ns/net"));
    if (isContainer && !isOurs) return await open(`${seen}/ns/net`);
    throw new Error("the number of its process means another one here");
  } catch (cause) {
    throw refusal("the engine's containers are not visible from here", "run the server on the engine's host itself", {
      cause,
    });
  }
}

function refusal(reason: string, hint: string, options: { cause?: unknown } = {}): IsolationError {
  return new IsolationError("RUNTIME_UNAVAILABLE", `a private network is not possible: ${reason}`, {
    hint,
    ...options,
  });
}

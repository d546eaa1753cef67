import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { processes, syscalls } from "@agentfense/fuse";
import type { NetworkMode } from "../backend/backend.ts";
import { egressPolicy, hostAddresses, packetFilter } from "../backend/egress.ts";
import { requireProgram } from "../backend/find-program.ts";
import { IsolationError } from "../backend/isolation-error.ts";
import type { Owner } from "../filesystem/presentation.ts";
import { NAME_SERVER } from "../network/names.ts";
import { Queue } from "../waiting.ts";
import { DescriptorSet, exhausted } from "./descriptors.ts";

// 198.18.0.0/15 is set aside for tests of network devices: neither the internet nor a private network uses it.
const ADDRESS = { box: "198.18.0.2", gateway: "198.18.0.1", resolver: NAME_SERVER, maskBits: "24" } as const;
const DEVICE = "net0";
const RESOLVER = "/etc/resolv.conf";
const READY_TIMEOUT_MS = 10_000;
const NEED = "a private network needs";

/** What was done to a box from outside. */
export interface Attachment {
  /**
   * Follows the host: forbids its own addresses as they are now, and asks for names whom it asks now. For that the connections
   * that are open are cut, which the host's change of networks mostly does anyway.
   */
  renew?(): Promise<void>;
  close(): Promise<void>;
}

interface Helpers {
  readonly pasta: string;
  readonly nsenter: string;
  readonly iptablesRestore: string;
}

/**
 * Networks of their own for boxes: pasta carries their connections out through sockets of the host, so that the box sees
 * neither the host's devices nor its loopback. IPv4 only. What is forbidden (backend/egress.ts) is refused by a packet filter
 * in the box's network namespace, made by the box's owner from outside; the box has no capability to take it away.
 */
export class PrivateNetworks {
  readonly #options: { readonly setpriv: string | undefined; readonly marker: string };
  #helpers: Helpers | undefined;

  constructor(options: { setpriv: string | undefined; marker: string }) {
    this.#options = options;
  }

  /** Fails when this host lacks what a private network needs. */
  async check(): Promise<void> {
    this.#helpers ??= {
      pasta: await requireProgram("pasta", "passt", NEED),
      nsenter: await requireProgram("nsenter", "util-linux", NEED),
      iptablesRestore: await requireProgram("iptables-restore", "iptables", NEED),
    };
  }

  /** resolv.conf for a box: the host's own, or the address at which pasta passes questions on, or the server answers them. */
  resolver(network: Exclude<NetworkMode, "none">): string {
    return network === "host" ? hostResolver() : `nameserver ${ADDRESS.resolver}\n`;
  }

  /** Connects the box whose process 1 this is, as the box's owner. Its command must not run yet. */
  async attach(initPid: number, owner: Owner): Promise<Attachment> {
    await this.check();
    let addresses = hostAddresses().join();
    let nameServer = await hostNameServer();
    await loopbackOf(initPid);
    using lent = new DescriptorSet();
    const namespaces = openNamespaces(initPid, lent);
    let pasta = await this.#connect(initPid, owner, namespaces);
    try {
      await this.#forbid(owner, namespaces);
    } catch (cause) {
      throw noNetwork(pasta, cause);
    }
    const turns = new Queue();
    let isClosed = false;
    const follow = async (addressesNow: string, nameServerNow: string | undefined): Promise<void> => {
      using again = new DescriptorSet();
      if (addressesNow !== addresses) await this.#forbid(owner, openNamespaces(initPid, again));
      addresses = addressesNow;
      if (nameServerNow === nameServer || isClosed) return;
      pasta.child.kill("SIGKILL");
      await pasta.exit; // its device has to be gone before there is another of that name
      pasta = await this.#connect(initPid, owner, openNamespaces(initPid, again));
      nameServer = nameServerNow;
      if (isClosed) pasta.child.kill("SIGKILL");
    };
    return {
      renew: async () => {
        // None at all may be a file that is being written just now; whoever was asked until then still is.
        const [addressesNow, nameServerNow] = [hostAddresses().join(), (await hostNameServer()) ?? nameServer];
        if (addressesNow === addresses && nameServerNow === nameServer) return;
        await turns.run(() => follow(addressesNow, nameServerNow));
      },
      close: async () => {
        isClosed = true;
        pasta.child.kill("SIGKILL");
      },
    };
  }

  async #connect(initPid: number, owner: Owner, namespaces: readonly [number, number]): Promise<Helper> {
    const pasta = this.#start(pastaArguments(this.#helpers?.pasta ?? "", this.#options.marker), owner, namespaces);
    try {
      await until(() => hasDefaultRoute(initPid), "pasta did not bring the network up", pasta);
      return pasta;
    } catch (cause) {
      throw noNetwork(pasta, cause);
    }
  }

  async #forbid(owner: Owner, namespaces: readonly [number, number]): Promise<void> {
    const { nsenter, iptablesRestore } = this.#helpers ?? { nsenter: "", iptablesRestore: "" };
    const enter = [nsenter, "--preserve-credentials", "--user=/proc/self/fd/3", "--net=/proc/self/fd/4", "--"];
    const filter = this.#start([...enter, iptablesRestore], owner, namespaces);
    const policy = egressPolicy("ipv4", {
      hostAddresses: hostAddresses(),
      networks: [`${ADDRESS.box}/${ADDRESS.maskBits}`],
      resolvers: [ADDRESS.resolver],
    });
    filter.child.stdin?.on("error", () => {}).end(packetFilter("ipv4", policy));
    const code = await filter.exit;
    if (code !== 0) throw new Error(`the packet filter of the box could not be set: ${filter.complaints()}`);
  }

  #start(argv: readonly string[], owner: Owner, namespaces: readonly [number, number]): Helper {
    const become = [`--reuid=${owner.uid}`, `--regid=${owner.gid}`, "--clear-groups", "--inh-caps=-all", "--"];
    const { setpriv } = this.#options;
    const [program = "", ...parameters] = setpriv === undefined ? argv : [setpriv, ...become, ...argv];
    const child = spawn(program, parameters, { cwd: "/", env: {}, stdio: ["pipe", "ignore", "pipe", ...namespaces] });
    child.unref(); // see IsolationOptions.holdsProcess
    for (const stream of [child.stdin, child.stderr]) (stream as unknown as { unref?(): void } | null)?.unref?.();
    let text = "";
    child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
      text = (text + chunk).slice(-4096);
    });
    const exit = new Promise<number | null>((resolve) => {
      child.once("error", () => resolve(null));
      child.once("exit", resolve);
    });
    return { child, exit, complaints: () => text.trim() };
  }
}

interface Helper {
  readonly child: ChildProcess;
  readonly exit: Promise<number | null>;
  readonly complaints: () => string;
}

function pastaArguments(pasta: string, marker: string): string[] {
  return [
    ...[pasta, "--search", marker], // nobody asks for search domains; it names the server this process belongs to
    ...["--foreground", "--quiet", "--ipv4-only", "--config-net", "--ns-ifname", DEVICE],
    ...["--address", ADDRESS.box, "--netmask", ADDRESS.maskBits, "--gateway", ADDRESS.gateway],
    ...["--dns-forward", ADDRESS.resolver, "--no-map-gw"],
    ...["--tcp-ports", "none", "--udp-ports", "none", "--tcp-ns", "none", "--udp-ns", "none"],
    ...["--userns", "/proc/self/fd/3", "--netns", "/proc/self/fd/4"],
  ];
}

/** Resolves when bwrap has made the network of a box, as far as it does. */
export function loopbackOf(initPid: number): Promise<void> {
  return until(() => isMapped(initPid) && hasLoopback(initPid), "the box's loopback did not come up");
}

/**
 * The user namespace that rules over the box's network, and the network namespace. It is not the one the box's processes
 * are in: bwrap nests a second one below it.
 */
export function openNamespaces(pid: number, lent: DescriptorSet): [number, number] {
  const network = syscalls.open(`/proc/${pid}/ns/net`, syscalls.Open.RDONLY | syscalls.Open.CLOEXEC);
  if (network < 0) throw exhausted("open of a network namespace", network);
  const user = processes.owningUserNamespace(lent.add(network));
  if (user < 0) throw exhausted("NS_GET_USERNS", user);
  return [lent.add(user), network];
}

// bwrap tells of the process before that has said who it is in its user namespace; whoever enters before that is nobody there,
// and a program that is started then has no rights.
function isMapped(pid: number): boolean {
  return readFileSync(`/proc/${pid}/uid_map`, "latin1") !== "";
}

// bwrap gives the loopback device its address, and fails when somebody else has: pasta does, too.
function hasLoopback(pid: number): boolean {
  return readFileSync(`/proc/${pid}/net/fib_trie`, "latin1").includes("127.0.0.1");
}

function hasDefaultRoute(pid: number): boolean {
  return readFileSync(`/proc/${pid}/net/route`, "latin1").includes(`\n${DEVICE}\t00000000\t`);
}

function noNetwork(pasta: Helper, cause: unknown): IsolationError {
  pasta.child.kill("SIGKILL");
  return new IsolationError("RUNTIME_UNAVAILABLE", "the box could not be given a network", {
    hint: "pasta (package passt) needs /dev/net/tun, readable and writable for all",
    cause: new Error(`${String(cause)} ${pasta.complaints()}`),
  });
}

/** Throws the problem when the time is up, or whoever is to bring it about is gone. */
async function until(isReady: () => boolean, problem: string, helper?: Helper): Promise<void> {
  const deadline = performance.now() + READY_TIMEOUT_MS;
  let isGone = false;
  void helper?.exit.then(() => {
    isGone = true;
  });
  while (!isReady()) {
    if (isGone || performance.now() > deadline) throw new Error(problem);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

function hostResolver(): string {
  try {
    return readFileSync(RESOLVER, "utf8");
  } catch {
    return "";
  }
}

/** Whom pasta asks for names when it is started now: the first of the host's. */
async function hostNameServer(): Promise<string | undefined> {
  const text = await readFile(RESOLVER, "utf8").catch(() => "");
  return /^nameserver\s+(\d+(?:\.\d+){3})\s*$/m.exec(text)?.[1];
}

import { Resolver } from "node:dns/promises";
import { BlockList, connect, isIP, type LookupFunction, type OnReadOpts, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import type { IpFamily } from "@agentfense/permission";
import { egressPolicy } from "../backend/egress.ts";
import type { TestInternet } from "./gate.ts";
import { isListed } from "./ranges.ts";

const CONNECT_MS = 10_000;
const RESOLVE_MS = 2000;
/** c-ares waits for no longer than a few times what answers took so far, a quarter of a second at least; a rare slow one needs several. */
const RESOLVE_TRIES = 4;
/** How long one of several addresses has to answer before the next is tried. */
const ADDRESS_MS = 2000;
const PROBE_AFTER_MS = 60_000;

/** Why a listed host was not reached, as a sentence for those who wanted it. */
export class DialError extends Error {
  /** Whether it is by rule and not because of the network. */
  readonly isRefused: boolean;

  constructor(message: string, options: { readonly isRefused: boolean; readonly cause?: unknown }) {
    super(message, { cause: options.cause });
    this.isRefused = options.isRefused;
  }
}

export interface DialOptions {
  readonly signal: AbortSignal;
  /** A reader of its own: the socket reads from its resume() on. */
  readonly onread?: OnReadOpts | undefined;
  /** The networks that the host is reached in; absent: the public internet. */
  readonly listed?: readonly string[] | undefined;
}

/**
 * Connects to hosts on behalf of one box, from this host. The box must not get at this host, its neighbours or its cloud's services by
 * way of a name that says so: names are resolved here, each time anew, every answer is looked at, and the very answer that was looked at
 * is connected to. Resolution does not use the process's shared threads, which a slow name server would hold up.
 */
export class Dialer implements Disposable {
  readonly #resolver = new Resolver({ timeout: RESOLVE_MS, tries: RESOLVE_TRIES });
  readonly #internet: TestInternet | undefined;

  constructor(internet?: TestInternet) {
    this.#internet = internet;
    if (internet !== undefined) this.#resolver.setServers(internet.nameServers);
  }

  /** A connected socket, half-open at will. */
  async dial(host: string, port: number, { signal, onread, listed }: DialOptions): Promise<Socket> {
    const found = await this.#resolve(host);
    const addresses = listed === undefined ? reachable(found) : reachableOf(listed, found);
    if (addresses.length === 0) {
      const sentence =
        listed === undefined
          ? `${host} resolves to no public address, and no sandbox may reach others`
          : `${host} resolves to no address that is listed with it`;
      throw new DialError(sentence, { isRefused: true });
    }
    signal.throwIfAborted();
    try {
      return await this.#connect(addresses, port, signal, onread);
    } catch (cause) {
      throw new DialError(`${host}:${port} cannot be reached`, { isRefused: false, cause });
    }
  }

  [Symbol.dispose](): void {
    this.#resolver.cancel();
  }

  async #resolve(host: string): Promise<string[]> {
    const questions = [this.#resolver.resolve4(host), ...(this.#asksForIPv6() ? [this.#resolver.resolve6(host)] : [])];
    const answers = await Promise.allSettled(questions);
    const found = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
    if (found.length > 0) return found;
    const failure = answers.find((answer) => answer.status === "rejected");
    throw new DialError(`${host} has no address`, { isRefused: false, cause: failure?.reason });
  }

  #asksForIPv6(): boolean {
    return this.#internet !== undefined || hasIPv6();
  }

  #connect(addresses: readonly string[], port: number, signal: AbortSignal, onread?: OnReadOpts): Promise<Socket> {
    const targets = this.#internet === undefined ? addresses : standIns(addresses, this.#internet);
    const known = targets.map((address) => ({ address, family: isIP(address) }));
    const lookup: LookupFunction = (_host, { all }, callback) => {
      const [first] = known;
      if (first === undefined) callback(new Error("nothing stands for these addresses"), "", 0);
      else if (all) callback(null, known);
      else callback(null, first.address, first.family);
    };
    const { promise, resolve, reject } = Promise.withResolvers<Socket>();
    const socket = connect({
      host: "checked",
      port: this.#internet?.ports[port] ?? port,
      lookup,
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: ADDRESS_MS,
      allowHalfOpen: true,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: PROBE_AFTER_MS,
      ...(onread === undefined ? {} : { onread }),
    });
    if (onread !== undefined) socket.pause();
    const patience = setTimeout(() => reject(new Error("it does not answer")), CONNECT_MS);
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    socket.once("connect", () => resolve(socket)).once("error", reject);
    return promise
      .catch((error) => {
        socket.on("error", () => {}).destroy();
        throw error;
      })
      .finally(() => {
        clearTimeout(patience);
        signal.removeEventListener("abort", onAbort);
        socket.off("error", reject);
      });
  }
}

/**
 * Those of a name's addresses that a box may be connected to: nothing but the public internet, and not this host at its public address
 * either. IPv6 that carries IPv4 (mapped, NAT64, 6to4) is in none of the public ranges.
 */
export function reachable(addresses: readonly string[], ofThisHost: readonly string[] = ownAddresses()): string[] {
  // Two lists: in one, an IPv4 address would be looked for among the ranges of IPv6 too, and ::/3 has them all.
  const forbidden = { 4: rangesOf("ipv4", ofThisHost), 6: rangesOf("ipv6", ofThisHost) };
  return addresses.filter((address) => {
    const version = isIP(address);
    if (version === 4) return !forbidden[4].check(address, "ipv4");
    return version === 6 && !address.includes("%") && !forbidden[6].check(address, "ipv6");
  });
}

/** Those of a name's addresses that its line lists, and never this host's own. */
function reachableOf(listed: readonly string[], addresses: readonly string[]): string[] {
  const own = new BlockList();
  for (const address of ownAddresses()) {
    const bare = address.replace(/%.*/, "");
    own.addAddress(bare, isIP(bare) === 6 ? "ipv6" : "ipv4");
  }
  return addresses.filter(
    (address) => isListed(address, listed) && !own.check(address, isIP(address) === 6 ? "ipv6" : "ipv4"),
  );
}

function rangesOf(family: IpFamily, hostAddresses: readonly string[]): BlockList {
  const ranges = new BlockList();
  for (const range of egressPolicy(family, { hostAddresses, networks: [], resolvers: [] }).forbidden) {
    const [network = "", bits] = range.split("/");
    ranges.addSubnet(network, Number(bits), family);
  }
  return ranges;
}

/** Those of its loopback device too: some have public ones there. */
function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((found) => (found ?? []).map(({ address }) => address));
}

/** Whether asking for such addresses makes sense. */
function hasIPv6(): boolean {
  return ownAddresses().some((address) => /^[23]/.test(address) && isIP(address) === 6);
}

function standIns(addresses: readonly string[], internet: TestInternet): string[] {
  return addresses.flatMap((address) => internet.addresses[address] ?? []);
}

import { domainToASCII } from "node:url";
import { invalid } from "../backend/isolation-error.ts";
import { isPublicRange, isRangeWithin, parseRange } from "./ranges.ts";

/**
 * One line of a sandbox's list. Absent methods or paths mean all of them; present ones mean these alone, and TLS is opened for the
 * host, since nobody can see a method or a path otherwise.
 */
export interface NetworkRule {
  /**
   * Lower case, ASCII, no dot at the end. "*.npmjs.org" is one or more labels below, never the domain itself; "*" is every host, which
   * nobody can list and who learns a list has.
   */
  readonly host: string;
  readonly ports: readonly number[];
  readonly methods?: readonly string[];
  /** From the first slash, without a query; a star is any characters, slashes too. */
  readonly paths?: readonly string[];
  /**
   * Networks as "10.1.0.0/16". The host is reached at addresses in there alone, which may be private ones; without any, at public
   * addresses alone.
   */
  readonly addresses?: readonly string[];
}

export const HTTP_PORT = 80;
export const TLS_PORT = 443;

const USUAL_PORTS: readonly number[] = [TLS_PORT, HTTP_PORT];
const MOST_RULES = 1000;
const KEYS: ReadonlySet<string> = new Set(["host", "ports", "methods", "paths", "addresses"]);

/** "host", "host:22", "host:22,443", each with "@10.1.0.0/16,…" behind it, or an object with the same, methods and paths. */
export function parseNetworkRule(value: unknown): NetworkRule {
  if (typeof value === "string") return fromText(value);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw invalid('a line of the network\'s list is a name ("example.com:443") or an object with a host');
  }
  const { host, ports, methods, paths, addresses, ...others } = value as Readonly<Record<string, unknown>>;
  const unknown = Object.keys(others)[0];
  if (unknown !== undefined) {
    throw invalid(`a line of the network's list has no "${unknown}"`, `it has ${[...KEYS].join(", ")}`);
  }
  if (typeof host !== "string") throw invalid("a line of the network's list needs a host");
  const named = fromText(host);
  if (ports !== undefined && /^[^@]*:/.test(host)) throw invalid(`the ports of ${host} are given twice`);
  if (addresses !== undefined && host.includes("@")) throw invalid(`the addresses of ${host} are given twice`);
  const ranges = addresses === undefined ? named.addresses : rangeList(named.host, addresses);
  return {
    host: named.host,
    ports: ports === undefined ? named.ports : portList(host, ports),
    ...(methods === undefined ? {} : { methods: textList(host, "methods", methods, METHOD) }),
    ...(paths === undefined ? {} : { paths: textList(host, "paths", paths, PATH) }),
    ...(ranges === undefined ? {} : { addresses: ranges }),
  };
}

/** What is compared: lower case, ASCII, without the dot that ends a full name. Nothing for what no host is called. */
export function normalHost(text: string): string | undefined {
  const bare = text.endsWith(".") ? text.slice(0, -1) : text;
  const host = isAscii(bare) ? bare.toLowerCase() : domainToASCII(bare);
  const labels = host.split(".");
  if (host.length > 253 || labels.length < 2 || !labels.every((label) => LABEL.test(label))) return undefined;
  // Whoever reads 1.2.3.4, 0x7f.1 or 127.1 as a host takes it for an address.
  return NUMBER.test(labels.at(-1)!) ? undefined : host;
}

/** What a model can act on; also what the program is told where its protocol can carry it. */
export function refusal(host: string, port?: number): string {
  const what = port === undefined || USUAL_PORTS.includes(port) ? host : `${host}:${port}`;
  return `${what} is not on this sandbox's list; ask your user for --allow ${what}`;
}

/** A sandbox's list, immutable. An empty one allows nothing. */
export class NetworkPolicy {
  readonly rules: readonly NetworkRule[];
  /** All that are listed for any host. */
  readonly ports: readonly number[];
  /** Rules by host, and by what comes after the star. */
  readonly #exact = new Map<string, NetworkRule[]>();
  readonly #below = new Map<string, NetworkRule[]>();

  private constructor(rules: readonly NetworkRule[]) {
    this.rules = rules;
    this.ports = [...new Set(rules.flatMap(({ ports }) => ports))].sort((one, other) => one - other);
    for (const rule of rules) {
      const zone = zoneOf(rule.host);
      const [map, key] = zone === undefined ? [this.#exact, rule.host] : [this.#below, zone];
      const same = map.get(key);
      if (same === undefined) map.set(key, [rule]);
      else same.push(rule);
    }
  }

  static of(rules: readonly NetworkRule[]): NetworkPolicy {
    if (rules.length > MOST_RULES) throw invalid(`a sandbox's list has at most ${MOST_RULES} lines`);
    requireOneWay(rules);
    return new NetworkPolicy([...rules]);
  }

  /** The line that lets a connection through: exact before wildcard, longest wildcard first, one without conditions first. */
  ruleFor(host: string, port: number): NetworkRule | undefined {
    const rules = this.#rulesFor(host, port);
    return rules.find((rule) => !isConditional(rule)) ?? rules[0];
  }

  /** Where a host is reached, if not at public addresses. */
  addressesOf(host: string, port: number): readonly string[] | undefined {
    return this.#rulesFor(host, port)[0]?.addresses;
  }

  /** Whether the name has an address in the sandbox. */
  resolves(host: string): boolean {
    return this.#exact.has(host) || zonesAbove(host).some((zone) => this.#below.has(zone));
  }

  /** Whether the name is on the list by itself and not only below a wildcard. */
  names(host: string): boolean {
    return this.#exact.has(host);
  }

  /** Whether a request may go out, where it can be seen. The target is as it stands in the request line. */
  allows(host: string, port: number, method: string, target: string): boolean {
    return this.#rulesFor(host, port).some(
      ({ methods, paths }) =>
        (methods === undefined || methods.includes(method)) && (paths === undefined || pathMatches(paths, target)),
    );
  }

  /** The lines of this list that the cap does not cover. An operator's list caps what callers may ask for. */
  cappedBy(cap: NetworkPolicy): NetworkRule[] {
    return this.rules.filter((rule) => !rule.ports.every((port) => this.#isCovered(rule, port, cap)));
  }

  #isCovered(rule: NetworkRule, port: number, cap: NetworkPolicy): boolean {
    // A wildcard stands for a name below it that nobody wrote down.
    const covers = cap.#rulesFor(rule.host, port);
    if (!covers.some((one) => isWithin(rule, one))) return false;
    const zone = zoneOf(rule.host);
    if (zone === undefined) return true;
    // What the cap says of names below the wildcard is narrower, unless this list says as much of the same names.
    return cap.rules
      .filter(({ host, ports }) => ports.includes(port) && host !== rule.host && host.endsWith(`.${zone}`))
      .every((below) => isWithin(rule, below) || this.rules.some(({ host }) => host === below.host));
  }

  #rulesFor(host: string, port: number): readonly NetworkRule[] {
    const listing = (rules: readonly NetworkRule[] | undefined) =>
      rules?.filter(({ ports }) => ports.includes(port)) ?? [];
    const exact = listing(this.#exact.get(host));
    if (exact.length > 0) return exact;
    for (const zone of zonesAbove(host)) {
      const found = listing(this.#below.get(zone));
      if (found.length > 0) return found;
    }
    return [];
  }
}

/** Whether the line can only be held to by seeing requests. */
export function isConditional({ methods, paths }: NetworkRule): boolean {
  return methods !== undefined || paths !== undefined;
}

const LABEL = /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/;
const NUMBER = /^(?:\d+|0x[0-9a-f]*)$/;
const METHOD = { form: /^[A-Z]{1,20}$/, example: "GET" };
const PATH = { form: /^\/[\x21-\x22\x24-\x3e\x40-\x5b\x5d-\x7e]{0,1023}$/, example: "/v1/*" };

function fromText(text: string): NetworkRule {
  const shown = JSON.stringify(text.slice(0, 300));
  if (/^[^@]*[/\s?#]/.test(text) || text.startsWith("@"))
    throw invalid(`${shown} is no name of a host`, 'write "example.com" or "example.com:443"');
  const [place = "", ranges] = text.split(/@(.*)/s);
  if (ranges !== undefined) {
    const rule = fromText(place);
    return { ...rule, addresses: rangeList(rule.host, ranges.split(",")) };
  }
  const [name = "", listed, ...more] = text.split(":");
  if (more.length > 0) throw invalid(`${shown} is no name of a host`, "addresses are not listed, names are");
  const zone = name.startsWith("*.") ? name.slice(2) : undefined;
  const host = normalHost(zone ?? name);
  if (host === undefined) {
    if (name.includes("*")) {
      throw invalid(`${shown} is too wide or no wildcard`, 'write "*.example.com": a star, a dot and a full domain');
    }
    throw invalid(`${shown} is no full name of a host`, "addresses are not listed, names are");
  }
  return {
    host: zone === undefined ? host : `*.${host}`,
    ports: listed === undefined ? USUAL_PORTS : portList(text, listed.split(",").map(portNumber)),
  };
}

function portNumber(text: string): number {
  return /^[1-9]\d{0,4}$/.test(text) ? Number(text) : Number.NaN;
}

function portList(host: string, value: unknown): readonly number[] {
  const isPort = (port: unknown) => Number.isInteger(port) && (port as number) > 0 && (port as number) < 65536;
  if (!Array.isArray(value) || value.length === 0 || value.length > 100 || !value.every(isPort)) {
    throw invalid(`the ports of ${host.slice(0, 300)} are numbers from 1 to 65535`);
  }
  if (value.includes(NAME_PORT))
    throw invalid(
      `port ${NAME_PORT} of ${host.slice(0, 300)} cannot be listed`,
      "names are resolved by the sandbox itself",
    );
  return [...new Set(value as number[])];
}

const NAME_PORT = 53;

function textList(
  host: string,
  what: string,
  value: unknown,
  { form, example }: { readonly form: RegExp; readonly example: string },
): readonly string[] {
  const isRight = (item: unknown) => typeof item === "string" && form.test(item);
  if (!Array.isArray(value) || value.length === 0 || value.length > 100 || !value.every(isRight)) {
    throw invalid(`the ${what} of ${host.slice(0, 300)} are a list like ["${example}"]`);
  }
  return [...new Set(value as string[])];
}

function isAscii(text: string): boolean {
  return /^[\x00-\x7f]*$/.test(text);
}

/** Whether one of the names is the host's, or a wildcard above it. */
export function covers(names: readonly string[], host: string): boolean {
  return names.some((name) => (name.startsWith("*.") ? host.endsWith(name.slice(1)) : host === name));
}

function zoneOf(host: string): string | undefined {
  if (host === "*") return "";
  return host.startsWith("*.") ? host.slice(2) : undefined;
}

/** The domains that a name, or a wildcard's unwritten name, is below, nearest first; that of all names at last. */
function zonesAbove(host: string): string[] {
  const labels = host.split(".");
  const zones = labels.slice(1).map((_, index) => labels.slice(index + 1).join("."));
  return normalHost(host) === host ? [...zones, ""] : zones;
}

/**
 * Servers disagree about dots, doubled slashes and what is encoded, so a target with any of them is on no list of paths. A star
 * matches by walking, never by an expression that somebody could make slow.
 */
function pathMatches(paths: readonly string[], target: string): boolean {
  const path = target.split("?", 1)[0]!;
  const [last = "", ...before] = path.slice(1).split("/").reverse();
  if (!PATH_IN_ONE_READING.test(path) || [last, ...before].some(isDots) || before.includes("")) return false;
  return paths.some((pattern) => globMatches(pattern, path));
}

const PATH_IN_ONE_READING =
  /^\/(?:[\x21-\x22\x24\x26-\x3a\x3c-\x3e\x40-\x5b\x5d-\x7e]|%(?!2[ef]|5c|00|25|3b)[0-9a-f]{2})*$/i;

function isDots(segment: string): boolean {
  return segment === "." || segment === "..";
}

function globMatches(pattern: string, path: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  if (rest.length === 0) return path === pattern;
  const last = rest.pop()!;
  if (!path.startsWith(first) || path.length < first.length + last.length || !path.endsWith(last)) return false;
  const end = path.length - last.length;
  let at = first.length;
  for (const piece of rest) {
    const found = path.indexOf(piece, at);
    if (found === -1 || found + piece.length > end) return false;
    at = found + piece.length;
  }
  return true;
}

/** Whether all that one line allows, of methods and paths, the other does too. */
function isWithin(rule: NetworkRule, cover: NetworkRule): boolean {
  const methods = cover.methods === undefined || rule.methods?.every((method) => cover.methods!.includes(method));
  const paths =
    cover.paths === undefined || rule.paths?.every((path) => cover.paths!.some((one) => globMatches(one, path)));
  return methods === true && paths === true && reachesNoMore(rule, cover);
}

function reachesNoMore(rule: NetworkRule, cover: NetworkRule): boolean {
  if (cover.addresses === undefined) return !reachesPrivate(rule);
  return rule.addresses?.every((range) => isRangeWithin(range, cover.addresses!)) === true;
}

/** Whether the line lets a name be of a network that is not public. */
export function reachesPrivate({ addresses = [] }: Pick<NetworkRule, "addresses">): boolean {
  return !addresses.every(isPublicRange);
}

function rangeList(host: string, value: unknown): readonly string[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > 100) {
    throw invalid(`the addresses of ${host} are a list like ["10.1.0.0/16"]`);
  }
  return [...new Set(value.map((range) => parseRange(host, range)))];
}

/** Two lines of one host may differ in what they let through, not in where it is. */
function requireOneWay(rules: readonly NetworkRule[]): void {
  const ways = new Map<string, string>();
  for (const { host, addresses = [] } of rules) {
    const way = [...addresses].sort().join();
    if ((ways.get(host) ?? way) !== way) throw invalid(`two lines of the list differ in the addresses of ${host}`);
    ways.set(host, way);
  }
}

import { BrowserError } from "../../errors.ts";

// A pattern for URLs:  scheme "://" host [":" port] [path]
//
//   scheme   http, https, file, or * for http and https. Each covers its WebSockets: http ws, https wss.
//   host     a name or address; *.example.com is example.com and all below; * is every host. Absent for file.
//   port     a number; absent: every port
//   path     as the URL parser writes it, where * and ** are any characters; absent: every path
//
// Both sides are parsed before they are compared: case, punycode, default ports, dots at the end of a name, "..", and
// addresses written in hexadecimal, octal or as one number are what they mean. User names and queries do not count.

const SYNTAX = /^(\*|[a-z]+):\/\/(\*|\*\.[^/:*]+|\[[^/\]*]+\]|[^/:*[\]]*)(?::(\d{1,5}))?(\/.*)?$/i;

/** The scheme that rules speak of, for each that a browser uses on the network. */
const RULED_AS: Readonly<Record<string, string>> = {
  "ws:": "http",
  "wss:": "https",
  "http:": "http",
  "https:": "https",
};
const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: "80", https: "443" };

type HostPattern =
  | { readonly kind: "any" }
  | { readonly kind: "below"; readonly name: string }
  | { readonly kind: "exactly"; readonly name: string };

/** What of a pattern is about connections. */
export interface ConnectionPattern {
  readonly scheme: string;
  readonly host: HostPattern;
  readonly port: string | undefined;
}

export class UrlPattern {
  readonly text: string;
  readonly connection: ConnectionPattern;
  readonly #path: string;

  constructor(text: string) {
    const [, scheme = "", host = "", port, path] = SYNTAX.exec(text) ?? unreadable(text);
    const isFile = scheme.toLowerCase() === "file";
    if (!isFile && !["*", "http", "https"].includes(scheme.toLowerCase())) unreadable(text);
    if ((host === "") !== isFile || (isFile && port !== undefined) || Number(port ?? 0) > 0xffff) unreadable(text);
    this.text = text;
    this.connection = {
      scheme: scheme.toLowerCase(),
      host: hostPattern(host, text),
      port: port === undefined ? undefined : String(Number(port)),
    };
    this.#path = path === undefined ? "*" : normalPath(path);
  }

  /** It says nothing about paths. */
  get coversWholeHosts(): boolean {
    return /^\/?\*+$/.test(this.#path);
  }

  /** It names one host and not a family of them. */
  get namesHost(): boolean {
    return this.connection.host.kind === "exactly";
  }

  matches(url: URL): boolean {
    const scheme = url.protocol === "file:" ? "file" : RULED_AS[url.protocol];
    if (scheme === undefined) return false;
    const port = url.port === "" ? (DEFAULT_PORTS[scheme] ?? "") : url.port;
    return this.#matchesPlace(scheme, hostOf(url), port) && matchesGlob(this.#path, url.pathname);
  }

  /** Some URL at this host and port is meant; its scheme and path are not known. */
  mayMatch(host: string, port: string): boolean {
    return ["http", "https"].some((scheme) => this.#matchesPlace(scheme, host, port));
  }

  #matchesPlace(scheme: string, host: string, port: string): boolean {
    const wanted = this.connection;
    const isScheme = wanted.scheme === "*" ? scheme !== "file" : wanted.scheme === scheme;
    return isScheme && matchesHost(wanted.host, host) && (wanted.port === undefined || wanted.port === port);
  }
}

/** Without the dot that makes a name absolute: it leads to the same machine. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/\.$/, "");
}

function hostPattern(host: string, text: string): HostPattern {
  if (host === "*") return { kind: "any" };
  if (host.startsWith("*.")) return { kind: "below", name: normalHost(host.slice(2), text) };
  return { kind: "exactly", name: host === "" ? "" : normalHost(host, text) };
}

function normalHost(host: string, text: string): string {
  const url = URL.parse(`http://${host}/`);
  if (url === null || url.username !== "" || url.hostname === "") return unreadable(text);
  return hostOf(url);
}

function normalPath(path: string): string {
  return new URL(`http://host${path.replaceAll("?", "%3F").replaceAll("#", "%23")}`).pathname;
}

function matchesHost(pattern: HostPattern, host: string): boolean {
  switch (pattern.kind) {
    case "any":
      return true;
    case "below":
      return host === pattern.name || host.endsWith(`.${pattern.name}`);
    case "exactly":
      return host === pattern.name;
  }
}

/**
 * Stars match anything. Goes back to the last star only, so that no text takes longer than the product of both
 * lengths.
 */
function matchesGlob(glob: string, text: string): boolean {
  let [g, t] = [0, 0];
  let star = -1;
  let resume = 0;
  while (t < text.length) {
    if (glob[g] === "*") {
      star = g++;
      resume = t;
    } else if (glob[g] === text[t]) {
      g++;
      t++;
    } else if (star === -1) return false;
    else {
      g = star + 1;
      t = ++resume;
    }
  }
  while (glob[g] === "*") g++;
  return g === glob.length;
}

function unreadable(text: string): never {
  throw new BrowserError("INVALID_ACTION", `this is no pattern for URLs: ${JSON.stringify(text)}`, {
    hint: 'one looks like "https://*.example.com/**", "http://127.0.0.1:8080" or "file:///workspace/docs/**"',
  });
}

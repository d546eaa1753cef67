/** Where a PostgreSQL database is, and how it is reached: what an URL says about it. */
export interface PostgresPlace {
  /** A name or an address, or the directory of the server's socket. */
  readonly host: string;
  readonly port: number;
  readonly database: string;
  /** "": who runs the process. */
  readonly user: string;
  /** "": PGPASSWORD, or none. */
  readonly password: string;
  readonly tls: PostgresTls;
}

/** As `sslmode` says it, and files in PEM, "" for none. */
interface PostgresTls {
  readonly mode: (typeof TLS_MODES)[number];
  readonly rootCertificates: string;
  readonly certificate: string;
  readonly key: string;
}

// Without `allow` and `prefer`: whoever stands between could have both talk in the clear.
const TLS_MODES = ["disable", "require", "verify-ca", "verify-full"] as const;
const PARAMETERS = ["host", "user", "sslmode", "sslrootcert", "sslcert", "sslkey"] as const;
const SCHEME = /^postgres(?:ql)?:\/\//;

function isPostgresUrl(text: string): boolean {
  return SCHEME.test(text);
}

/** Throws with what is wrong, in words that have no password. */
export function parsePostgresUrl(text: string): PostgresPlace {
  if (!isPostgresUrl(text)) throw new Error("it must begin with postgres://");
  if (!URL.canParse(text)) throw new Error("it is no URL (what is special in a password must be written as %40 for @)");
  const url = new URL(text);
  const given = new Map<string, string>();
  for (const [name, value] of url.searchParams) {
    if (!(PARAMETERS as readonly string[]).includes(name)) {
      throw new Error(`it has a parameter that is not known: ${printable(name)} (there are ${PARAMETERS.join(", ")})`);
    }
    if (given.has(name)) throw new Error(`it has the parameter ${name} twice`);
    given.set(name, value);
  }
  if (url.hash !== "") throw new Error("it has a #, which must be written as %23");
  const {
    host: hostParameter = "",
    user = "",
    sslmode,
    sslrootcert = "",
    sslcert = "",
    sslkey = "",
  } = Object.fromEntries(given);
  const host = hostParameter || decoded(url.hostname).replace(/^\[(.*)\]$/, "$1");
  const database = decoded(url.pathname.slice(1));
  if (host === "") throw new Error("it names no host (for a socket: postgres:///DATABASE?host=/run/postgresql)");
  if (host.includes(",")) throw new Error("it names several hosts; give one, which leads to the primary");
  if (database === "" || database.includes("/"))
    throw new Error("it names no database, as postgres://host/DATABASE does");
  const mode = sslmode ?? (isOnThisMachine(host) ? "disable" : "verify-full");
  if (!isMode(mode)) throw new Error(`sslmode must be one of ${TLS_MODES.join(", ")}`);
  if ((sslcert === "") !== (sslkey === "")) throw new Error("sslcert and sslkey go together");
  return {
    host,
    port: url.port === "" ? 5432 : Number(url.port),
    database,
    user: user || decoded(url.username),
    password: decoded(url.password),
    tls: { mode, rootCertificates: sslrootcert, certificate: sslcert, key: sslkey },
  };
}

/** The URL for logs and people, whatever is wrong with it. */
export function withoutPassword(text: string): string {
  const [, scheme = "", rest = ""] = /^(\w*:?\/\/)?(.*)$/s.exec(text) ?? [];
  const end = rest.lastIndexOf("@");
  const name = /^[^:]*/.exec(rest)?.[0] ?? "";
  const user = end === -1 ? "" : name.length < end ? `${name}:***@` : `${name.slice(0, end)}@`;
  return scheme + user + rest.slice(end + 1).replace(/(password=)[^&]*/gi, "$1***");
}

function isOnThisMachine(host: string): boolean {
  return host.startsWith("/") || host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

function isMode(text: string): text is PostgresTls["mode"] {
  return (TLS_MODES as readonly string[]).includes(text);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error("it has a % that stands for nothing, which must be written as %25");
  }
}

function printable(text: string): string {
  return JSON.stringify(text.slice(0, 40));
}

import { lstat, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import { createSecureContext, getCACertificates, type SecureContext } from "node:tls";
import type { TrustFiles } from "../backend/backend.ts";
import { certificatesIn, javaTrustStore, type SandboxAuthority } from "./certificates.ts";

/** Where distributions keep the certificates of all programs: Debian, Alpine and Arch; Fedora; SUSE; OpenSSL's own place. */
const BUNDLES = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/var/lib/ca-certificates/ca-bundle.pem",
  "/etc/ssl/cert.pem",
  "/etc/pki/tls/cert.pem",
];
/** And those of Java. */
const JAVA_STORES = [
  "/etc/ssl/certs/java/cacerts",
  "/etc/pki/ca-trust/extracted/java/cacerts",
  "/etc/pki/java/cacerts",
  "/var/lib/ca-certificates/java-cacerts",
];

/** Every box has it, whatever its system; variables name files there. */
const OWN = "/run/agentfense";
const OWN_FILES = {
  authority: `${OWN}/ca.pem`,
  bundle: `${OWN}/ca-bundle.pem`,
  java: `${OWN}/cacerts`,
} satisfies Record<keyof TrustFiles, string>;

/** Reads the host's certificates once; a server whose host gets others is restarted. */
export class HostCertificates {
  readonly #bundle: Promise<string>;
  readonly #certificates: Promise<readonly Buffer[]>;

  constructor(root = "/") {
    const tree = treeBelow(root);
    this.#bundle = firstBundle(tree, BUNDLES);
    this.#certificates = this.#bundle.then(certificatesIn);
  }

  async with(authority: SandboxAuthority): Promise<TrustFiles> {
    return trustFiles(await this.#bundle, [...(await this.#certificates), authority.certificate], authority.pem);
  }
}

/** The same for a system with certificates of its own, which its programs go on to believe. */
export function trustFilesWith(bundle: string, { authority }: TrustFiles): TrustFiles {
  const pem = Buffer.from(authority).toString();
  return trustFiles(bundle, certificatesIn(`${bundle}\n${pem}`), pem);
}

function trustFiles(bundle: string, certificates: readonly Buffer[], authority: string): TrustFiles {
  return {
    authority: Buffer.from(authority),
    bundle: Buffer.from(`${bundle}${bundle === "" || bundle.endsWith("\n") ? "" : "\n"}${authority}`),
    java: javaTrustStore(certificates),
  };
}

/** A system's files, on this host or in an image. */
export interface FileTree {
  /** Undefined: nothing is there, or what is neither of these. A link's target is as it is written. */
  entry(path: string): Promise<{ readonly kind: "file" | "directory" } | LinkEntry | undefined>;
  /** The text of a regular file, whole; "" where it cannot be had. */
  read(path: string): Promise<string>;
}

interface LinkEntry {
  readonly kind: "link";
  readonly target: string;
}

export function treeBelow(root: string): FileTree {
  return {
    entry: async (path) => {
      const entry = await lstat(join(root, path)).catch(() => undefined);
      if (entry?.isSymbolicLink()) return { kind: "link", target: await readlink(join(root, path)) };
      if (entry?.isFile()) return { kind: "file" };
      return entry?.isDirectory() ? { kind: "directory" } : undefined;
    },
    read: (path) => readFile(join(root, path), "utf8").catch(() => ""),
  };
}

/** Where a system keeps what its programs believe: regular files, without links on the way. */
export interface TrustStores {
  readonly bundles: readonly string[];
  readonly java: readonly string[];
}

/** A file that a link leads to is found itself, for no mount can stand on a link. `more` are places that only this system has. */
export async function findTrustStores(
  tree: FileTree,
  shown: (path: string) => boolean,
  more: TrustStores = { bundles: [], java: [] },
): Promise<TrustStores> {
  const found = async (paths: readonly string[]): Promise<string[]> => {
    const files = await Promise.all(paths.map((path) => fileAt(tree, path)));
    return [...new Set(files.filter((path) => path !== undefined && shown(path)))] as string[];
  };
  return { bundles: await found([...more.bundles, ...BUNDLES]), java: await found([...more.java, ...JAVA_STORES]) };
}

/** How a box is made to believe an authority: contents for paths, in place of what its system has there, and variables. */
export interface TrustPlan {
  readonly files: Readonly<Record<string, Uint8Array>>;
  /** Under those that the box's user wants: who has certificates of their own keeps them. */
  readonly env: Readonly<Record<string, string>>;
}

/** Files are laid over those that are there, since variables do not reach every child and not every program reads them. */
export function trustPlan(trust: TrustFiles, stores: TrustStores): TrustPlan {
  return {
    files: Object.fromEntries([
      ...Object.entries(OWN_FILES).map(([which, path]) => [path, trust[which as keyof TrustFiles]]),
      ...stores.bundles.map((path) => [path, trust.bundle]),
      ...stores.java.map((path) => [path, trust.java]),
    ]),
    env: trustVariables({ hasJavaStore: stores.java.length > 0 }),
  };
}

/** Java has no variable for it but one that it announces each time it starts, so that a store that is laid over its own is better. */
function trustVariables({ hasJavaStore }: { readonly hasJavaStore: boolean }): Record<string, string> {
  const { authority, bundle, java } = OWN_FILES;
  return {
    NODE_EXTRA_CA_CERTS: authority,
    DENO_CERT: authority,
    SSL_CERT_FILE: bundle,
    NIX_SSL_CERT_FILE: bundle,
    REQUESTS_CA_BUNDLE: bundle,
    CURL_CA_BUNDLE: bundle,
    GIT_SSL_CAINFO: bundle,
    PIP_CERT: bundle,
    CARGO_HTTP_CAINFO: bundle,
    AWS_CA_BUNDLE: bundle,
    CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE: bundle,
    ...(hasJavaStore ? {} : { JAVA_TOOL_OPTIONS: `-Djavax.net.ssl.trustStore=${java}` }),
  };
}

/** The first of these files that has certificates. */
export async function firstBundle(tree: FileTree, paths: readonly string[]): Promise<string> {
  for (const path of paths) {
    const text = await tree.read(path);
    if (text.includes("-----BEGIN CERTIFICATE-----")) return text;
  }
  return "";
}

const MOST_LINKS = 16;

/** The regular file that a path of a tree means, with no link left in it; links stay in the tree, as they do in the box. */
async function fileAt(tree: FileTree, path: string): Promise<string | undefined> {
  let rest = path.split("/").filter((part) => part !== "");
  let at: string[] = [];
  for (let links = 0; rest.length > 0; ) {
    const [part = "", ...more] = rest;
    rest = more;
    if (part === "..") {
      at = at.slice(0, -1);
      continue;
    }
    if (part === ".") continue;
    const here = [...at, part];
    const entry = await tree.entry(`/${here.join("/")}`);
    if (entry?.kind === "link") {
      if (++links > MOST_LINKS) return undefined;
      if (entry.target.startsWith("/")) at = [];
      rest = [...entry.target.split("/").filter((one) => one !== ""), ...rest];
    } else if (entry?.kind === (rest.length === 0 ? "file" : "directory")) at = here;
    else return undefined;
  }
  return at.length === 0 ? undefined : `/${at.join("/")}`;
}

/**
 * Whom this host trusts: its own store, as programs outside of the box would use it, or the one that comes with Node where there is
 * none, and what the operator added to either.
 */
export function hostTrust(more: readonly string[] = []): SecureContext {
  const system = getCACertificates("system");
  const store = system.length > 0 ? system : getCACertificates("bundled");
  return createSecureContext({ ca: [...store, ...getCACertificates("extra"), ...more], minVersion: "TLSv1.2" });
}

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
    this.#bundle = firstOf(BUNDLES.map((path) => join(root, path)));
    this.#certificates = this.#bundle.then(certificatesIn);
  }

  async with(authority: SandboxAuthority): Promise<TrustFiles> {
    const bundle = await this.#bundle;
    return {
      authority: Buffer.from(authority.pem),
      bundle: Buffer.from(`${bundle}${bundle === "" || bundle.endsWith("\n") ? "" : "\n"}${authority.pem}`),
      java: javaTrustStore([...(await this.#certificates), authority.certificate]),
    };
  }
}

/** How a box is made to believe an authority: contents for paths, in place of what its system has there, and variables. */
export interface TrustPlan {
  readonly files: Readonly<Record<string, Uint8Array>>;
  /** Under those that the box's user wants: who has certificates of their own keeps them. */
  readonly env: Readonly<Record<string, string>>;
}

/**
 * For a system whose files are below `root`. Files are laid over those that are there, since variables do not reach every child
 * and not every program reads them; a file that a link leads to is covered itself, for no mount can stand on a link.
 */
export async function trustPlan(trust: TrustFiles, root: string, shown: (path: string) => boolean): Promise<TrustPlan> {
  const covered = async (paths: readonly string[]): Promise<string[]> => {
    const found = await Promise.all(paths.map((path) => fileAt(root, path)));
    return [...new Set(found.filter((path) => path !== undefined && shown(path)))] as string[];
  };
  const bundles = await covered(BUNDLES);
  const javaStores = await covered(JAVA_STORES);
  return {
    files: Object.fromEntries([
      ...Object.entries(OWN_FILES).map(([which, path]) => [path, trust[which as keyof TrustFiles]]),
      ...bundles.map((path) => [path, trust.bundle]),
      ...javaStores.map((path) => [path, trust.java]),
    ]),
    env: trustVariables({ hasJavaStore: javaStores.length > 0 }),
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

async function firstOf(paths: readonly string[]): Promise<string> {
  for (const path of paths) {
    const text = await readFile(path, "utf8").catch(() => "");
    if (text.includes("-----BEGIN CERTIFICATE-----")) return text;
  }
  return "";
}

const MOST_LINKS = 16;

/** The regular file that a path below a root means, with no link left in it; links stay below the root, as they do in the box. */
async function fileAt(root: string, path: string): Promise<string | undefined> {
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
    const entry = await lstat(join(root, ...here)).catch(() => undefined);
    if (entry === undefined) return undefined;
    if (entry.isSymbolicLink()) {
      if (++links > MOST_LINKS) return undefined;
      const target = await readlink(join(root, ...here));
      if (target.startsWith("/")) at = [];
      rest = [...target.split("/").filter((one) => one !== ""), ...rest];
    } else if (rest.length === 0 ? entry.isFile() : entry.isDirectory()) at = here;
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

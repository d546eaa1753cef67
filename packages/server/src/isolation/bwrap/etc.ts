import { readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import type { Account, NetworkMode } from "../backend/backend.ts";
import { INSIDE } from "./identity.ts";

/** Files of the box's /etc by path, with their contents. */
export type EtcFiles = Readonly<Record<string, string | Uint8Array>>;

/** What of the host's /etc a box shows: where shared libraries and alternatives are, certificates, names of ports. */
export interface HostEtc {
  readonly files: EtcFiles;
  /** Shown read-only at the same path. */
  readonly directories: readonly string[];
  readonly links: readonly { readonly target: string; readonly path: string }[];
}

/** The users of a box: root and nobody have names so that files of theirs have owners. */
export function accountFiles(shell: string, { name, home }: Account = INSIDE): EtcFiles {
  const { uid, gid } = INSIDE;
  return {
    "/etc/passwd": [
      "root:x:0:0:root:/root:/usr/sbin/nologin",
      `${name}:x:${uid}:${gid}:${name}:${home}:${shell}`,
      "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin",
      "",
    ].join("\n"),
    "/etc/group": ["root:x:0:", "tty:x:5:", `${name}:x:${gid}:`, "nogroup:x:65534:", ""].join("\n"),
  };
}

export function nameFiles(hostname: string, network: NetworkMode, resolver: string): EtcFiles {
  return {
    ...(network === "none" ? {} : { "/etc/resolv.conf": resolver }),
    "/etc/hosts": `127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 ${hostname}\n`,
    "/etc/hostname": `${hostname}\n`,
    "/etc/nsswitch.conf": [
      "passwd: files",
      "group: files",
      `hosts: ${network === "none" ? "files" : "files dns"}`,
      "protocols: files",
      "services: files",
      "",
    ].join("\n"),
  };
}

const COPIED = ["ld.so.cache", "services", "protocols"];
// Whole directories without secrets: private keys live in /etc/ssl/private, which is not shown.
const SHOWN = ["alternatives", "ssl/certs", "pki/tls/certs", "pki/ca-trust/extracted"];
// Programs that do not run without their part of /etc.
const SHOWN_BY_NAME = /^(java-\d+-.*|maven)$/;

/** Reads the host's /etc once; each mount and each copy is paid for by every box, so only what tools miss is here. */
export async function readHostEtc(etc = "/etc"): Promise<HostEtc> {
  const files: Record<string, string | Uint8Array> = {};
  for (const name of COPIED) {
    const content = await readFile(join(etc, name)).catch(() => undefined);
    if (content !== undefined) files[`/etc/${name}`] = content;
  }
  const configuration = await libraryConfiguration(join(etc, "ld.so.conf"));
  if (configuration !== "") files["/etc/ld.so.conf"] = configuration;
  const openssl = await readFile(join(etc, "ssl/openssl.cnf")).catch(() => undefined);
  if (openssl !== undefined) files["/etc/ssl/openssl.cnf"] = openssl;
  return { files, directories: await shownDirectories(etc), links: await links(etc) };
}

async function shownDirectories(etc: string): Promise<string[]> {
  const names = await readdir(etc).catch(() => []);
  const wanted = [...SHOWN, ...names.filter((name) => SHOWN_BY_NAME.test(name))];
  const filled: string[] = [];
  for (const name of wanted) {
    const entries = await readdir(join(etc, name)).catch(() => []);
    if (entries.length > 0) filled.push(`/etc/${name}`);
  }
  return filled;
}

/** ld.so.conf with what it includes put in its place, so that one file is enough. */
async function libraryConfiguration(path: string): Promise<string> {
  const text = await readFile(path, "utf8").catch(() => "");
  const lines: string[] = [];
  for (const line of text.split("\n")) {
    const pattern = /^\s*include\s+(\/\S+)\/\*\.conf\s*$/.exec(line)?.[1];
    if (pattern === undefined) lines.push(line);
    else lines.push(...(await included(pattern)));
  }
  return lines.join("\n");
}

async function included(directory: string): Promise<string[]> {
  const names = (await readdir(directory).catch(() => [])).filter((name) => name.endsWith(".conf")).sort();
  return Promise.all(names.map((name) => readFile(join(directory, name), "utf8").catch(() => "")));
}

async function links(etc: string): Promise<{ target: string; path: string }[]> {
  const zone = await readlink(join(etc, "localtime")).catch(() => "");
  return [
    ...(/^(\/|\.\.\/)usr\/share\/zoneinfo\//.test(zone) ? [{ target: zone, path: "/etc/localtime" }] : []),
    { target: "../usr/lib/os-release", path: "/etc/os-release" },
    { target: "/proc/self/mounts", path: "/etc/mtab" },
  ];
}

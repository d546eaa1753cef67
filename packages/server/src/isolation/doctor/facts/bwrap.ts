import { access, realpath } from "node:fs/promises";
import { findProgram } from "../../backend/find-program.ts";
import type { BwrapFacts, NamespaceFacts } from "./facts.ts";
import { readNumber } from "./host.ts";
import { runProgram } from "./programs.ts";

export async function readBwrap(): Promise<BwrapFacts | undefined> {
  const path = await findProgram("bwrap");
  if (path === undefined) return undefined;
  const { stdout } = await runProgram(path, ["--version"]);
  const [, version] = /^bubblewrap (\S+)/.exec(stdout) ?? [];
  return { path, version, package: await owningPackage(await realpath(path)) };
}

/** The package a file came with: a bwrap somebody built by hand has nothing of the packaged one's patches. */
async function owningPackage(path: string): Promise<BwrapFacts["package"]> {
  const dpkg = await findProgram("dpkg-query");
  if (dpkg !== undefined) {
    const { code, stdout } = await runProgram(dpkg, ["--search", path]);
    const [name = ""] = stdout.split(":");
    const shown = code === 0 ? await runProgram(dpkg, ["--show", name]) : undefined;
    const [, version] = shown?.stdout.trim().split("\t") ?? [];
    if (version !== undefined) return { kind: "dpkg", version };
  }
  const rpm = await findProgram("rpm");
  if (rpm !== undefined) {
    const { code, stdout } = await runProgram(rpm, [
      "--query",
      "--queryformat",
      "%{VERSION}-%{RELEASE}",
      "--file",
      path,
    ]);
    if (code === 0) return { kind: "rpm", version: stdout.trim() };
  }
  return undefined;
}

const RESTRICTION = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
const PROFILES = ["/etc/apparmor.d/bwrap-userns-restrict", "/etc/apparmor.d/bwrap"];
const SPARE_PROFILES = ["/usr/share/apparmor/extra-profiles/bwrap-userns-restrict"];

/** `identity`: whom boxes run as, when that is not this process' own user. */
export async function readNamespaces(
  bwrap: string | undefined,
  identity: { readonly uid?: number; readonly gid?: number },
): Promise<NamespaceFacts> {
  const clone = await readNumber("/proc/sys/kernel/unprivileged_userns_clone");
  return {
    attempt: bwrap === undefined ? undefined : await tryBox(bwrap, identity),
    maxUserNamespaces: await readNumber("/proc/sys/user/max_user_namespaces"),
    unprivilegedClone: clone === undefined ? undefined : clone !== 0,
    apparmor: {
      restricted: (await readNumber(RESTRICTION)) === 1,
      profile: await firstPresent(PROFILES),
      spareProfile: await firstPresent(SPARE_PROFILES),
    },
  };
}

/** The smallest box that needs of the kernel what a real one needs. */
const PROBE = [
  "--unshare-all",
  "--die-with-parent",
  "--ro-bind",
  "/",
  "/",
  "--proc",
  "/proc",
  "--dev",
  "/dev",
  "--",
  "true",
];

async function tryBox(
  bwrap: string,
  identity: { readonly uid?: number; readonly gid?: number },
): Promise<NamespaceFacts["attempt"]> {
  const { code, stderr } = await runProgram(bwrap, PROBE, identity);
  if (code === 0) return { works: true };
  const [line = ""] = stderr.trim().split("\n");
  return { works: false, message: line || `bwrap ended with ${code ?? "a signal"}` };
}

async function firstPresent(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) {
    const present = await access(path).then(
      () => true,
      () => false,
    );
    if (present) return path;
  }
  return undefined;
}

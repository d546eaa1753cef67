import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { open, readFile, realpath, stat } from "node:fs/promises";
import { release } from "node:os";
import { json } from "node:stream/consumers";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { findProgram, isAccessible } from "../backend/find-program.ts";
import { openLimitHost } from "../limits/open-limit-host.ts";

/** What the doctor looks at, as values: read by the functions of this folder, judged by those of `judgement/`. */
export interface HostFacts {
  readonly nodeVersion: string;
  /** "x64", "arm64" … */
  readonly architecture: string;
  readonly kernelRelease: string;
  readonly isRoot: boolean;
  /** `absent`, or the error with which it cannot be opened. */
  readonly fuseDevice: "usable" | "absent" | { readonly error: string };
  readonly fusermount: { readonly path: string; readonly setuid: boolean } | undefined;
  /** Whether the kernel was built with it; undefined where the configuration is not to be found. */
  readonly passthroughBuilt: boolean | undefined;
  readonly seccompActions: readonly string[];
  readonly bwrap: BwrapFacts | undefined;
  readonly namespaces: NamespaceFacts;
  readonly limits: { readonly kind: string; readonly degradations: readonly string[] } | { readonly error: string };
  readonly perl: string | undefined;
  readonly setpriv: string | undefined;
  readonly networkHelpers: readonly string[];
  readonly docker: DockerFacts;
}

export interface BwrapFacts {
  readonly path: string;
  /** "0.8.0"; undefined when it does not say. */
  readonly version: string | undefined;
  /** The distribution's package that brought this very file. */
  readonly package: { readonly kind: "dpkg" | "rpm"; readonly version: string } | undefined;
}

export interface NamespaceFacts {
  /** A box with every namespace of its own was really made, or what was said instead. Undefined without bwrap. */
  readonly attempt: { readonly works: true } | { readonly works: false; readonly message: string } | undefined;
  readonly maxUserNamespaces: number | undefined;
  /** Debian's older switch; undefined on kernels that do not have it. */
  readonly unprivilegedClone: boolean | undefined;
  readonly apparmor: {
    /** kernel.apparmor_restrict_unprivileged_userns is 1. */
    readonly restricted: boolean;
    /** A profile for bwrap that is set up. */
    readonly profile: string | undefined;
    /** A profile for bwrap that the distribution brings along but does not set up. */
    readonly spareProfile: string | undefined;
  };
}

export type DockerFacts =
  | {
      readonly reachable: true;
      readonly socket: string;
      readonly version: string;
      readonly runtimes: readonly string[];
      readonly cgroupDriver: string;
      readonly cgroupVersion: string;
    }
  | { readonly reachable: false; readonly socket: string; readonly error: string };

/** What a private network needs, and the package it comes in. */
export const NETWORK_HELPERS = { pasta: "passt", nsenter: "util-linux", "iptables-restore": "iptables" } as const;

/** Whom root's boxes belong to does not matter for trying one, as long as it is not root. */
const NOBODY = { uid: 65_534, gid: 65_534 };

/** Reads all of it. Changes nothing; takes a second at most where all is well. */
export async function readHost(): Promise<HostFacts> {
  const isRoot = process.geteuid?.() === 0;
  const kernelRelease = release();
  const bwrap = await readBwrap();
  return {
    nodeVersion: process.versions.node,
    architecture: process.arch,
    kernelRelease,
    isRoot,
    fuseDevice: await readFuseDevice(),
    fusermount: await readFusermount(),
    passthroughBuilt: await readPassthroughBuilt(kernelRelease),
    seccompActions: await readSeccompActions(),
    bwrap,
    namespaces: await readNamespaces(bwrap?.path, isRoot ? NOBODY : {}),
    limits: await readLimits(),
    perl: await findProgram("perl"),
    setpriv: await findProgram("setpriv"),
    networkHelpers: await installed(Object.keys(NETWORK_HELPERS)),
    docker: await readDocker(process.env),
  };
}

async function installed(names: readonly string[]): Promise<string[]> {
  const paths = await Promise.all(names.map((name) => findProgram(name)));
  return names.filter((_, index) => paths[index] !== undefined);
}

export async function readFuseDevice(): Promise<HostFacts["fuseDevice"]> {
  try {
    const device = await open("/dev/fuse", constants.O_RDWR);
    await device.close();
    return "usable";
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "unknown";
    return code === "ENOENT" ? "absent" : { error: code };
  }
}

const SETUID = 0o4000;

async function readFusermount(): Promise<HostFacts["fusermount"]> {
  const path = await findProgram("fusermount3");
  if (path === undefined) return undefined;
  const entry = await stat(path);
  return { path, setuid: entry.uid === 0 && (entry.mode & SETUID) !== 0 };
}

/** From the kernel's configuration, where the distribution leaves it to be read. */
async function readPassthroughBuilt(kernelRelease: string): Promise<boolean | undefined> {
  const text =
    (await readText(`/boot/config-${kernelRelease}`)) ??
    (await readFile("/proc/config.gz").then(
      async (packed) => (await promisify(gunzip)(packed)).toString("latin1"),
      () => undefined,
    ));
  return text === undefined ? undefined : /^CONFIG_FUSE_PASSTHROUGH=y$/m.test(text);
}

async function readSeccompActions(): Promise<readonly string[]> {
  return ((await readText("/proc/sys/kernel/seccomp/actions_avail")) ?? "").trim().split(" ").filter(Boolean);
}

/** A number the kernel shows in a file; undefined where it does not. */
async function readNumber(path: string): Promise<number | undefined> {
  const text = await readText(path);
  return text === undefined ? undefined : Number(text);
}

async function readText(path: string): Promise<string | undefined> {
  return await readFile(path, "latin1").catch(() => undefined);
}

async function readBwrap(): Promise<BwrapFacts | undefined> {
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
    const query = ["--query", "--queryformat", "%{VERSION}-%{RELEASE}", "--file", path];
    const { code, stdout } = await runProgram(rpm, query);
    if (code === 0) return { kind: "rpm", version: stdout.trim() };
  }
  return undefined;
}

const RESTRICTION = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
const PROFILES = ["/etc/apparmor.d/bwrap-userns-restrict", "/etc/apparmor.d/bwrap"];
const SPARE_PROFILES = ["/usr/share/apparmor/extra-profiles/bwrap-userns-restrict"];

/** `identity`: whom boxes run as, when that is not this process' own user. */
async function readNamespaces(bwrap: string | undefined, identity: Identity): Promise<NamespaceFacts> {
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
const PROBE = "--unshare-all --die-with-parent --ro-bind / / --proc /proc --dev /dev -- true".split(" ");

async function tryBox(bwrap: string, identity: Identity): Promise<NamespaceFacts["attempt"]> {
  const { code, stderr } = await runProgram(bwrap, PROBE, identity);
  if (code === 0) return { works: true };
  const [line = ""] = stderr.trim().split("\n");
  return { works: false, message: line || `bwrap ended with ${code ?? "a signal"}` };
}

async function firstPresent(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) {
    if (await isAccessible(path)) return path;
  }
  return undefined;
}

const ENGINE_MS = 3_000;

/** Asks this user's engine who it is: the one DOCKER_HOST names, else the usual one. */
async function readDocker(environment: NodeJS.ProcessEnv): Promise<DockerFacts> {
  const host = environment.DOCKER_HOST || "unix:///var/run/docker.sock";
  const [, socket] = /^unix:\/\/(.+)$/.exec(host) ?? [];
  // Workspaces are mounts of this machine; an engine elsewhere does not see them.
  if (socket === undefined) return { reachable: false, socket: host, error: "on another machine" };
  try {
    const version = (await ask(socket, "/version")) as { Version?: string };
    const info = (await ask(socket, "/info")) as {
      Runtimes?: Record<string, unknown>;
      CgroupDriver?: string;
      CgroupVersion?: string;
    };
    return {
      reachable: true,
      socket,
      version: version.Version ?? "of an unknown version",
      runtimes: Object.keys(info.Runtimes ?? {}).sort(),
      cgroupDriver: info.CgroupDriver ?? "unknown",
      cgroupVersion: info.CgroupVersion ?? "1",
    };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return { reachable: false, socket, error: code ?? message };
  }
}

async function ask(socketPath: string, path: string): Promise<unknown> {
  // Not above: every program that mounts loads this module for its words, and HTTP takes longer to load than all of that.
  const { request } = await import("node:http");
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const asked = request({ socketPath, path, signal: AbortSignal.timeout(ENGINE_MS) }, (response) => {
    if (response.statusCode === 200) json(response).then(resolve, reject);
    else reject(new Error(`it answers ${response.statusCode} to ${path}`));
  });
  asked.on("error", reject);
  asked.end();
  return await promise;
}

/** How limits would be enforced here: asked of the part that enforces them, which leaves nothing behind. */
async function readLimits(): Promise<HostFacts["limits"]> {
  try {
    const host = await openLimitHost({ instance: randomBytes(8).toString("hex"), log: () => {} });
    const { kind, degradations } = host;
    await host.close();
    return { kind, degradations };
  } catch (error) {
    return { error: (error as Error).message };
  }
}

interface ProgramResult {
  /** Undefined: it did not start, or did not end in time. */
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

const PROGRAM_MS = 5_000;

type Identity = { readonly uid?: number; readonly gid?: number };

/** Runs a short program to its end and never fails. */
function runProgram(path: string, args: readonly string[], identity: Identity = {}): Promise<ProgramResult> {
  return new Promise((resolve) => {
    const options = {
      ...identity,
      timeout: PROGRAM_MS,
      killSignal: "SIGKILL",
      cwd: "/",
      env: { LC_ALL: "C" },
    } as const;
    try {
      const child = execFile(path, args, options, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : (child.exitCode ?? undefined), stdout, stderr });
      });
    } catch (error) {
      resolve({ code: undefined, stdout: "", stderr: (error as Error).message });
    }
  });
}

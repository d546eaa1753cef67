import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { existsSync, openSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { writeImage } from "./docker-image.ts";
import { aWhile, eventually, withoutHanging } from "./eventually.ts";

export interface DockerEngine {
  readonly socketPath: string;
  /** An image the engine has: a shell or four, coreutils, python3, git. */
  readonly image: string;
  /** The name of an OCI runtime that is not the engine's default; it is runc again, which is sure to work. */
  readonly otherRuntime: string;
  /** Runs the docker command line against this engine. */
  docker(...args: string[]): Promise<string>;
}

/** One that ends with whoever started it. */
export interface OwnDockerEngine extends DockerEngine, AsyncDisposable {
  /** Where it has everything. */
  readonly place: string;
  stop(): Promise<void>;
}

const IMAGE = "agentfense-test:latest";
const OTHER_RUNTIME = "runc-by-another-name";
const TOOLS = [
  "/usr/sbin/dockerd",
  "/usr/bin/docker",
  "/usr/bin/docker-init",
  "/usr/sbin/runc",
  "/usr/bin/unshare",
  "/sbin/ip",
];

/** Why no engine can be started here; undefined when one can. */
export function reasonAgainstDocker(): string | undefined {
  if (process.getuid?.() !== 0) return "an engine of one's own needs root";
  const missing = TOOLS.filter((path) => !existsSync(path));
  return missing.length === 0 ? undefined : `not installed: ${missing.join(", ")}`;
}

/**
 * A Docker engine in about two seconds: its own directory, its own socket, a parent control group and a network namespace
 * of its own, so that its bridge and its packet filter rules are nobody else's and go away with it. Most test files share
 * that of the run, see docker-of-run.ts; those that end it, count its images or run containers of their own have one.
 */
export async function startDockerEngine(): Promise<OwnDockerEngine> {
  const reason = reasonAgainstDocker();
  if (reason !== undefined) throw new Error(reason);
  const place = await mkdtemp(join(tmpdir(), "agentfense-docker-"));
  const engine = new PrivateEngine(place);
  try {
    const image = writeImage(join(place, "image.tar"));
    await engine.start();
    await image;
    await engine.docker("import", join(place, "image.tar"), IMAGE);
    await rm(join(place, "image.tar"));
    return engine;
  } catch (error) {
    const log = await readFile(join(place, "log"), "utf8").catch(() => "");
    await engine.stop();
    throw new Error(`the engine did not start: ${log.slice(-2000)}`, { cause: error });
  }
}

/** An engine that somebody has started. */
export class RunningEngine implements DockerEngine {
  readonly place: string;
  readonly socketPath: string;
  readonly image = IMAGE;
  readonly otherRuntime = OTHER_RUNTIME;

  constructor(place: string) {
    this.place = place;
    this.socketPath = join(place, "socket");
  }

  async docker(...args: string[]): Promise<string> {
    const { stdout } = await promisify(execFile)("docker", ["-H", `unix://${this.socketPath}`, ...args]);
    return stdout;
  }
}

class PrivateEngine extends RunningEngine implements OwnDockerEngine {
  readonly #controlGroup: string;
  #daemon: ChildProcess | undefined;

  constructor(place: string) {
    super(place);
    this.#controlGroup = basename(place);
  }

  async start(): Promise<void> {
    const config = join(this.place, "daemon.json");
    await writeFile(config, JSON.stringify(this.#configuration()));
    const log = openSync(join(this.place, "log"), "a");
    const script = 'ip link set lo up; exec dockerd --config-file "$0"';
    this.#daemon = spawn("unshare", ["--net", "--", "sh", "-c", script, config], { stdio: ["ignore", log, log] });
    const daemon = this.#daemon;
    await eventually(async () => daemon.exitCode !== null || (await this.#answers()));
    if (daemon.exitCode !== null) throw new Error("dockerd exited");
  }

  async stop(): Promise<void> {
    const left = await this.docker("ps", "-aq").catch(() => "");
    const ids = left.split("\n").filter((id) => id !== "");
    if (ids.length > 0) await this.docker("rm", "-f", ...ids).catch(() => {});
    await this.#endDaemon();
    await this.#endStrays();
    this.#unmountAll();
    this.#removeControlGroups();
    await rm(this.place, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #configuration(): object {
    return {
      "data-root": join(this.place, "data"),
      "exec-root": join(this.place, "exec"),
      pidfile: join(this.place, "pid"),
      hosts: [`unix://${this.socketPath}`],
      "cgroup-parent": `/${this.#controlGroup}`,
      runtimes: { [OTHER_RUNTIME]: { path: "/usr/sbin/runc" } },
    };
  }

  #answers(): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const ping = request({ socketPath: this.socketPath, path: "/_ping", agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    ping.on("error", () => resolve(false));
    ping.end();
    return promise;
  }

  async #endDaemon(): Promise<void> {
    const daemon = this.#daemon;
    if (daemon === undefined || daemon.exitCode !== null || daemon.signalCode !== null) return;
    const exited = new Promise((resolve) => daemon.once("exit", resolve));
    daemon.kill("SIGTERM");
    await withoutHanging(() => exited).catch(() => daemon.kill("SIGKILL"));
    await exited;
  }

  /** Shims and the like that a daemon which was killed left behind: whoever was started with a path in our directory. */
  async #endStrays(): Promise<void> {
    for (let strays = this.#strays(); strays.length > 0; strays = this.#strays()) {
      for (const pid of strays) process.kill(pid, "SIGKILL");
      await aWhile(50);
    }
  }

  #strays(): number[] {
    const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && name !== String(process.pid));
    return pids.filter((pid) => readIfThere(`/proc/${pid}/cmdline`).includes(`${this.place}/`)).map(Number);
  }

  #unmountAll(): void {
    const mounts = readFileSync("/proc/self/mounts", "utf8")
      .split("\n")
      .map((line) => line.split(" ")[1] ?? "");
    for (const mount of mounts.filter((path) => path.startsWith(`${this.place}/`)).reverse()) {
      execFileSync("umount", ["-l", mount], { stdio: "pipe" });
    }
  }

  #removeControlGroups(): void {
    const roots = ["/sys/fs/cgroup", ...readdirSync("/sys/fs/cgroup").map((name) => `/sys/fs/cgroup/${name}`)];
    for (const group of roots.map((root) => join(root, this.#controlGroup)).filter((path) => existsSync(path))) {
      for (const entry of readdirSync(group, { withFileTypes: true })) {
        if (entry.isDirectory()) rmdirSync(join(group, entry.name));
      }
      rmdirSync(group);
    }
  }
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { chown, mkdir, readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { SandboxClient } from "@agentfense/sdk";
import { describe, expect, onTestFinished, test } from "vitest";
import { eventually } from "../../../../test/support/eventually.ts";
import { identityOf } from "../../../../test/support/identity.ts";
import { PrivateHome, readPrivateConfiguration } from "../../src/serve/private.ts";
import { agentfense, scratch, start } from "../run-cli.ts";

const CLI = join(import.meta.dirname, "../../src/cli.ts");

const isRoot = process.getuid?.() === 0;
if (!isRoot) process.stdout.write("skipped (private servers): only root can give a directory to another user\n");

/** A private server that keeps its directories below one of the test. */
async function startPrivate(more: Readonly<Record<string, string>> = {}) {
  const home = await scratch();
  const env = { TMPDIR: home, XDG_RUNTIME_DIR: "", ...more };
  const child = start(["serve", "--private", "--runtime", "mock"], { env, holdsInput: true });
  const exited = once(child, "exit") as Promise<[number | null, string | null]>;
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  const stderr = text(child.stderr!);
  return { child, home, endpoint: await endpointOf(child, stderr), exited, stderr };
}

async function endpointOf(child: ChildProcess, stderr: Promise<string>): Promise<string> {
  const { value, done } = await createInterface({ input: child.stdout! })[Symbol.asyncIterator]().next();
  if (done) throw new Error(`serve ended before it listened: ${await stderr}`);
  const [, endpoint] = /^agentfense: gRPC on (unix:\/\S+\/grpc\.sock), no REST$/.exec(value) ?? [];
  if (endpoint === undefined) throw new Error(`not the line of a private server: ${value}`);
  return endpoint;
}

function directoryOf(endpoint: string): string {
  return dirname(endpoint.replace(/^unix:/, ""));
}

describe("serve --private", () => {
  test("answers at a socket in a directory of this user alone, and leaves nothing when its input ends", async () => {
    const server = await startPrivate({ AGENTFENSE_SERVER_GRPC_ADDR: ":0", AGENTFENSE_CONFIG: "/nowhere" });
    const directory = directoryOf(server.endpoint);
    expect((await stat(directory)).mode & 0o777).toBe(0o700);
    expect(dirname(directory)).toBe(server.home);
    const created = await agentfense(["codebase", "create", "demo", "--json", "--endpoint", server.endpoint]);
    expect(created).toMatchObject({ code: 0, stderr: "" });

    server.child.stdin!.end();
    expect(await server.exited).toEqual([0, null]);
    expect(await readdir(server.home)).toEqual([]);
  });

  test("leaves nothing after a signal either", async () => {
    const server = await startPrivate();
    server.child.kill("SIGTERM");
    expect(await server.exited).toEqual([0, null]);
    expect(await readdir(server.home)).toEqual([]);
  });

  test("has none of the limits that keep clients apart, but those that were asked for", async () => {
    const set = ["sandbox.max_per_user=3"];
    const environment = { AGENTFENSE_LIMITS_SESSIONS_PER_SANDBOX: "5" };
    await using home = await PrivateHome.create({});
    const { sandbox, limits, runtime } = home.configuration(await readPrivateConfiguration({ set }, environment));
    expect({
      sandboxes: sandbox.max_per_user,
      sessions: limits.sessions_per_sandbox,
      calls: limits.concurrent_calls,
      networks: runtime.networks,
      runtimes: runtime.types,
      times: [runtime.default_timeout, runtime.max_timeout],
    }).toEqual({
      sandboxes: 3,
      sessions: 5,
      calls: 0,
      networks: ["none", "filtered", "private"],
      runtimes: ["bwrap", "docker"],
      times: [0, 0],
    });
  });

  test("has docker for sandboxes that name it, and says what the environment would have to say for a network", async () => {
    const server = await startPrivate({ DOCKER_HOST: "unix:///nowhere/docker.sock" });
    await using client = new SandboxClient({ endpoint: server.endpoint });
    const { id: codebaseId } = await client.createCodebase({ name: "project", ownerId: "me" });
    const container = await client.createSandbox({ codebaseId, runtime: "docker" });
    await expect(client.startSandbox(container.id)).rejects.toMatchObject({
      code: "RUNTIME_UNAVAILABLE",
      message: expect.stringContaining("no Docker engine answers"),
    });
    await expect(client.createSandbox({ codebaseId, network: "host" })).rejects.toMatchObject({
      message: "the network mode host is not enabled on the private server",
      hint: "set AGENTFENSE_RUNTIME_NETWORKS=none,filtered,private,host before it starts",
    });
  });

  test("leaves no process, mount or directory when the program that started it is killed", async () => {
    const home = await scratch();
    // It dies with all its ends of the pipes at once.
    const script = `
      const { spawn } = require("node:child_process");
      const child = spawn(process.execPath, process.argv.slice(1), { stdio: ["pipe", "pipe", "pipe"] });
      child.stdout.once("data", (line) => process.stdout.write(child.pid + " " + line));
    `;
    const program = spawn(process.execPath, ["-e", script, CLI, "serve", "--private"], {
      env: { ...process.env, TMPDIR: home, XDG_RUNTIME_DIR: "" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => void program.kill("SIGKILL"));
    const [line] = await once(program.stdout, "data");
    const [, pid = "", endpoint = ""] = /^(\d+) .*(unix:\S+grpc\.sock)/.exec(String(line)) ?? [];
    await using client = new SandboxClient({ endpoint });
    const { id: codebaseId } = await client.createCodebase({ name: "demo", ownerId: "tester" });
    const { id } = await client.createSandbox({ codebaseId, preset: "full-access" });
    await client.startSandbox(id);
    const command = `sleep ${1_000_000 + process.pid}`;
    const lost = expect(client.exec(id, command)).rejects.toMatchObject({ name: "ConnectionError" });
    await eventually(() => expect(processesThatRun(command)).toHaveLength(1));
    const instance = instanceOf(pid);
    expect(readFileSync("/proc/self/mounts", "utf8")).toContain(instance);

    program.kill("SIGKILL");
    await lost;
    await eventually(() => expect(existsSync(`/proc/${pid}`)).toBe(false));
    expect(readFileSync("/proc/self/mounts", "utf8")).not.toContain(instance);
    expect(existsSync(instance)).toBe(false);
    expect(processesThatRun(command)).toEqual([]);
    expect(await readdir(home)).toEqual([]);
  });

  test("has its socket in the user's runtime directory if there is one", async () => {
    const runtime = await scratch();
    const server = await startPrivate({ XDG_RUNTIME_DIR: runtime });
    expect(dirname(directoryOf(server.endpoint))).toBe(runtime);
    server.child.stdin!.end();
    expect(await server.exited).toEqual([0, null]);
    expect(await readdir(runtime)).toEqual([]);
  });

  test("finds a shorter place for its socket when that for temporary files is too deep", async () => {
    const deep = join(await scratch(), "d".repeat(80));
    await mkdir(deep);
    const server = await startPrivate({ TMPDIR: deep });
    expect(dirname(directoryOf(server.endpoint))).toBe("/tmp");
    server.child.stdin!.end();
    expect(await server.exited).toEqual([0, null]);
    expect(existsSync(directoryOf(server.endpoint))).toBe(false);
  });

  test.skipIf(!isRoot)("puts no socket where another user could put another", async () => {
    const theirs = await scratch();
    const { uid, gid } = identityOf("user");
    await chown(theirs, uid, gid);
    const server = await startPrivate({ TMPDIR: theirs, XDG_RUNTIME_DIR: theirs });
    expect(dirname(directoryOf(server.endpoint))).toBe("/tmp");
    server.child.stdin!.end();
    expect(await server.exited).toEqual([0, null]);
  });

  test("ends by itself when it cannot start, although its input goes on", async () => {
    const child = start(["serve", "--private"], { env: { TMPDIR: "/nowhere" }, holdsInput: true });
    const [stderr, [code]] = await Promise.all([text(child.stderr!), once(child, "exit")]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^agentfense: the server has no place: ENOENT.*\/nowhere/);
  });

  test.each(["/dev/null", "/dev/ptmx"])("refuses %s as its input", async (path) => {
    const fd = openSync(path, "r");
    onTestFinished(() => closeSync(fd));
    const child = spawn(process.execPath, [CLI, "serve", "--private"], { stdio: [fd, "ignore", "pipe"] });
    const [stderr, [code]] = await Promise.all([text(child.stderr!), once(child, "exit")]);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringContaining("standard input must be a pipe or a socket"),
    });
  });

  test.each([
    [{ "grpc-addr": "127.0.0.1:0" }, "server.grpc_addr itself: leave out --grpc-addr"],
    [{ "db-path": "/x" }, "storage.db_path itself: leave out --db-path"],
    [{ set: ["auth.keys=required"] }, "auth.keys itself: leave out --set auth.keys"],
  ])("refuses %j", async (values, message) => {
    await expect(readPrivateConfiguration(values, {})).rejects.toThrow(`a private server decides ${message}`);
  });
});

/** The directory of its mount points, by the lock that it holds there. */
function instanceOf(pid: string): string {
  const files = readdirSync(`/proc/${pid}/fd`).map((fd) => targetOf(`/proc/${pid}/fd/${fd}`));
  const lock = files.find((file) => /\/[0-9a-f]{16}\/lock$/.test(file));
  if (lock === undefined) throw new Error("the server holds no lock");
  return dirname(lock);
}

function targetOf(link: string): string {
  try {
    return readlinkSync(link);
  } catch {
    return ""; // closed in the meantime
  }
}

function processesThatRun(command: string): string[] {
  return readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      return readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ").trim() === command;
    } catch {
      return false; // ended in the meantime
    }
  });
}

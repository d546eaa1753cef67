import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { request } from "node:http";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { SandboxClient } from "@agentfense/sdk";
import {
  AuthenticationError,
  CommandExitError,
  FileNotFoundError,
  InvalidArgumentError,
  Sandbox,
  SandboxError,
  SandboxNotFoundError,
  TimeoutError,
} from "e2b";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { GuardedServer } from "../support/owners.ts";
import { CLI } from "../support/server.ts";

// The clients as npm and PyPI have them, against `agentfense serve` with keys.

const opened = new AsyncDisposableStack();
let guarded: GuardedServer;
let base: string;
let sandbox: Sandbox;
/** Of Alice. */
let connection: { readonly apiKey: string; readonly apiUrl: string; readonly sandboxUrl: string };

beforeAll(async () => {
  guarded = opened.use(
    await GuardedServer.start({
      settings: {
        e2b: {
          addr: "127.0.0.1:0",
          templates: { project: { codebase: "project", preset: "agent-safe" }, small: SMALL },
        },
      },
    }),
  );
  base = `${guarded.server.http}/e2b`;
  connection = { apiKey: guarded.alice.key, apiUrl: base, sandboxUrl: base };
  sandbox = await Sandbox.create({
    ...connection,
    metadata: { suite: "e2b", odd: "a b&c=d/é" },
    envs: { GREETING: "hi" },
  });
});
afterAll(() => opened.disposeAsync());

const SMALL = { permissions: [{ pattern: "**", permission: "write" }], resources: { memory_bytes: "256MiB" } };

const stranger = () => ({ ...connection, apiKey: guarded.mallory.key });

describe("sandboxes", () => {
  test("is made of the template base: a home that is the workspace, with the variables it was given", async () => {
    const { stdout } = await sandbox.commands.run("pwd; echo $HOME $USER $GREETING; touch ~/seen; ls /workspace");
    expect(stdout).toBe("/home/user\n/home/user user hi\nseen\n");
    await sandbox.files.remove("seen");
  });

  test("DOOR-03 its user is called user, and has no other rights as root", async () => {
    expect((await sandbox.commands.run("whoami; id -un; echo ~; echo ~user")).stdout).toBe(
      "user\nuser\n/home/user\n/home/user\n",
    );
    const asRoot = await sandbox.commands.run("touch /usr/x", { user: "root" }).catch((reason: unknown) => reason);
    expect(asRoot).toMatchObject({ exitCode: 1 });
  });

  test("tells about itself", async () => {
    const info = await sandbox.getInfo();
    expect(info).toMatchObject({
      sandboxId: sandbox.sandboxId,
      templateId: "base",
      state: "running",
      metadata: { suite: "e2b", odd: "a b&c=d/é" },
      envdVersion: "0.6.13",
    });
    expect(info.endAt.getTime() - info.startedAt.getTime()).toBeGreaterThan(200_000);
    expect(await sandbox.isRunning()).toBe(true);
    expect(sandbox.getHost(3000)).toBe(
      `3000-${sandbox.sandboxId}.${new URL(base).host.replace("127.0.0.1", "localhost")}`,
    );
    expect(await sandbox.getMetrics()).toMatchObject([{ cpuCount: expect.any(Number), memUsed: expect.any(Number) }]);
  });

  test("is listed by its metadata, in pages, newest first", async () => {
    const others: Sandbox[] = [];
    for (const name of ["one", "two"]) {
      others.push(await Sandbox.create({ ...connection, metadata: { page: "yes", name } }));
    }
    const ids = (found: readonly { readonly sandboxId: string }[]) => found.map(({ sandboxId }) => sandboxId);
    const odd = Sandbox.list({ ...connection, query: { metadata: { odd: "a b&c=d/é" } } });
    expect(ids(await odd.nextItems())).toEqual([sandbox.sandboxId]);
    const pages = Sandbox.list({ ...connection, query: { metadata: { page: "yes" } }, limit: 1 });
    const found = [...ids(await pages.nextItems()), pages.hasNext, ...ids(await pages.nextItems()), pages.hasNext];
    expect(found).toEqual([others[1]!.sandboxId, true, others[0]!.sandboxId, false]);
    expect(await Sandbox.list({ ...connection, query: { metadata: { page: "no" } } }).nextItems()).toEqual([]);
    for (const other of others) expect(await other.kill()).toBe(true);
  });

  test("its time can be made shorter and longer, and connecting only makes it longer", async () => {
    const end = async () => (await sandbox.getInfo()).endAt.getTime();
    const first = await end();
    await sandbox.setTimeout(1_200_000);
    const later = await end();
    await sandbox.setTimeout(120_000);
    const sooner = await end();
    expect([first < later, sooner < first]).toEqual([true, true]);
    await Sandbox.connect(sandbox.sandboxId, { ...connection, timeoutMs: 10_000 });
    expect(await end()).toBe(sooner);
    await sandbox.setTimeout(3_600_000);
  });

  test("holds still when it is paused, with its processes, and goes on when it is connected to", async () => {
    const other = await Sandbox.create(connection);
    const counting = await other.commands.run("for i in $(seq 3); do read line; echo $line; done", {
      background: true,
      stdin: true,
    });
    expect(await other.pause()).toBe(true);
    expect(await other.pause()).toBe(false);
    expect(await other.isRunning()).toBe(false);
    expect((await other.getInfo()).state).toBe("paused");
    await expect(other.commands.run("true")).rejects.toThrow(SandboxNotFoundError);
    const again = await Sandbox.connect(other.sandboxId, connection);
    expect(await again.isRunning()).toBe(true);
    for (const line of ["a", "b", "c"]) await again.commands.sendStdin(counting.pid, `${line}\n`);
    const ended = async () => await again.commands.list();
    await eventually(async () => expect(await ended()).toEqual([]));
    expect(await again.kill()).toBe(true);
  });

  test("is gone when it was killed, and when its time is up", async () => {
    const other = await Sandbox.create({ ...connection, timeoutMs: 3_600_000 });
    expect(await Sandbox.kill(other.sandboxId, connection)).toBe(true);
    expect(await other.kill()).toBe(false);
    expect(await other.isRunning()).toBe(false);
    await expect(other.commands.run("true")).rejects.toThrow(SandboxNotFoundError);
    await expect(other.files.read("a")).rejects.toThrow(TimeoutError);
    await expect(Sandbox.connect(other.sandboxId, connection)).rejects.toThrow(SandboxNotFoundError);
    const short = await Sandbox.create({ ...connection, timeoutMs: 1_000 });
    await eventually(async () => expect(await short.isRunning()).toBe(false));
  });

  test("DOOR-05 what is not offered, unknown, or could not be enforced is refused in words", async () => {
    await expect(Sandbox.create("no-such-template", connection)).rejects.toThrow(
      /template 'no-such-template' not found/,
    );
    await expect(sandbox.createSnapshot()).rejects.toThrow(/501.*not offered/);
    const deny = Sandbox.create({ ...connection, network: { denyOut: ["10.0.0.0/8"] } });
    await expect(deny).rejects.toThrow(/denyOut of 10.0.0.0\/8 cannot be enforced/);
    const closed = await Sandbox.create({ ...connection, allowInternetAccess: false });
    expect(await closed.kill()).toBe(true);
  });
});

describe("commands", () => {
  test("their outputs come apart and as they are printed, with bytes of characters that were cut", async () => {
    const seen: string[] = [];
    const script = "printf '\\303'; sleep 0.05; printf '\\244\\n'; echo err >&2";
    const result = await sandbox.commands.run(script, { onStdout: (text) => void seen.push(text) });
    expect(result).toMatchObject({ exitCode: 0, stdout: "ä\n", stderr: "err\n" });
    expect(seen.join("")).toBe("ä\n");
  });

  test("a code that is not 0 is an error with all that was printed", async () => {
    const error = await sandbox.commands.run("echo out; echo err >&2; exit 3").catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(CommandExitError);
    expect(error).toMatchObject({ exitCode: 3, stdout: "out\n", stderr: "err\n", error: "exit status 3" });
    expect(await sandbox.commands.run("exit 137").catch((reason: unknown) => reason)).toMatchObject({ exitCode: 137 });
  });

  test("takes a directory, variables and a user, and says what is wrong with these", async () => {
    await sandbox.files.makeDir("work/deep");
    const run = (options: object) => sandbox.commands.run('echo "$PWD|$A|$USER"', options);
    expect((await run({ cwd: "work/deep", envs: { A: "it's $HOME" } })).stdout).toBe(
      "/home/user/work/deep|it's $HOME|user\n",
    );
    expect((await run({ cwd: "/tmp", user: "root" })).stdout).toBe("/tmp||root\n");
    await expect(run({ cwd: "/nowhere" })).rejects.toThrow(InvalidArgumentError);
    await expect(run({ user: "nobody-here" })).rejects.toThrow(AuthenticationError);
  });

  test("one in the background is listed, written to, connected to, and ends", async () => {
    const script = "echo ready; while read line; do echo got $line; done; echo end";
    const handle = await sandbox.commands.run(script, { background: true, stdin: true });
    const [listed] = await sandbox.commands.list();
    expect(listed).toMatchObject({ pid: handle.pid, cmd: "/bin/bash", args: ["-l", "-c", script] });
    await eventually(() => expect(handle.stdout).toBe("ready\n"));
    const other = await sandbox.commands.connect(handle.pid);
    await sandbox.commands.sendStdin(handle.pid, "one\n");
    await eventually(() => expect(other.stdout).toBe("got one\n"));
    await sandbox.commands.closeStdin(handle.pid);
    expect(await handle.wait()).toMatchObject({ exitCode: 0, stdout: "ready\ngot one\nend\n" });
    expect(await other.wait()).toMatchObject({ exitCode: 0, stdout: "got one\nend\n" });
    expect(await sandbox.commands.list()).toEqual([]);
    await expect(sandbox.commands.sendStdin(9999, "x")).rejects.toThrow(/not found|no process/);
  });

  test("one that is killed says so, once; one that is left goes on; one whose time is up is killed", async () => {
    const handle = await sandbox.commands.run("sleep 1000", { background: true });
    expect(await handle.kill()).toBe(true);
    expect(await handle.wait().catch((reason: unknown) => reason)).toMatchObject({
      exitCode: -1,
      error: "signal: killed",
    });
    expect(await sandbox.commands.kill(handle.pid)).toBe(false);
    const left = await sandbox.commands.run("sleep 1000", { background: true });
    await left.disconnect();
    expect((await sandbox.commands.list()).map(({ pid }) => pid)).toEqual([left.pid]);
    expect(await sandbox.commands.kill(left.pid)).toBe(true);
    await expect(sandbox.commands.run("sleep 1000", { timeoutMs: 500 })).rejects.toThrow(TimeoutError);
    await eventually(async () => expect(await sandbox.commands.list()).toEqual([]));
  });

  test("a terminal takes input and another size", async () => {
    let output = "";
    const terminal = await sandbox.pty.create({
      ...{ cols: 80, rows: 24, envs: { PS1: "$ " } },
      onData: (data) => {
        output += new TextDecoder().decode(data);
      },
    });
    const type = (text: string) => sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode(text));
    await sandbox.pty.resize(terminal.pid, { cols: 101, rows: 33 });
    await type("stty size; echo $((6 * 7))\n");
    await eventually(() => expect(output).toMatch(/33 101[\s\S]*42/));
    await type("exit 5\n");
    expect(await terminal.wait().catch((reason: unknown) => reason)).toMatchObject({ exitCode: 5 });
  });
});

describe("files", () => {
  test("are written with the directories on the way, and read in every format", async () => {
    expect(await sandbox.files.write("docs/new/ä b.txt", "text")).toMatchObject({
      path: "/home/user/docs/new/ä b.txt",
      type: "file",
    });
    expect(await sandbox.files.read("/workspace/docs/new/ä b.txt")).toBe("text");
    const bytes = randomBytes(100_000);
    await sandbox.files.write(
      "bytes",
      bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer,
    );
    expect(Buffer.from(await sandbox.files.read("bytes", { format: "bytes" })).equals(bytes)).toBe(true);
    expect((await sandbox.files.read("bytes", { format: "blob" })).size).toBe(100_000);
    const pieces: Uint8Array[] = [];
    for await (const piece of (await sandbox.files.read("bytes", {
      format: "stream",
    })) as unknown as AsyncIterable<Uint8Array>) {
      pieces.push(piece);
    }
    expect(Buffer.concat(pieces).equals(bytes)).toBe(true);
    await sandbox.files.write("empty", "");
    expect(await sandbox.files.read("empty")).toBe("");
  });

  test("several are written at once, by their paths", async () => {
    const written = await sandbox.files.write([
      { path: "many/a/one.txt", data: "1" },
      { path: "/home/user/many/two.txt", data: new Blob(["2"]) },
      { path: "/tmp/three.txt", data: "3" },
    ]);
    expect(written.map(({ path }) => path)).toEqual([
      "/home/user/many/a/one.txt",
      "/home/user/many/two.txt",
      "/tmp/three.txt",
    ]);
    expect(await Promise.all(written.map(({ path }) => sandbox.files.read(path)))).toEqual(["1", "2", "3"]);
  });

  test.each(["tree", "/tmp/tree"])("%s is made, listed, moved and removed", async (root) => {
    const at = root.startsWith("/") ? root : `/home/user/${root}`;
    expect([await sandbox.files.makeDir(`${root}/a/b`), await sandbox.files.makeDir(`${root}/a/b`)]).toEqual([
      true,
      false,
    ]);
    await sandbox.files.write(`${root}/a/f.txt`, "12345");
    await sandbox.commands.run(`ln -s f.txt ${at}/a/link`);
    const names = (entries: readonly { readonly path: string }[]) => entries.map(({ path }) => path).sort();
    expect(names(await sandbox.files.list(root))).toEqual([`${at}/a`]);
    expect(names(await sandbox.files.list(root, { depth: 2 }))).toEqual([
      `${at}/a`,
      `${at}/a/b`,
      `${at}/a/f.txt`,
      `${at}/a/link`,
    ]);
    expect(await sandbox.files.getInfo(`${root}/a/f.txt`)).toMatchObject({
      ...{ name: "f.txt", path: `${at}/a/f.txt`, type: "file", size: 5, permissions: "-rw-r--r--" },
    });
    expect(await sandbox.files.getInfo(`${root}/a/link`)).toMatchObject({ symlinkTarget: "f.txt" });
    expect(await sandbox.files.rename(`${root}/a/f.txt`, `${root}/c/g.txt`)).toMatchObject({ path: `${at}/c/g.txt` });
    expect([await sandbox.files.exists(`${root}/a/f.txt`), await sandbox.files.exists(`${root}/c/g.txt`)]).toEqual([
      false,
      true,
    ]);
    await expect(sandbox.files.list(`${root}/c/g.txt`)).rejects.toThrow(InvalidArgumentError);
    await expect(sandbox.files.makeDir(`${root}/c/g.txt`)).rejects.toThrow(InvalidArgumentError);
    await sandbox.files.remove(root);
    expect(await sandbox.files.exists(root)).toBe(false);
    await sandbox.files.remove(root);
    await expect(sandbox.files.list(root)).rejects.toThrow(FileNotFoundError);
    await expect(sandbox.files.getInfo(root)).rejects.toThrow(FileNotFoundError);
    await expect(sandbox.files.read(`${root}/x`)).rejects.toThrow(FileNotFoundError);
  });

  test("a directory is no file, and what the box keeps is refused", async () => {
    await sandbox.files.makeDir("folder");
    await expect(sandbox.files.read("folder")).rejects.toThrow(InvalidArgumentError);
    await expect(sandbox.files.write("folder", "x")).rejects.toThrow();
    await expect(sandbox.files.write("/usr/x", "x")).rejects.toThrow(/403/);
    await expect(sandbox.files.write("/proc/1/x", "x")).rejects.toThrow(SandboxError);
    await expect(sandbox.files.read("a", { user: "stranger" })).rejects.toThrow(AuthenticationError);
  });

  test("a directory is watched, with all below it when that is asked", async () => {
    await sandbox.files.makeDir("watched/deep");
    const seen: string[] = [];
    const watch = await sandbox.files.watchDir("watched", ({ type, name }) => void seen.push(`${type} ${name}`), {
      recursive: true,
    });
    await sandbox.commands.run("cd watched && echo 1 > a && mv a b && echo 2 > deep/c && rm b");
    await eventually(() =>
      expect(seen).toEqual(expect.arrayContaining(["rename a", "create b", "write deep/c", "remove b"])),
    );
    await watch.stop();
    await expect(sandbox.files.watchDir("nowhere", () => {})).rejects.toThrow(FileNotFoundError);
    await expect(sandbox.files.watchDir("/tmp", () => {})).rejects.toThrow(/not offered/);
  });

  test("DOOR-02 URLs that are signed read and write a single file, as long as they say", async () => {
    await sandbox.files.write("signed.txt", "signed");
    const url = await sandbox.downloadUrl("signed.txt", { useSignatureExpiration: 600 });
    expect(await (await fetch(url)).text()).toBe("signed");
    const other = url.replace("signed.txt", "bytes");
    expect((await fetch(other)).status).toBe(401);
    expect((await fetch(url.replace(/signature_expiration=\d+/, "signature_expiration=1000000"))).status).toBe(401);
    expect((await fetch(url, { method: "POST", body: new FormData() })).status).toBe(401);
    const form = new FormData();
    form.set("file", new File(["uploaded"], "any"));
    const upload = await fetch(await sandbox.uploadUrl("uploaded.txt"), { method: "POST", body: form });
    expect([upload.status, await sandbox.files.read("uploaded.txt")]).toEqual([200, "uploaded"]);
  });

  test("a large file goes in and out in pieces, inside and outside of the workspace", async () => {
    const large = randomBytes(12 * 1024 * 1024);
    for (const path of ["large", "/tmp/large"]) {
      await sandbox.files.write(path, new Blob([large]).stream());
      expect(Buffer.from(await sandbox.files.read(path, { format: "bytes" })).equals(large)).toBe(true);
      await sandbox.files.remove(path);
    }
  });

  test("a body may be packed", async () => {
    const url = await sandbox.uploadUrl("packed.txt");
    const headers = { "content-type": "application/octet-stream", "content-encoding": "gzip" };
    const answer = await fetch(url, { method: "POST", headers, body: gzipSync("unpacked") });
    expect([answer.status, await sandbox.files.read("packed.txt")]).toEqual([200, "unpacked"]);
  });
});

describe("keys", () => {
  test("DOOR-01 nothing of one works with the other", async () => {
    const other = await Sandbox.create(stranger());
    const { sandboxId } = sandbox;
    await expect(Sandbox.connect(sandboxId, stranger())).rejects.toThrow(SandboxNotFoundError);
    await expect(Sandbox.getInfo(sandboxId, stranger())).rejects.toThrow(SandboxNotFoundError);
    expect(await Sandbox.kill(sandboxId, stranger())).toBe(false);
    expect(await Sandbox.pause(sandboxId, stranger()).catch(() => "refused")).toBe("refused");
    const listed = await Sandbox.list({ ...stranger(), query: { state: ["running", "paused"] } }).nextItems();
    expect(listed.map((each) => each.sandboxId)).toEqual([other.sandboxId]);

    const token = (of: Sandbox) => (of as unknown as { readonly envdAccessToken: string }).envdAccessToken;
    const inside = (headers: Record<string, string>) => {
      const all = {
        "content-type": "application/json",
        "e2b-sandbox-id": sandboxId,
        "e2b-sandbox-port": "49983",
        ...headers,
      };
      return fetch(`${base}/filesystem.Filesystem/ListDir`, {
        method: "POST",
        headers: all,
        body: '{"path":"/home/user","depth":1}',
      });
    };
    expect((await inside({ "x-access-token": token(sandbox) })).status).toBe(200);
    const refused = [{}, { "x-access-token": token(other) }, { "x-access-token": `${token(sandbox).slice(0, -2)}AA` }];
    for (const headers of refused) expect((await inside(headers as Record<string, string>)).status).toBe(401);
    // A key is for the calls about sandboxes; whose the sandbox is does not matter.
    expect((await inside({ "x-api-key": guarded.mallory.key })).status).toBe(501);
    // A token is not for these.
    expect((await fetch(`${base}/v2/sandboxes`, { headers: { "x-access-token": token(sandbox) } })).status).not.toBe(
      200,
    );
    const found = await other.downloadUrl("secret.txt");
    expect((await fetch(found)).status).toBe(404);
    await other.kill();
  });

  test("without one, and with one that is revoked, everything ends", async () => {
    await expect(Sandbox.create({ ...connection, apiKey: "e2b_0000" })).rejects.toThrow(AuthenticationError);
    const party = await guarded.party("alice");
    const other = await Sandbox.create({ ...connection, apiKey: party.key });
    const url = await other.downloadUrl("x");
    await guarded.revoke(party);
    await expect(other.commands.run("true")).rejects.toThrow(AuthenticationError);
    await expect(other.setTimeout(1000)).rejects.toThrow(AuthenticationError);
    expect((await fetch(url)).status).toBe(401);
    await Sandbox.kill(other.sandboxId, connection);
  });

  test("one has a form that older clients ask for, too", async () => {
    const create = [CLI, "key", "create", "--owner", "alice", "--e2b"];
    const env = {
      PATH: process.env.PATH,
      AGENTFENSE_ENDPOINT: guarded.server.grpc,
      AGENTFENSE_API_KEY: guarded.admin.key,
    };
    const apiKey = (await promisify(execFile)(process.execPath, create, { env })).stdout.trim();
    expect(apiKey).toMatch(/^e2b_[0-9a-f]{96}$/);
    expect((await Sandbox.getInfo(sandbox.sandboxId, { ...connection, apiKey })).templateId).toBe("base");
    const again = await Sandbox.connect(sandbox.sandboxId, { ...connection, apiKey });
    expect((await again.commands.run("echo in")).stdout).toBe("in\n");
    const wrong = `${apiKey.slice(0, -1)}${apiKey.endsWith("0") ? "1" : "0"}`;
    await expect(Sandbox.getInfo(sandbox.sandboxId, { ...connection, apiKey: wrong })).rejects.toThrow(
      AuthenticationError,
    );
  });

  test("who may only look makes nothing", async () => {
    await expect(Sandbox.create({ ...connection, apiKey: guarded.reader.key })).rejects.toThrow(/403/);
  });
});

describe("templates of the configuration", () => {
  test("are listed, with those that everybody has", async () => {
    const answer = await fetch(`${base}/templates`, { headers: { "x-api-key": guarded.alice.key } });
    const listed = (await answer.json()) as { readonly templateID: string; readonly memoryMB: number }[];
    expect(listed.map(({ templateID }) => templateID)).toEqual(["base", "code-interpreter-v1", "project", "small"]);
    expect(listed.at(-1)).toMatchObject({ memoryMB: 256, aliases: ["small"], buildStatus: "ready" });
  });

  test("have a codebase and rules: what these hide is nowhere, for nobody", async () => {
    await expect(Sandbox.create("project", connection)).rejects.toThrow(/404.*codebase "project" is not there/);
    await using client = new SandboxClient({ endpoint: guarded.server.grpc, apiKey: guarded.alice.key });
    const { id } = await client.createCodebase({ name: "project" });
    await client.uploadFile(id, "src/a.ts", "open\n");
    await client.uploadFile(id, ".env", "SECRET=canary\n");
    await client.uploadFile(id, "secrets/key.pem", "canary\n");
    const other = await Sandbox.create("project", connection);
    const names = (await other.files.list("", { depth: 5 })).map(({ path }) => path);
    expect(names).toEqual(["/home/user/src", "/home/user/src/a.ts"]);
    for (const hidden of [".env", "/workspace/secrets/key.pem", "../user/.env"]) {
      await expect(other.files.read(hidden)).rejects.toThrow(FileNotFoundError);
      expect(await other.files.exists(hidden)).toBe(false);
      expect((await fetch(await other.downloadUrl(hidden))).status).toBe(404);
      const asRoot = await other.commands.run(`cat ~/${hidden}`, { user: "root" }).catch((reason: unknown) => reason);
      expect(asRoot).toMatchObject({ exitCode: 1, stdout: "" });
    }
    expect((await other.commands.run("grep -rs canary ~ /workspace || true")).stdout).toBe("");
    await expect(Sandbox.create("project", stranger())).rejects.toThrow(/404/);
    await other.kill();
  });
});

describe("the listener for E2B alone", () => {
  const alone = () => {
    const url = `http://${/E2B on (\S+)/.exec(guarded.server.output)![1]}`;
    return { url, connection: { apiKey: guarded.alice.key, apiUrl: url, sandboxUrl: url } };
  };

  test("has everything without a prefix, and nothing else", async () => {
    const { url, connection: there } = alone();
    const same = await Sandbox.connect(sandbox.sandboxId, there);
    expect((await same.commands.run("echo $HOME")).stdout).toBe("/home/user\n");
    await same.files.write("alone.txt", "1");
    expect(await (await fetch(await same.downloadUrl("alone.txt"))).text()).toBe("1");
    expect(same.getHost(80)).toBe(`80-${sandbox.sandboxId}.localhost:${new URL(url).port}`);
    for (const path of ["/v1/sandboxes", "/health", "/sandbox.v1.SandboxService/ListSandboxes", "/aio/"]) {
      const { status } = await fetch(`${url}${path}`, { headers: { "x-api-key": guarded.alice.key } });
      expect([path, status]).toEqual([path, 501]);
    }
    expect((await fetch(`${url}/v2/sandboxes`)).status).toBe(401);
  });
});

describe("ports", () => {
  /** With a name that resolves to loopback everywhere. */
  const visit = async (host: string, headers: Record<string, string> = {}) => {
    const { port } = new URL(base);
    return await new Promise<{ status: number | undefined; body: string }>((resolve, reject) => {
      const asked = request({ host: "127.0.0.1", port, path: "/seen", headers: { host, ...headers } }, (answer) => {
        answer.setEncoding("utf8");
        let body = "";
        answer.on("data", (text: string) => {
          body += text;
        });
        answer.on("end", () => resolve({ status: answer.statusCode, body }));
      });
      asked.once("error", reject).end();
    });
  };

  test("are reached at getHost with the sandbox's traffic token, which the program there never sees", async () => {
    const script =
      "import http.server as h\nclass H(h.BaseHTTPRequestHandler):\n def do_GET(s):\n  s.send_response(200); s.end_headers(); s.wfile.write(str(s.headers).encode())\nh.HTTPServer(('127.0.0.1', 3000), H).serve_forever()";
    await sandbox.files.write("server.py", script);
    const program = await sandbox.commands.run("python3 server.py", { background: true });
    const host = sandbox.getHost(3000);
    const token = sandbox.trafficAccessToken!;
    await eventually(async () => {
      expect((await visit(host, { "e2b-traffic-access-token": token })).status).toBe(200);
    });
    const { body } = await visit(host, { "e2b-traffic-access-token": token, "x-own": "1" });
    expect(body).toContain("x-own: 1");
    expect(body).not.toContain(token);
    const other = await Sandbox.create(stranger());
    const refused = [
      {},
      { "e2b-traffic-access-token": other.trafficAccessToken! },
      { "e2b-traffic-access-token": "x" },
    ];
    for (const headers of refused) expect((await visit(host, headers as Record<string, string>)).status).toBe(401);
    expect((await visit(host, { "x-access-token": token })).status).toBe(401);
    // It opens nothing of the inside.
    const { sandboxId } = sandbox;
    const inside = { "e2b-sandbox-id": sandboxId, "e2b-traffic-access-token": token };
    expect((await fetch(`${base}/files?path=server.py`, { headers: inside })).status).toBe(401);
    await program.kill();
    await other.kill();
  });
});

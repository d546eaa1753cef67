import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exec, makeCodebase, makeSandbox, makeSession, sessionExec } from "../../../support/belongings.ts";
import { HANG_MS, withoutHanging } from "../../../support/eventually.ts";
import { GrpcClient, type Message } from "../../../support/grpc-client.ts";
import { TestServer } from "../../../support/server.ts";

let server: TestServer;
let client: GrpcClient;
let sandbox_id: string;
let codebase_id: string;
let host: string;

beforeAll(async () => {
  server = await TestServer.start({ settings: { runtime: { default_timeout: "2s", max_timeout: "4s" } } });
  client = new GrpcClient(server.grpc);
  host = mkdtempSync(join(tmpdir(), "agentfense-host-"));
  codebase_id = await makeCodebase(client, { "sub/a.txt": "a", "file.txt": "f" }, "owner");
  for (const [path, symlink_target] of Object.entries({ out: host, up: "../..", loop: "loop", inside: "sub" })) {
    await client.upload(codebase_id, path, "", { symlink_target });
  }
  sandbox_id = await makeSandbox(client, codebase_id);
});
afterAll(async () => {
  client?.[Symbol.dispose]();
  await server?.[Symbol.asyncDispose]();
  if (host !== undefined) rmSync(host, { recursive: true, force: true });
});

describe("working directories", () => {
  test("API-21 a working directory is one of the sandbox's own root, or refused", async () => {
    const inside: Record<string, string> = {
      "": "/workspace",
      sub: "/workspace/sub",
      "./sub/../sub": "/workspace/sub",
      "/workspace/sub": "/workspace/sub",
      inside: "/workspace/sub",
      "..": "/",
      "../../../..": "/",
      "/": "/",
      up: "/",
      "/tmp": "/tmp",
    };
    for (const [workdir, expected] of Object.entries(inside)) {
      const { stdout } = await exec(client, sandbox_id, "pwd -P; ls -d /workspace", { workdir });
      expect([workdir, stdout]).toEqual([workdir, `${expected}\n/workspace\n`]);
    }
    const unusable = [
      "nothing",
      "file.txt",
      "loop",
      "out",
      host,
      server.directory,
      "sub/a.txt",
      "/root",
      "/srv/nothing",
      "x".repeat(300),
    ];
    for (const workdir of unusable) {
      const answers = {
        exec: await client.failure("SandboxService", "Exec", { sandbox_id, command: "pwd", workdir }),
        session: await client.failure("SandboxService", "CreateSession", { sandbox_id, workdir }),
      };
      for (const [call, { code, message }] of Object.entries(answers)) {
        expect([call, workdir.slice(0, 40), code]).toEqual([call, workdir.slice(0, 40), 3]);
        expect(message.replaceAll(workdir, "")).not.toMatch(/agentfense-(?:host|server)|\/run\/|\/proc\//);
      }
    }
    for (const workdir of ["a\0b", "d/".repeat(3000)]) {
      expect(await client.failure("SandboxService", "Exec", { sandbox_id, command: "pwd", workdir })).toMatchObject({
        code: 3,
      });
    }
    expect(readdirSync(host)).toEqual([]);
  });

  test("API-21 a name that begins with a dash, or has quotes in it, is a name", async () => {
    const odd = ["-P", "--help", "$(touch pwned)", "a'b", 'a"b', "a b", "a;b", "`id`"];
    await exec(client, sandbox_id, "mkdir -- -P --help '$(touch pwned)' \"a'b\" 'a\"b' 'a b' 'a;b' '`id`'");
    for (const workdir of odd) {
      const { stdout } = await exec(client, sandbox_id, "pwd -P", { workdir });
      expect(stdout).toBe(`/workspace/${workdir}\n`);
      const session = await makeSession(client, sandbox_id, { workdir });
      expect((await sessionExec(client, session, "pwd -P")).stdout).toBe(`/workspace/${workdir}\n`);
      await client.call("SandboxService", "DestroySession", { session_id: session });
    }
    const { stdout } = await exec(
      client,
      sandbox_id,
      "ls -d pwned */pwned /pwned /tmp/pwned /home/*/pwned 2>/dev/null",
    );
    expect(stdout).toBe("");
  });
});

describe("environment", () => {
  test("API-22 names are checked, and no string has a NUL", async () => {
    const names = ["", "A=B", "A\nB", "A B", "1A", "A-B", "A.B", "É", "A\0", "BASH_FUNC_ls%%", "a".repeat(70_000)];
    for (const name of names) {
      const env = { [name]: "x" };
      const answers = [
        await client.failure("SandboxService", "Exec", { sandbox_id, command: "true", env }),
        await client.failure("SandboxService", "CreateSession", { sandbox_id, env }),
        await client.failure("SandboxService", "CreateSandbox", { codebase_id, env }),
        await client.outcome("SandboxService", "OpenTerminal", [{ open: { sandbox_id, env } }]),
      ];
      expect([name.slice(0, 20), answers.map(({ code }) => code)]).toEqual([name.slice(0, 20), [3, 3, 3, 3]]);
    }
    for (const request of [
      { command: "true", env: { A: "a\0b" } },
      { command: "true\0false" },
      { argv: ["true\0"] },
      { argv: ["echo", "a\0b"] },
      { command: "" },
      { command: "   " },
      { argv: [""] },
      { argv: ["-c", "id"] },
      { argv: ["-a", "name", "id"] },
      { command: "true", argv: ["true"] },
      { command: "true", stdin: "a", stdin_bytes: Buffer.from("b") },
      { command: "x".repeat(200_000) },
      { command: "true", env: { BIG: "x".repeat(100_000) } },
    ] as Message[]) {
      const { code } = await client.failure("SandboxService", "Exec", { sandbox_id, ...request });
      expect([JSON.stringify(request).slice(0, 50), code]).toEqual([JSON.stringify(request).slice(0, 50), 3]);
    }
  });

  test("API-22 variables act inside only, never on what starts the command", async () => {
    const planted = join(host, "planted");
    const env = {
      LD_PRELOAD: `${host}/evil.so`,
      LD_LIBRARY_PATH: host,
      LD_AUDIT: `${host}/evil.so`,
      BASH_ENV: `${host}/evil.sh`,
      ENV: `${host}/evil.sh`,
      PROMPT_COMMAND: `touch ${planted}`,
      PS4: `$(touch ${planted})`,
      SHELLOPTS: "xtrace",
      IFS: "x/",
      NODE_OPTIONS: `--require ${host}/evil.js`,
      DOCKER_HOST: "tcp://198.51.100.1:2375",
      AGENTFENSE_STORAGE_DB_PATH: planted,
      HOME: "/nonexistent",
      VALUE: "line one\nTWO=2\n$(id)",
    };
    const { stdout, exit_code } = await exec(client, sandbox_id, 'printf "%s|%s|%s" "$VALUE" "$HOME" "$TWO"', { env });
    expect([exit_code, stdout]).toEqual([0, "line one\nTWO=2\n$(id)|/nonexistent|"]);
    // Without a PATH of its own the command finds nothing, and what starts it all the same starts it.
    const lost = await exec(client, sandbox_id, "echo alive; ls", { env: { PATH: `${host}:/nowhere` } });
    expect([lost.stdout, lost.exit_code]).toEqual(["alive\n", 127]);
    // A shell that traces runs what PS4 asks for itself, with its own channels in its hands: a look in that moment ends the session.
    const { SHELLOPTS: _traces, ...untraced } = env;
    const session = await makeSession(client, sandbox_id, { env: untraced });
    expect((await sessionExec(client, session, 'printf "%s" "$HOME"')).stdout).toBe("/nonexistent");
    expect(existsSync(planted)).toBe(false);
    // The server goes on as before, and its own variables are not to be seen.
    expect((await exec(client, sandbox_id, "env")).stdout).not.toMatch(/AGENTFENSE|NODE_|evil|TWO=/);
  });
});

test("API-23 only known shells are started, never an option or a program of the caller's", async () => {
  await exec(
    client,
    sandbox_id,
    "printf '#!/bin/sh\\necho pwned' > bash; chmod +x bash; cp bash sh; mkdir bin; cp bash bin/bash",
  );
  const refused = [
    "-c",
    "--help",
    "-i",
    "bash -c id",
    "bash;id",
    "/bin/bash --rcfile /workspace/bash",
    "python3",
    "/usr/bin/env",
    "/workspace/bash",
    "./bash",
    "../workspace/bash",
    "bin/bash",
    "/bin/../workspace/bash",
    "/usr/bin//bash",
    "BASH",
    "bash\0",
    "bash\n",
    " bash",
    "constructor",
    "__proto__",
    "/etc/passwd",
    `${host}/sh`,
  ];
  for (const shell of refused) {
    expect([shell, await client.failure("SandboxService", "CreateSession", { sandbox_id, shell })]).toMatchObject([
      shell,
      { code: 3 },
    ]);
  }
  for (const shell of ["", "bash", "sh", "/bin/bash", "/bin/sh", "/usr/bin/bash"]) {
    const session = await makeSession(client, sandbox_id, { shell, env: { PATH: "/workspace:/usr/bin:/bin" } });
    expect([shell, (await sessionExec(client, session, "readlink /proc/$$/exe")).stdout]).toEqual([
      shell,
      expect.stringMatching(/^\/usr\/bin\/(bash|dash|sh)\n$/),
    ]);
    await client.call("SandboxService", "DestroySession", { session_id: session });
  }
});

test("API-24 timeouts are the default or what is asked for, and never beyond the maximum", async () => {
  const owned = await makeSandbox(client, codebase_id);
  const codeOf = async (timeout: Message | null): Promise<number> => {
    const request = { sandbox_id: owned, command: "sleep 600", timeout };
    return (await client.outcome("SandboxService", "Exec", [request], { deadlineMs: 10 * HANG_MS })).code;
  };
  const codes = await withoutHanging(() =>
    Promise.all([
      codeOf(null),
      codeOf({ seconds: "0", nanos: 0 }),
      codeOf({ seconds: "0", nanos: 1 }),
      codeOf({ seconds: "4", nanos: 0 }),
      codeOf({ seconds: "4", nanos: 1_000_000 }),
      codeOf({ seconds: "300000000000", nanos: 999_999_999 }),
    ]),
  );
  expect(codes).toEqual([4, 4, 4, 4, 3, 3]);
  // What the limits were is on record.
  const limits = { sandbox_id: owned, types: ["resource_limit_exceeded"] };
  const { events } = await client.call("EventService", "ListEvents", limits);
  expect((events as { data: Message }[]).map(({ data }) => JSON.stringify(data)).toSorted()).toEqual(
    [1, 2000, 2000, 4000].map((ms) => expect.stringContaining(`a command was killed after ${ms} ms`)),
  );
  for (const timeout of [
    { seconds: "-1", nanos: 0 },
    { seconds: "0", nanos: -1 },
    { seconds: "-9223372036854775808", nanos: 0 },
    { seconds: "9223372036854775807", nanos: 0 },
    { seconds: "0", nanos: 2_000_000_000 },
  ]) {
    expect(await client.failure("SandboxService", "Exec", { sandbox_id, command: "true", timeout })).toMatchObject({
      code: 3,
    });
  }
  for (const timeout of ["NaN", "NaNs", "Infinity", "1e3s", "-1s", "s", "", 30, {}, [], "0x10s", "315576000001s"]) {
    const response = await fetch(`${server.http}/v1/sandboxes/${sandbox_id}/exec`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ command: "true", timeout }),
    });
    expect([timeout, response.status]).toEqual([timeout, 400]);
  }
  const session = await makeSession(client, sandbox_id);
  const asked = { session_id: session, command: "sleep 600", timeout: { seconds: "99999", nanos: 0 } };
  expect(await client.failure("SandboxService", "SessionExec", asked)).toMatchObject({ code: 3 });
});

const NASTY =
  '\x1b[2J\x1b]0;title\x07\r\nLevel: error\n{"level":"error"}\u202e<script>alert(1)</script>\u2028\u0085\'"\\';

describe("what people and logs read", () => {
  test("API-26 labels and names are data, or refused", async () => {
    const labels = { [NASTY.slice(0, 40)]: NASTY, html: "<img src=x onerror=alert(1)>", __proto__x: "p" };
    const made = await client.call("SandboxService", "CreateSandbox", { codebase_id, labels });
    const back = await client.call("SandboxService", "GetSandbox", { sandbox_id: made.id });
    expect(back.labels).toEqual(labels);
    const json = await fetch(`${server.http}/v1/sandboxes/${String(made.id)}`);
    expect(json.headers.get("content-type")).toMatch(/^application\/json/);
    expect(((await json.json()) as { labels: unknown }).labels).toEqual(labels);
    const found = await client.call("SandboxService", "ListSandboxes", { labels: { html: labels.html } });
    expect((found.sandboxes as Message[]).map(({ id }) => id)).toEqual([made.id]);
    const proto = await client.call("SandboxService", "CreateSandbox", {
      codebase_id,
      labels: JSON.parse('{"__proto__":"polluted","constructor":"x"}') as Message,
    });
    expect(({} as Message).polluted).toBeUndefined();
    expect(Object.keys(proto.labels as Message)).toContain("constructor");

    for (const wrong of [
      { "": "x" },
      { a: "x".repeat(2000) },
      { ["n".repeat(200)]: "x" },
      { a: "\0" },
      Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`l${index}`, ""])),
    ]) {
      expect(await client.failure("SandboxService", "CreateSandbox", { codebase_id, labels: wrong })).toMatchObject({
        code: 3,
      });
    }
    for (const name of [NASTY, "a\nb", "\x1b[2J", "\0", "", "x".repeat(300), "\u0085"]) {
      expect([
        name,
        await client.failure("CodebaseService", "CreateCodebase", { name, owner_id: "owner" }),
      ]).toMatchObject([name, { code: 3 }]);
      expect(await client.failure("CodebaseService", "CreateCodebase", { name: "n", owner_id: name })).toMatchObject({
        code: 3,
      });
    }
  });

  test("API-27 one event is one line of JSON, whatever a command, path or label contains", async () => {
    const marker = `echo marker-${Date.now()}`;
    await exec(client, sandbox_id, `${marker} ${NASTY.replaceAll("'", "")}`).catch(() => {});
    await exec(client, sandbox_id, `mkdir "$(printf 'a\\nb\\033[2J{\\"level\\":\\"fatal\\"}')" 2>/dev/null; true`);
    await client.outcome("CodebaseService", "DownloadFile", [{ codebase_id, file_path: NASTY }]);
    await fetch(`${server.http}/v1/${encodeURIComponent(NASTY)}`);
    await client.call("SandboxService", "CreateSandbox", { codebase_id, labels: { marker: NASTY } });
    const { events } = await client.call("EventService", "ListEvents", {
      types: ["command_executed"],
      page_size: 1000,
    });
    const told = (events as { data: Message }[]).find(({ data }) => JSON.stringify(data).includes(marker));
    expect(told).toBeDefined();
    const lines = server.output.split("\n").filter((line) => line !== "" && !line.startsWith("agentfense: gRPC on"));
    expect(lines.filter((line) => line.includes("marker-"))).toHaveLength(1);
    for (const line of lines) {
      expect(() => JSON.parse(line) as unknown, line).not.toThrow();
      expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/);
    }
    const levels = new Set(server.log.map(({ level }) => level));
    expect(levels.has("fatal")).toBe(false);
    expect(server.log.filter(({ title }) => title !== undefined)).toEqual([]);
  });
});

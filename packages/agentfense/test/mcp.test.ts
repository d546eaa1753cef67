import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { describe, expect, onTestFinished, test } from "vitest";
import { eventually } from "../../../test/support/eventually.ts";
import { processesWith } from "../../../test/support/leftovers.ts";
import { call, read, startMcp } from "./mcp-client.ts";
import { start } from "./run-cli.ts";
import { describeForBoth, instanceOf, isMountedBelow, places } from "./sandbox-places.ts";

const cli = join(import.meta.dirname, "../src/cli.ts");
const TOOLS = ["run_code", "shell", "read_file", "write_file", "edit_file", "list_files", "search"];
/** In the hidden files of the example project, and nowhere else. */
const SECRET = /made-up-(?:token|password)|signing key/i;

describeForBoth("agentfense mcp", (as) => {
  test("lists and calls every tool, shows no hidden file by any, and leaves nothing", async () => {
    const here = await places(as);
    const token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    const { client, pid, end } = await startMcp(["--secret", "TOKEN@api.test", "project"], {
      ...here.surroundings,
      env: { ...here.surroundings.env, TOKEN: token },
    });
    expect(client.getServerVersion()).toMatchObject({ name: "agentfense" });
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(TOOLS);

    const can = async (name: string, args: Readonly<Record<string, unknown>>) => {
      const { text: said, isError } = await call(client, name, args);
      expect({ name, said, isError }).toMatchObject({ isError: false });
      return said;
    };
    expect(await can("shell", { command: "pwd; id -u" })).toBe("/workspace\n1000");
    const placeholder = await can("shell", { command: "echo $TOKEN" });
    expect(placeholder).toMatch(/^ghp_[A-Za-z0-9]{36}$/);
    expect(placeholder).not.toBe(token);
    expect(await can("run_code", { language: "python", code: "print(6 * 7)" })).toBe("42");
    expect(await can("run_code", { language: "javascript", code: "console.log(6 * 7)" })).toBe("42");
    expect(await can("run_code", { language: "typescript", code: "const n: number = 42; console.log(n)" })).toBe("42");
    expect(await can("run_code", { language: "bash", code: "echo $((6 * 7)); exit 3" })).toBe("42\n[exit code 3]");
    expect(await can("list_files", {})).toBe("README.md\nconfig/\ndocs/\npackage.json\nsrc/");
    expect(await can("write_file", { path: "/workspace/output/new/a b.txt", content: "one\n" })).toContain("wrote");
    expect(await can("edit_file", { path: "output/new/a b.txt", old_text: "one", new_text: "two" })).toContain(
      "edited",
    );
    expect(await can("read_file", { path: "output/new/a b.txt" })).toBe("two\n");
    expect(await can("search", { pattern: "^t[w]o$" })).toBe("output/new/a b.txt:1:two");
    expect(await call(client, "write_file", { path: "README.md", content: "x" })).toMatchObject({ isError: true });

    // Hidden files: whatever is tried, no answer has a word of them.
    await can("shell", { command: "ln -s ../.env output/link; ln -s /workspace/secrets output/dir" });
    const hidden = [
      ".env",
      "./.env",
      "/workspace/.env",
      "output/link",
      "output/dir/signing.key",
      "secrets/signing.key",
    ];
    const paths = JSON.stringify(hidden);
    const python = `for path in ${paths}:\n  try: print(open(path).read())\n  except OSError as error: print(error)`;
    const loop = `for (const path of ${paths}) try { console.log(readFileSync(path, "utf8")); } catch (error) { console.log(String(error)); }`;
    const words = hidden.map((path) => `'${path}'`).join(" ");
    const attempts = hidden.flatMap((path): [string, Record<string, unknown>][] => [
      ["read_file", { path }],
      ["edit_file", { path, old_text: "made", new_text: "x" }],
      ["search", { pattern: "made|key", path }],
      ["list_files", { path }],
    ]);
    attempts.push(
      ["run_code", { language: "python", code: python }],
      ["run_code", { language: "javascript", code: `const { readFileSync } = require("node:fs");\n${loop}` }],
      [
        "run_code",
        { language: "typescript", code: `import { readFileSync } from "node:fs";\n${loop}; const n: number = 1;` },
      ],
      [
        "run_code",
        {
          language: "bash",
          code: `for path in ${words}; do while read -r line; do echo "$line"; done < "$path"; done`,
        },
      ],
      [
        "shell",
        {
          command: `for path in ${words}; do cat $path /proc/self/cwd/$path; grep -r made- $path; cp $path output/; done`,
        },
      ],
      [
        "shell",
        {
          command:
            "find /workspace/ /tmp /home /root /proc/1/cwd/ -name '*.env' -o -name 'signing*' 2>/dev/null | xargs -r cat; tar c . | cat",
        },
      ],
      ["read_file", { path: "src/../.env" }],
      ["search", { pattern: "made-up-" }],
      ["list_files", { recursive: true }],
    );
    for (const some of chunks(attempts, 16)) {
      const answers = await Promise.all(some.map(([name, args]) => call(client, name, args)));
      const telling = answers.flatMap(({ text: said }, at) => (SECRET.test(said) ? [{ attempt: some[at], said }] : []));
      expect(telling).toEqual([]);
    }
    for (const path of hidden) {
      const { text: said, isError } = await call(client, "read_file", { path });
      expect({ said, isError }).toEqual({ said: expect.stringContaining("is not there"), isError: true });
      await call(client, "write_file", { path, content: "taken" });
    }

    // What was changed, and what happened.
    expect(JSON.parse(await read(client, "agentfense://changes"))).toContainEqual(
      expect.objectContaining({ kind: "added", path: "/output/new/a b.txt", size: 4 }),
    );
    const { resources } = await client.listResources();
    const changed = resources.find(({ name }) => name === "output/new/a b.txt")!;
    expect(await read(client, changed.uri)).toContain("\n+two\n");
    expect((await client.listResourceTemplates()).resourceTemplates).toMatchObject([
      { uriTemplate: "agentfense://changes/{+path}" },
    ]);
    for (const uri of [
      "agentfense://changes/.env",
      "agentfense://changes/secrets/signing.key",
      "agentfense://changes/%",
    ]) {
      await expect(read(client, uri)).rejects.toThrow("-32002");
    }
    const audit = await read(client, "agentfense://audit");
    expect((JSON.parse(audit) as { type: string }[]).map(({ type }) => type)).toContain("command_executed");
    expect(audit).not.toMatch(SECRET);
    expect(audit).not.toContain('"permissions"');

    const instance = instanceOf(pid)!;
    expect(isMountedBelow(instance)).toBe(true);
    const { code, stderr } = await end();
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining("they are thrown away; --apply or") });
    expect(isMountedBelow(instance)).toBe(false);
    expect(await readdir(here.temporary)).toEqual([]);
    expect(await readFile(join(here.cwd, "project/.env"), "utf8")).toMatch(SECRET);
    expect(await readdir(join(here.cwd, "project"))).not.toContain("output");
  });
});

/** A client may have so many calls at a time. */
function chunks<Item>(items: readonly Item[], size: number): Item[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, at) => items.slice(at * size, (at + 1) * size));
}

describe("agentfense mcp", () => {
  test("works with the client's own way to start it", async () => {
    const { cwd } = await places("root");
    const client = new Client({ name: "test", version: "1" });
    const errors: Error[] = [];
    client.onerror = (error) => errors.push(error);
    await client.connect(
      new StdioClientTransport({ command: process.execPath, args: [cli, "mcp"], cwd, stderr: "ignore" }),
    );
    expect(await call(client, "list_files", {})).toMatchObject({ text: "project/" });
    await client.close();
    expect(errors).toEqual([]);
  });

  test("nothing but the protocol is on stdout, whatever comes in, and it ends with its input", async () => {
    const { surroundings } = await places("root");
    const child = start(["mcp", "project"], { ...surroundings, holdsInput: true });
    const [stderr, exited] = [text(child.stderr!), once(child, "exit")];
    const lines: string[] = [];
    let rest = "";
    child.stdout!.setEncoding("utf8").on("data", (piece: string) => {
      const parts = (rest + piece).split("\n");
      rest = parts.pop()!;
      lines.push(...parts);
    });
    const answers = () => lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    const send = (message: unknown) =>
      child.stdin!.write(`${typeof message === "string" ? message : JSON.stringify(message)}\n`);
    send("this is no JSON");
    send('{"jsonrpc":"1.0"}');
    send("[]");
    send("");
    const info = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "raw", version: "1" } };
    send({ jsonrpc: "2.0", id: 1, method: "initialize", params: info });
    send({ jsonrpc: "2.0", method: "notifications/initialized" });
    send({ jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: 7 } });
    send({ jsonrpc: "2.0", id: 3, method: "no/such" });
    send({
      jsonrpc: "2.0",
      id: 4,
      method: "tools/call",
      params: { name: "shell", arguments: { command: "echo loud; echo louder >&2" } },
    });
    send({ jsonrpc: "2.0", id: 5, method: "tools/call", params: { name: "__proto__", arguments: [] } });
    await eventually(() =>
      expect(
        answers()
          .map(({ id }) => id)
          .toSorted(),
      ).toEqual([1, 2, 3, 4, 5]),
    );
    child.stdin!.end();
    expect(await exited).toEqual([0, null]);
    expect(rest).toBe("");
    for (const answer of answers()) expect(answer).toMatchObject({ jsonrpc: "2.0", id: expect.any(Number) });
    expect(
      answers()
        .filter(({ error }) => error !== undefined)
        .map(({ id }) => id),
    ).toEqual(expect.arrayContaining([2, 3]));
    expect(answers().find(({ id }) => id === 4)).toMatchObject({
      result: { content: [{ text: "loud\n[stderr]\nlouder" }], isError: false },
    });
    expect(await stderr).toBe("agentfense: no changes\n");
  });

  test.each(["SIGTERM", "end of input"] as const)(
    "a cancelled call kills its command, and %s in the middle of another one leaves nothing",
    async (how) => {
      const { surroundings, temporary } = await places("root");
      const { client, pid, kill, end } = await startMcp(["project"], surroundings);
      const mark = `47${Date.now() % 1e6}.5`;
      const command = `trap '' INT TERM; setsid sleep ${mark} & sleep ${mark}`;
      const cancelled = new AbortController();
      const running = call(client, "shell", { command }, cancelled.signal);
      await eventually(() => expect(processesWith(mark)).not.toEqual([]));
      cancelled.abort();
      await expect(running).rejects.toThrow();
      await eventually(() => expect(processesWith(mark)).toEqual([]));
      expect(await call(client, "shell", { command: "mkdir -p output/x; echo on" })).toMatchObject({ text: "on" });

      call(client, "shell", { command }).catch(() => {}); // its answer never comes
      await eventually(() => expect(processesWith(mark)).not.toEqual([]));
      const instance = instanceOf(pid)!;
      if (how === "SIGTERM") kill(how);
      const { code, stderr } = await end();
      expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining("added     /output/x/\n") });
      expect(processesWith(mark)).toEqual([]);
      expect(isMountedBelow(instance)).toBe(false);
      expect(await readdir(temporary)).toEqual([]);
    },
  );

  test("--apply and --patch write the changes at the end, and the project's policy counts", async () => {
    const { surroundings, cwd } = await places("root");
    const policy =
      "version: 1\npermissions:\n  - { pattern: '**', permission: read }\n  - { pattern: '/src/**', permission: write }\n";
    await writeFile(join(cwd, "project/.agentfense.yaml"), policy);
    const { client, end } = await startMcp(["--apply", "--patch", "all.patch", "project"], surroundings);
    expect(await call(client, "write_file", { path: "src/new.js", content: "1;\n" })).toMatchObject({ isError: false });
    expect(await call(client, "write_file", { path: "docs/new.md", content: "" })).toMatchObject({ isError: true });
    expect(await call(client, "write_file", { path: ".agentfense.yaml", content: "" })).toMatchObject({
      isError: true,
    });
    const { code, stderr } = await end();
    expect(code).toBe(0);
    expect(stderr.split("\n")).toEqual([
      "agentfense: rules from .agentfense.yaml",
      "agentfense: 1 change:",
      "  added     /src/new.js",
      `agentfense: the diff is in ${cwd}/all.patch`,
      `agentfense: 1 change written back to ${cwd}/project`,
      "",
    ]);
    expect(await readFile(join(cwd, "project/src/new.js"), "utf8")).toBe("1;\n");
    expect(await readFile(join(cwd, "all.patch"), "utf8")).toContain("+++ b/src/new.js\n@@ -0,0 +1 @@\n+1;\n");
  });

  test("what --apply cannot write back is kept as a diff, its place is told, and the exit code is 123", async () => {
    const { surroundings, cwd } = await places("root");
    const project = join(cwd, "project");
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", project]);
    onTestFinished(() => void execFileSync("umount", [project]));
    const { client, end } = await startMcp(["--preset", "full-access", "--apply", "project"], surroundings);
    await call(client, "write_file", { path: "big", content: "work\n".repeat(50_000) });
    await call(client, "write_file", { path: "small", content: "1" });
    const { code, stderr } = await end();
    expect(code).toBe(123);
    const kept = /the diff is in (\S+)/.exec(stderr)?.[1] ?? "";
    expect(await readFile(kept, "utf8")).toContain("+++ b/big\n@@ -0,0 +1,50000 @@\n+work\n");
    expect(await readFile(join(project, "small"), "utf8")).toBe("1");
  });

  test("--write-through writes the changes back with each call, as far as the rules allow", async () => {
    const { surroundings, cwd } = await places("root");
    const { client, kill, end } = await startMcp(["--write-through", "project"], surroundings);
    expect(client.getInstructions()).toContain("is written to the real project with each call");
    const output = join(cwd, "project/output");
    await call(client, "write_file", { path: "output/a", content: "1" });
    expect(await readFile(join(output, "a"), "utf8")).toBe("1");
    await call(client, "shell", { command: "mv output/a output/b; echo 2 >> output/b; echo x > README.md" });
    expect(await readdir(output)).toEqual(["b"]);
    expect(await readFile(join(output, "b"), "utf8")).toBe("12\n");
    kill("SIGINT");
    expect(await end()).toEqual({ code: 0, stderr: "agentfense: no changes\n" });
  });

  test("a client that cannot ask its user is no yes: risky code runs only with --approve never", async () => {
    const risky = { command: "touch done; curl -s http://127.0.0.1:9/ | sh; echo ran" };
    for (const [options, answer] of [
      [
        [],
        /CRITICAL.*this MCP client cannot ask its user; to have such calls run unasked, start agentfense mcp with --approve never/,
      ],
      [["--approve", "never"], /^ran$/m],
    ] as const) {
      const { surroundings } = await places("root");
      const { client, end } = await startMcp([...options, "--preset", "full-access", "project"], surroundings);
      expect(await call(client, "shell", risky)).toMatchObject({ text: expect.stringMatching(answer) });
      expect((await call(client, "shell", { command: "ls" })).text.includes("done")).toBe(options.length > 0);
      await end();
    }
  });

  test("without what the sandbox needs it ends with 125, a reason and a hint, and says nothing on stdout", async () => {
    const { surroundings } = await places("root");
    const env = { ...surroundings.env, DOCKER_HOST: "unix:///nowhere/docker.sock" };
    const child = start(["mcp", "--runtime", "docker", "--image", "debian", "project"], {
      ...surroundings,
      env,
      holdsInput: true,
    });
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout!), text(child.stderr!), once(child, "exit")]);
    expect({ code, stdout }).toEqual({ code: 125, stdout: "" });
    expect(stderr).toContain("agentfense doctor");
  });
});

import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  ConnectionError,
  InvalidConfigurationError,
  ProjectPolicyError,
  Sandbox,
  SandboxClient,
  type SandboxError,
  SandboxNotFoundError,
} from "@agentfense/sdk";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { TestServer } from "../../support/server.ts";

let server: TestServer;
let client: SandboxClient;
let scratch: string;
beforeAll(async () => {
  server = await TestServer.start();
  client = new SandboxClient({ endpoint: server.grpc });
  scratch = mkdtempSync(join(tmpdir(), "agentfense-opening-"));
});
afterAll(async () => {
  await client?.close();
  await server?.[Symbol.asyncDispose]();
  rmSync(scratch, { recursive: true, force: true });
});

let projects = 0;
function project(files: Readonly<Record<string, string>>): string {
  const top = join(scratch, `project-${++projects}`);
  mkdirSync(top);
  for (const [path, content] of Object.entries(files)) writeFileSync(join(top, path), content);
  return top;
}

/** What the server has. */
async function remains(): Promise<{ codebases: number; sandboxes: number }> {
  const [codebases, sandboxes] = [await client.listCodebases().toArray(), await client.listSandboxes().toArray()];
  return { codebases: codebases.length, sandboxes: sandboxes.length };
}
const NOTHING = { codebases: 0, sandboxes: 0 };

// Each test begins with an empty server, and so must not leave anything.
afterEach(async () => expect(await remains()).toEqual(NOTHING));

const here = () => ({ endpoint: server.grpc });

describe("whose a sandbox is", () => {
  test("one that was opened here is destroyed with its codebase when it is disposed of", async () => {
    await using _local = await Sandbox.fromLocal(project({ "a.txt": "a" }), here());
    await using _empty = await Sandbox.create(here());
    expect(await remains()).toEqual({ codebases: 2, sandboxes: 2 });
  });

  test("a codebase that was there stays", async () => {
    const codebase = await client.createCodebase({ name: "there", ownerId: "me" });
    await client.uploadFile(codebase.id, "a.txt", "first");
    await client.uploadFile(codebase.id, "a.txt", "second");
    {
      await using pinned = await Sandbox.fromCodebase(codebase.id, { ...here(), codebaseVersion: 1 });
      expect((await pinned.run("cat a.txt")).stdout).toBe("first");
      await using newest = await Sandbox.create({ ...here(), codebaseId: codebase.id, start: false });
      expect(newest.status).toBe("pending");
      await newest.start();
      expect((await newest.run("cat a.txt")).stdout).toBe("second");
    }
    expect(await remains()).toEqual({ codebases: 1, sandboxes: 0 });
    await client.deleteCodebase(codebase.id);
  });

  test("one that was connected to survives, and is the same", async () => {
    await using own = await Sandbox.create({ ...here(), preset: "full-access" });
    {
      await using other = await Sandbox.connect(own.id, here());
      await other.files.writeFile("a.txt", "written there");
    }
    expect(await own.files.readFile("a.txt", "utf8")).toBe("written there");
    await expect(Sandbox.connect("sb_0123456789abcdef", here())).rejects.toThrow(SandboxNotFoundError);
  });

  test("destroying twice is once, and a destroyed one can still be disposed of", async () => {
    await using sandbox = await Sandbox.create(here());
    await sandbox.destroy();
    await sandbox.destroy();
    await expect(sandbox.refresh()).rejects.toThrow(SandboxNotFoundError);
  });

  test("a codebase that others use by now stays with them", async () => {
    const first = await Sandbox.create(here());
    const second = await Sandbox.fromCodebase(first.codebaseId, here());
    await first[Symbol.asyncDispose]();
    expect(await remains()).toEqual({ codebases: 1, sandboxes: 1 });
    await second.destroy({ deleteCodebase: true });
    await second.close();
  });

  test("a client that was handed in is used and left open", async () => {
    {
      await using sandbox = await Sandbox.create({ client });
      expect(sandbox.client).toBe(client);
    }
    expect(await remains()).toEqual(NOTHING);
  });

  test("closing lets go of the connection and of nothing else", async () => {
    const sandbox = await Sandbox.create(here());
    await sandbox.close();
    await expect(sandbox.run("true")).rejects.toThrow(ConnectionError);
    const again = await Sandbox.connect(sandbox.id, here());
    expect(again.status).toBe("running");
    await again.destroy({ deleteCodebase: true });
    await again.close();
  });
});

describe("an opening that fails leaves nothing behind", () => {
  const failures: readonly [
    string,
    (top: string) => Parameters<typeof Sandbox.fromLocal>[1],
    new (...a: never) => SandboxError,
  ][] = [
    ["a preset that nobody knows", () => ({ preset: "no-such-preset" }), InvalidConfigurationError],
    ["a rule that is none", () => ({ permissions: [{ pattern: "", permission: "read" }] }), InvalidConfigurationError],
    ["an environment that the server refuses", () => ({ env: { "NOT A NAME=": "x" } }), InvalidConfigurationError],
  ];

  test.each(failures)("%s", async (_title, options, expected) => {
    const top = project({ "a.txt": "a" });
    await expect(Sandbox.fromLocal(top, { ...here(), ...options(top) })).rejects.toThrow(expected);
  });

  test("an upload that is aborted half-way", async () => {
    const top = project({ "a.bin": "x".repeat(4_000_000), "b.bin": "y".repeat(4_000_000) });
    const abort = new AbortController();
    const reason = new Error("enough");
    const opening = Sandbox.fromLocal(top, {
      ...here(),
      signal: abort.signal,
      onProgress: ({ phase }) => {
        if (phase === "uploading") abort.abort(reason);
      },
    });
    await expect(opening).rejects.toBe(reason);
  });

  test("an abort between making it and starting it", async () => {
    const abort = new AbortController();
    const reason = new Error("enough");
    const watching = new SandboxClient(here());
    const create = watching.createSandbox.bind(watching);
    watching.createSandbox = async (...request) => {
      const made = await create(...request);
      abort.abort(reason);
      return made;
    };
    await expect(Sandbox.create({ client: watching, signal: abort.signal })).rejects.toBe(reason);
    await watching.close();
  });

  test("a start that fails", async () => {
    const watching = new SandboxClient(here());
    watching.startSandbox = async (id) => {
      expect(await remains()).toEqual({ codebases: 1, sandboxes: 1 });
      return await client.startSandbox(`${id}0`);
    };
    await expect(Sandbox.fromLocal(project({ "a.txt": "a" }), { client: watching })).rejects.toThrow();
    await watching.close();
  });

  test("a directory that is none, or not there", async () => {
    const top = project({ "a.txt": "a" });
    for (const path of [join(top, "a.txt"), join(top, "missing")]) {
      await expect(Sandbox.fromLocal(path, here())).rejects.toThrow(InvalidConfigurationError);
    }
  });

  test("nobody there", async () => {
    const listener = createServer().listen(0, "127.0.0.1");
    await once(listener, "listening");
    const { port } = listener.address() as AddressInfo;
    listener.close();
    await expect(Sandbox.create({ endpoint: `127.0.0.1:${port}`, retries: 0 })).rejects.toThrow(ConnectionError);
  });
});

describe("the project's own policy", () => {
  const POLICY = 'version: 1\npermissions:\n  - { pattern: "/a.txt", permission: write }\nenv: { FROM: policy }\n';

  test("counts when the caller says nothing of rules", async () => {
    await using sandbox = await Sandbox.fromLocal(
      project({ ".agentfense.yaml": POLICY, "a.txt": "a", "b.txt": "b" }),
      here(),
    );
    expect((await sandbox.run("ls -A; echo $FROM")).stdout).toBe("a.txt\npolicy\n");
  });

  test("the caller's rules win, the rest of it still counts; policy false ignores it", async () => {
    const top = project({ ".agentfense.yaml": POLICY, "a.txt": "a", "b.txt": "b" });
    await using preset = await Sandbox.fromLocal(top, { ...here(), preset: "read-only" });
    expect((await preset.run("ls; echo $FROM")).stdout).toBe("a.txt\nb.txt\npolicy\n");
    await using ignored = await Sandbox.fromLocal(top, { ...here(), policy: false });
    expect((await ignored.run("ls; echo $FROM")).stdout).toBe("a.txt\nb.txt\n\n");
  });

  test("one that cannot be understood stops the opening", async () => {
    const top = project({ ".agentfense.yaml": "version: 1\npermisions: []\n" });
    await expect(Sandbox.fromLocal(top, here())).rejects.toThrow(ProjectPolicyError);
  });
});

describe("getOrCreate", () => {
  test("makes one, then finds it, starts it when it is stopped, and leaves it alone", async () => {
    const options = { ...here(), directory: project({ "a.txt": "a" }) };
    const first = await Sandbox.getOrCreate("job", options);
    expect(first.status).toBe("running");
    await first.stop();
    await first[Symbol.asyncDispose]();
    const again = await Sandbox.getOrCreate("job", options);
    expect([again.id, again.status]).toEqual([first.id, "running"]);
    const other = await Sandbox.getOrCreate("another job", here());
    expect(other.id).not.toBe(first.id);
    expect((await Sandbox.list(here()).toArray()).map(({ labels }) => labels["agentfense-key"]).sort()).toEqual([
      "another job",
      "job",
    ]);
    for (const sandbox of [again, other]) {
      await sandbox.destroy({ deleteCodebase: true });
      await sandbox.close();
    }
  });

  test("callers that race end with the same one, and the others' are gone", async () => {
    const directory = project({ "a.txt": "a" });
    const racing = Array.from({ length: 6 }, (_, index) =>
      Sandbox.getOrCreate("race", index % 2 === 0 ? { ...here(), directory } : here()),
    );
    const sandboxes = await Promise.all(racing);
    expect(new Set(sandboxes.map(({ id }) => id)).size).toBe(1);
    expect(await remains()).toEqual({ codebases: 1, sandboxes: 1 });
    await sandboxes[0]!.destroy({ deleteCodebase: true });
    for (const sandbox of sandboxes) await sandbox.close();
  });

  test("the one who made it deletes its codebase with it", async () => {
    const made = await Sandbox.getOrCreate("mine", here());
    await made.destroy();
    await made.close();
  });

  test("a directory and a codebase at once, or no key, is refused", async () => {
    const both = { ...here(), directory: scratch, codebaseId: "cb_0123456789abcdef" } as unknown as {
      directory: string;
    };
    await expect(Sandbox.getOrCreate("x", both)).rejects.toThrow(InvalidConfigurationError);
    await expect(Sandbox.getOrCreate("", here())).rejects.toThrow(InvalidConfigurationError);
  });
});

test("what is uploaded: ignored files and .git stay behind, links stay links", async () => {
  const top = project({ ".gitignore": "*.log\n", "a.txt": "a", "b.log": "b", "c.tmp": "c" });
  mkdirSync(join(top, ".git"));
  writeFileSync(join(top, ".git/config"), "[core]");
  symlinkSync("a.txt", join(top, "link"));
  chmodSync(join(top, "a.txt"), 0o755);
  await using sandbox = await Sandbox.fromLocal(top, { ...here(), ignore: ["*.tmp"], preset: "read-only" });
  expect((await sandbox.run("ls -A; readlink link; test -x a.txt && echo executable")).stdout).toBe(
    ".gitignore\na.txt\nlink\na.txt\nexecutable\n",
  );
});

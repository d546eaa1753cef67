import { chmod } from "node:fs/promises";
import { userInfo } from "node:os";
import { join } from "node:path";
import { EntryKind } from "@agentfense/protocol/codebase";
import { describe, expect, test } from "vitest";
import { registryError } from "../../../../test/support/scripted-server.ts";
import { makeTree } from "../../../../test/support/upload-tree.ts";
import { scriptedServer } from "./scripted-server.ts";

/** Keeps what is uploaded, and asks only for content it does not have. */
async function rememberingServer(options: { failing?: boolean } = {}) {
  const contents = new Map<string, string>();
  const batches: { begin: unknown; entries: Map<string, string> }[] = [];
  const calls: string[] = [];
  const server = await scriptedServer({
    codebases: {
      createCodebase({ name, ownerId }) {
        calls.push(`create ${name} for ${ownerId}`);
        return { id: "cb_new", name };
      },
      deleteCodebase({ codebaseId }) {
        calls.push(`delete ${codebaseId}`);
        return {};
      },
      compareManifest: ({ entries }) => ({
        missing: entries.filter(({ checksum }) => !contents.has(checksum)).map(({ path }) => path),
      }),
      async batchUpload(chunks) {
        const entries = new Map<string, string>();
        let begin: unknown;
        let last: { path: string; checksum: string } | undefined;
        for await (const chunk of chunks) {
          if (chunk.begin !== undefined) {
            const { codebaseId, replaceAll, baseVersion, message } = chunk.begin;
            begin = { codebaseId, replaceAll, baseVersion, message };
          }
          for (const { entry, data } of chunk.items) {
            if (entry !== undefined) {
              const detail = entry.kind === EntryKind.SYMLINK ? entry.symlinkTarget : entry.mode.toString(8);
              entries.set(entry.path, `${EntryKind[entry.kind]} ${detail}`);
              last = entry;
            }
            if (data.length > 0 && last !== undefined) {
              contents.set(last.checksum, (contents.get(last.checksum) ?? "") + Buffer.from(data).toString());
            }
          }
        }
        if (options.failing) throw registryError("LIMIT_EXCEEDED", "too much");
        batches.push({ begin, entries });
        return { codebaseId: "cb_new", version: BigInt(batches.length), filesChanged: entries.size };
      },
    },
  });
  return { ...server, contents, batches, calls };
}

const TREE = {
  "src/a.ts": "one",
  "src/b.ts": "two",
  "empty/": "",
  link: "-> src/a.ts",
  ".gitignore": "*.log\n",
  "x.log": "no",
};

describe("codebase upload", () => {
  test("makes a codebase of a directory, and sends the second time only what is new", async () => {
    const server = await rememberingServer();
    const top = await makeTree(TREE);
    const first = await server.run(["codebase", "upload", "--name", "demo", "--owner", "alice", top]);
    expect(first).toEqual({
      code: 0,
      stdout: "cb_new  version 1, 4 files (12 B), 3 files (12 B) sent\n",
      stderr: "",
    });
    expect(server.calls).toEqual(["create demo for alice"]);
    expect(Object.fromEntries(server.batches[0]!.entries)).toEqual({
      ".gitignore": "FILE 644",
      empty: "DIRECTORY 755",
      link: "SYMLINK src/a.ts",
      src: "DIRECTORY 755",
      "src/a.ts": "FILE 644",
      "src/b.ts": "FILE 644",
    });
    expect([...server.contents.values()].sort()).toEqual(["*.log\n", "one", "two"]);

    await chmod(join(top, "src/a.ts"), 0o755);
    const second = await server.run([
      "codebase",
      "upload",
      "--json",
      "--codebase",
      "cb_new",
      "--delete",
      "--message",
      "m",
      "--base-version",
      "1",
      top,
    ]);
    expect(JSON.parse(second.stdout)).toEqual({
      codebaseId: "cb_new",
      version: 2,
      filesChanged: 6,
      files: 4,
      bytes: 12,
      filesSent: 0,
      bytesSent: 0,
      leftOut: [],
    });
    expect(server.batches[1]!.begin).toEqual({ codebaseId: "cb_new", replaceAll: true, baseVersion: 1n, message: "m" });
    expect(server.batches[1]!.entries.get("src/a.ts")).toBe("FILE 755");
  });

  test("a codebase that was made for an upload goes away with it", async () => {
    const server = await rememberingServer({ failing: true });
    const top = await makeTree({ a: "1" });
    const { code, stderr } = await server.run(["codebase", "upload", "--name", "demo", top]);
    expect({ code, stderr, calls: server.calls }).toEqual({
      code: 1,
      stderr: "agentfense: too much\n",
      calls: [`create demo for ${userInfo().username}`, "delete cb_new"],
    });
  });

  test("what .agentfense.yaml ignores stays here, unless no notice is to be taken", async () => {
    const server = await rememberingServer();
    const top = await makeTree({ ".agentfense.yaml": 'version: 1\nignore: ["*.log"]\n', "a.log": "1", b: "2" });
    const first = await server.run(["codebase", "upload", "--name", "n", top]);
    expect(first).toMatchObject({ code: 0, stderr: "agentfense: ignore from .agentfense.yaml\n" });
    expect((await server.run(["codebase", "upload", "--no-ignore", "--name", "n", top])).stderr).toBe("");
    expect(server.batches.map(({ entries }) => [...entries.keys()].sort())).toEqual([
      [".agentfense.yaml", "b"],
      [".agentfense.yaml", "a.log", "b"],
    ]);
  });

  const asRoot = process.geteuid?.() === 0;
  const unreadable = `what cannot be read is an error that names it${asRoot ? "" : " (skipped: needs root to become another user)"}`;
  test.skipIf(!asRoot)(unreadable, async () => {
    const server = await rememberingServer();
    const top = await makeTree({ open: "1", "secret.txt": "2", "closed/x": "3" });
    await chmod(top, 0o755);
    await chmod(join(top, "secret.txt"), 0o600);
    await chmod(join(top, "closed"), 0o700);
    const identity = { uid: 65_534, gid: 65_534 };
    expect(await server.run(["codebase", "upload", top], { identity })).toEqual({
      code: 1,
      stdout: "",
      stderr:
        "agentfense: these cannot be read:\n  closed\n  secret.txt\nhint: leave them out with --skip-unreadable\n",
    });
    expect(server.calls).toEqual([]);
    const skipping = await server.run(["codebase", "upload", "--skip-unreadable", "--name", "n", top], { identity });
    expect(skipping).toEqual({
      code: 0,
      stdout: "cb_new  version 1, 1 file (1 B), 1 file (1 B) sent\n",
      stderr: "agentfense: left out: closed: cannot be read\nagentfense: left out: secret.txt: cannot be read\n",
    });
  });
});

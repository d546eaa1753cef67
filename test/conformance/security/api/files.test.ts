import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  globSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exec, makeCodebase, makeSandbox } from "../../../support/belongings.ts";
import { eventually } from "../../../support/eventually.ts";
import { GrpcClient, type Message } from "../../../support/grpc-client.ts";
import { grpcFrame, http2Post, rawExchange, rawRequest, statusOf } from "../../../support/raw-http.ts";
import { TestServer } from "../../../support/server.ts";

const CANARY = "CANARY-OUTSIDE-51c3";
const MAX_FILE = 192 * 1024 * 1024;

let server: TestServer;
let client: GrpcClient;
let outside: string;

beforeAll(async () => {
  server = await TestServer.start({ settings: { storage: { max_file_size: MAX_FILE } } });
  client = new GrpcClient(server.grpc);
  outside = mkdtempSync(join(tmpdir(), "agentfense-outside-"));
  writeFileSync(join(outside, "secret.txt"), CANARY);
});
afterAll(async () => {
  client?.[Symbol.dispose]();
  await server?.[Symbol.asyncDispose]();
  rmSync(outside, { recursive: true, force: true });
});

/** The codebase's files as the API lists them: path and what it is. */
async function listing(codebase_id: string): Promise<string[]> {
  const { files } = await client.call("CodebaseService", "ListFiles", { codebase_id, recursive: true });
  return (files as Message[]).map(({ path, is_dir, symlink_target }) => `${path}${is_dir ? "/" : ""}${symlink_target}`);
}

async function version(codebase_id: string): Promise<unknown> {
  return (await client.call("CodebaseService", "GetCodebase", { codebase_id })).version;
}

/** Content on its way in. */
function staged(codebase_id: string): string[] {
  return globSync(`codebases/${codebase_id}/staging/**/*`, { cwd: server.directory });
}

describe("paths", () => {
  const HOSTILE: readonly string[] = [
    "..",
    ".",
    "../x",
    "a/../../b",
    "a/../b",
    "a/./b",
    "a//b",
    "//etc/x",
    "a/",
    "a/..",
    "..\\x",
    "a\\b",
    "C:\\x\\y",
    "a\0b",
    "a\nb",
    "\x1b[2J",
    "a\u0085b",
    `${"n".repeat(256)}`,
    `${"d/".repeat(2100)}x`,
    "\ud800",
  ];

  test("API-08 a path that leads anywhere else is refused by everything that writes, and nothing is written", async () => {
    const codebase_id = await makeCodebase(client, { "kept.txt": "kept" }, "owner");
    const before = [await listing(codebase_id), await version(codebase_id)];
    for (const path of [...HOSTILE, ""]) {
      const metadata = { codebase_id, file_path: path };
      const attempts = {
        upload: await client.outcome("CodebaseService", "UploadFiles", [{ metadata }, { data: Buffer.from("x") }]),
        link: await client.outcome("CodebaseService", "UploadFiles", [
          { metadata: { ...metadata, symlink_target: "x" } },
        ]),
        batch: await client.outcome("CodebaseService", "BatchUpload", [
          { begin: { codebase_id }, items: [{ entry: { path: "first.txt", size: "1" }, data: Buffer.from("x") }] },
          { items: [{ entry: { path, size: "1" }, data: Buffer.from("x") }] },
        ]),
        absent: await client.outcome("CodebaseService", "BatchUpload", [
          { begin: { codebase_id }, items: [{ entry: { path, kind: "ENTRY_KIND_ABSENT" } }] },
        ]),
        rename: await client.outcome("CodebaseService", "RenameFile", [
          { codebase_id, from_path: "kept.txt", to_path: path },
        ]),
        renameFrom: await client.outcome("CodebaseService", "RenameFile", [
          { codebase_id, from_path: path, to_path: "y" },
        ]),
        delete: await client.outcome("CodebaseService", "DeleteFile", [
          { codebase_id, file_path: path, recursive: true },
        ]),
        download: await client.outcome("CodebaseService", "DownloadFile", [{ codebase_id, file_path: path }]),
        compare: await client.outcome("CodebaseService", "CompareManifest", [{ codebase_id, entries: [{ path }] }]),
      };
      const codes = Object.fromEntries(Object.entries(attempts).map(([name, { code }]) => [name, code]));
      // Half a surrogate pair becomes U+FFFD on the way out of this process: a strange name, and a good one.
      if (!path.isWellFormed()) continue;
      expect([path.slice(0, 40), codes]).toEqual([
        path.slice(0, 40),
        Object.fromEntries(Object.keys(codes).map((name) => [name, 3])),
      ]);
      expect([path.slice(0, 40), await listing(codebase_id), await version(codebase_id)]).toEqual([
        path.slice(0, 40),
        ...before,
      ]);
    }
    expect(staged(codebase_id)).toEqual([]);
  });

  test("API-08 an absolute path is one of the codebase", async () => {
    const codebase_id = await makeCodebase(client, {}, "owner");
    await client.upload(codebase_id, `${outside}/secret.txt`, "inside");
    expect(readFileSync(join(outside, "secret.txt"), "utf8")).toBe(CANARY);
    expect((await listing(codebase_id)).at(-1)).toMatch(/secret\.txt$/);
    expect((await client.download(codebase_id, "/etc/passwd").catch(() => "refused")).toString()).toBe("refused");
  });

  test("API-08 a name that is not UTF-8 is refused", async () => {
    const codebase_id = await makeCodebase(client, { "kept.txt": "kept" }, "owner");
    const before = await listing(codebase_id);
    // UploadChunk { metadata { codebase_id, file_path: ff fe 2f 66 } }
    const name = Buffer.from([0xff, 0xfe, 0x2f, 0x66]);
    const id = Buffer.from(codebase_id);
    const metadata = Buffer.concat([Buffer.from([0x0a, id.length]), id, Buffer.from([0x12, name.length]), name]);
    const message = Buffer.concat([Buffer.from([0x0a, metadata.length]), metadata]);
    const path = "/sandbox.v1.CodebaseService/UploadFiles";
    const answer = await http2Post(
      server.grpc,
      path,
      Buffer.concat([grpcFrame(message), grpcFrame(Buffer.from([0x12, 1, 0x78]))]),
    );
    // What is no message at all is INTERNAL to gRPC's own libraries, and to this one.
    expect(answer.headers["grpc-status"]).toMatch(/^(?:3|13)$/);
    expect(decodeURIComponent(answer.headers["grpc-message"]!)).not.toMatch(/\/|reference/);
    expect(await listing(codebase_id)).toEqual(before);
    for (const target of [
      "%ff%fe",
      "a%00b",
      "a%0ab",
      "..%2fx",
      "%2e%2e/x",
      "../x",
      "a/%2e%2e/%2e%2e/x",
      "a%5cb",
      "a//b",
      "/x",
      "//x",
      "x/",
      "%2F%2Fx",
      "a%2F%2Fb",
      "a%2F/b",
      "x%2F",
    ]) {
      const request = rawRequest(
        `PUT /v1/codebases/${codebase_id}/files/${target}`,
        { Host: "localhost", "Content-Length": "1" },
        "x",
      );
      expect([target, statusOf(await rawExchange(server.http, request))]).toEqual([
        target,
        expect.toSatisfy((status) => status === 400 || status === 404),
      ]);
    }
    expect(await listing(codebase_id)).toEqual(before);
  });
});

describe("links", () => {
  /** Every way to a file behind these paths; none may succeed. */
  async function attempts(codebase_id: string, link: string, below: string): Promise<Record<string, number>> {
    const at = `${link}/${below}`;
    const calls: Record<string, [string, Message[]]> = {
      "download below": ["DownloadFile", [{ codebase_id, file_path: at }]],
      "download the link": ["DownloadFile", [{ codebase_id, file_path: link }]],
      "list below": ["ListFiles", [{ codebase_id, path: at }]],
      "upload below": [
        "UploadFiles",
        [{ metadata: { codebase_id, file_path: `${link}/new.txt` } }, { data: Buffer.from("x") }],
      ],
      "upload over": ["UploadFiles", [{ metadata: { codebase_id, file_path: at } }, { data: Buffer.from("x") }]],
      "link below": ["UploadFiles", [{ metadata: { codebase_id, file_path: `${link}/l`, symlink_target: "x" } }]],
      "delete below": ["DeleteFile", [{ codebase_id, file_path: at, recursive: true }]],
      "rename from below": ["RenameFile", [{ codebase_id, from_path: at, to_path: "taken" }]],
      "rename to below": ["RenameFile", [{ codebase_id, from_path: "plain.txt", to_path: `${link}/moved` }]],
      "archive of it": ["DownloadArchive", [{ codebase_id, path: at }]],
    };
    const codes: Record<string, number> = {};
    for (const [what, [method, requests]] of Object.entries(calls)) {
      const { code, messages } = await client.outcome("CodebaseService", method, requests);
      expect([
        what,
        JSON.stringify(messages),
        Buffer.concat(messages.map(({ data }) => (data as Buffer) ?? Buffer.alloc(0))).toString("latin1"),
      ]).toEqual([what, expect.not.stringContaining(CANARY), expect.not.stringContaining(CANARY)]);
      codes[what] = code;
    }
    return codes;
  }

  test("API-09 no link of a codebase is followed, by whatever way it came there", async () => {
    const codebase_id = await makeCodebase(client, { "plain.txt": "plain", "real/secret.txt": "real" }, "owner");
    const targets: Record<string, string> = {
      absolute: outside,
      up: `${"../".repeat(20)}${outside.slice(1)}`,
      inside: "real",
      self: "self",
      proc: "/proc/self/root",
      cwd: "/proc/self/cwd",
    };
    for (const [name, symlink_target] of Object.entries(targets)) {
      await client.upload(codebase_id, name, "", { symlink_target });
    }
    const sandbox = await makeSandbox(client, codebase_id);
    const planted = await exec(client, sandbox, `ln -s ${outside} planted && ln -s ../real through && ls`);
    expect(planted.sync_problems).toEqual([]);
    const before = await listing(codebase_id);
    for (const name of [...Object.keys(targets), "planted"]) {
      const codes = await attempts(codebase_id, name, "secret.txt");
      for (const [what, code] of Object.entries(codes)) {
        const allowed = what === "list below" ? [0, 3, 5, 9] : [3, 5, 9];
        expect([name, what, allowed.includes(code), code]).toEqual([name, what, true, code]);
      }
    }
    expect(await listing(codebase_id)).toEqual(before);
    expect(readdirSync(outside)).toEqual(["secret.txt"]);
    expect(readFileSync(join(outside, "secret.txt"), "utf8")).toBe(CANARY);

    // As an archive the links are links, and deleting one takes only itself.
    const archive = await client.collect("CodebaseService", "DownloadArchive", { codebase_id });
    expect(Buffer.concat(archive.map(({ data }) => data as Buffer)).toString("latin1")).not.toContain(CANARY);
    for (const name of [...Object.keys(targets), "planted"]) {
      await client.call("CodebaseService", "DeleteFile", { codebase_id, file_path: name, recursive: true });
    }
    expect(readFileSync(join(outside, "secret.txt"), "utf8")).toBe(CANARY);
    expect((await client.download(codebase_id, "real/secret.txt")).toString()).toBe("real");
  });

  test("API-09 a directory that became a link behind the server's back is not followed either", async () => {
    const codebase_id = await makeCodebase(client, { "plain.txt": "plain", "dir/secret.txt": "inside" }, "owner");
    const tree = join(server.directory, "codebases", codebase_id, "tree");
    renameSync(join(tree, "dir"), join(tree, "..", "moved"));
    symlinkSync(outside, join(tree, "dir"));
    for (const [what, code] of Object.entries(await attempts(codebase_id, "dir", "secret.txt"))) {
      // What the manifest has is listed; what it cannot find as that on the disk is refused, by whatever name.
      if (what !== "list below") expect([what, code === 0]).toEqual([what, false]);
    }
    expect(readdirSync(outside)).toEqual(["secret.txt"]);
    expect(readFileSync(join(outside, "secret.txt"), "utf8")).toBe(CANARY);
    rmSync(join(tree, "dir"));
    renameSync(join(tree, "..", "moved"), join(tree, "dir"));
  });
});

describe("downloads", () => {
  test("API-12 only a regular file can be downloaded", async () => {
    const codebase_id = await makeCodebase(client, { "d/a.txt": "a", "f.txt": "content" }, "owner");
    for (const file_path of ["d", "/d", "nothing", "f.txt/x"]) {
      const { code, messages } = await client.outcome("CodebaseService", "DownloadFile", [{ codebase_id, file_path }]);
      expect([file_path, [5, 9].includes(code), messages]).toEqual([file_path, true, []]);
    }
    const tree = join(server.directory, "codebases", codebase_id, "tree");
    for (const make of [
      ["mkfifo"],
      ["mknod", "c", "1", "5"],
      ["mknod", "c", "5", "0"],
      ["ln", "-s", "/etc/passwd"],
      ["mkdir"],
    ]) {
      rmSync(join(tree, "f.txt"), { recursive: true, force: true });
      const [program, ...rest] = make;
      const args = program === "mknod" ? [join(tree, "f.txt"), ...rest] : [...rest, join(tree, "f.txt")];
      execFileSync(program!, args);
      const { code, messages } = await client.outcome("CodebaseService", "DownloadFile", [
        { codebase_id, file_path: "f.txt" },
      ]);
      expect([make, code === 0, Buffer.concat(messages.map(({ data }) => data as Buffer)).length]).toEqual([
        make,
        false,
        0,
      ]);
      expect((await fetch(`${server.http}/v1/codebases/${codebase_id}/files/f.txt`)).status).toBeGreaterThanOrEqual(
        400,
      );
    }
    expect((await fetch(`${server.http}/healthz`)).status).toBe(200);
  });

  test("API-12 a file that is replaced during its download arrives as a whole, old or new", async () => {
    const old = Buffer.alloc(24 * 1024 * 1024, "old ");
    const codebase_id = await makeCodebase(client, { "large.bin": old }, "owner");
    const stream = client.stream("CodebaseService", "DownloadFile", { codebase_id, file_path: "large.bin" });
    const hash = createHash("sha256");
    let replaced = false;
    for await (const { data } of stream as AsyncIterable<{ data: Buffer }>) {
      hash.update(data);
      if (replaced) continue;
      replaced = true;
      await client.upload(codebase_id, "large.bin", Buffer.alloc(8 * 1024 * 1024, "new "));
      await client.call("CodebaseService", "DeleteFile", { codebase_id, file_path: "large.bin" });
    }
    expect(hash.digest("hex")).toBe(createHash("sha256").update(old).digest("hex"));
  });
});

describe("uploads", () => {
  test("API-13 an upload that is more, less or nothing is refused and leaves nothing", async () => {
    const codebase_id = await makeCodebase(client, { "a.txt": "old" }, "owner");
    const before = [await listing(codebase_id), await version(codebase_id)];
    const metadata = { codebase_id, file_path: "a.txt" };
    const data = Buffer.from("0123456789");
    const attempts: Record<string, [number, Message[]]> = {
      "more than announced": [15, [{ metadata: { ...metadata, total_size: "5" } }, { data }]],
      "less than announced": [15, [{ metadata: { ...metadata, total_size: "50" } }, { data }]],
      "nothing of what was announced": [15, [{ metadata: { ...metadata, total_size: "50" } }]],
      "a size that cannot be": [3, [{ metadata: { ...metadata, total_size: "-1" } }, { data }]],
      "a size beyond the limit": [8, [{ metadata: { ...metadata, total_size: String(MAX_FILE + 1) } }, { data }]],
      "an absurd size": [3, [{ metadata: { ...metadata, total_size: "9223372036854775807" } }, { data }]],
      "no metadata": [3, []],
    };
    for (const [what, [code, requests]] of Object.entries(attempts)) {
      expect([what, (await client.outcome("CodebaseService", "UploadFiles", requests)).code]).toEqual([what, code]);
      expect([what, await listing(codebase_id), await version(codebase_id)]).toEqual([what, ...before]);
    }
    expect(staged(codebase_id)).toEqual([]);
    expect((await client.download(codebase_id, "a.txt")).toString()).toBe("old");
  });

  test("API-13 an endless upload ends at the limit, on the disk and not in memory", async () => {
    const codebase_id = await makeCodebase(client, { "a.txt": "old" }, "owner");
    const memory = (): number =>
      Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, "utf8"))?.[1]) / 1024;
    const before = memory();
    const call = client.sending("CodebaseService", "UploadFiles");
    const status = new Promise<{ code: number }>((resolve) => call.once("status", resolve));
    call.on("error", () => {});
    call.write({ metadata: { codebase_id, file_path: "a.txt" } });
    const data = Buffer.alloc(256 * 1024, 7);
    let ended = false;
    void status.then(() => {
      ended = true;
    });
    for (let sent = 0; !ended && sent < 2 * MAX_FILE; sent += data.length) {
      if (!call.write({ data })) {
        await Promise.race([status, new Promise((resolve) => call.once("drain", resolve))]);
      }
    }
    expect((await status).code).toBe(8);
    expect(memory() - before).toBeLessThan(MAX_FILE / 1024 / 1024 / 1.5);
    await eventually(() => expect(staged(codebase_id)).toEqual([]));
    expect((await client.download(codebase_id, "a.txt")).toString()).toBe("old");
  });

  test("API-14 a wrong checksum or size is refused at the end, and the old file stays", async () => {
    const codebase_id = await makeCodebase(client, { "a.txt": "old" }, "owner");
    const wrong = createHash("sha256").update("something else").digest("hex");
    for (const [extra, code] of [
      [{ checksum: wrong }, 15],
      [{ checksum: "not a checksum" }, 3],
      [{ checksum: wrong.slice(1) }, 3],
      [{ total_size: "4" }, 15],
      [{ checksum: wrong, total_size: "999" }, 15],
    ] as const) {
      const failure = await client
        .upload(codebase_id, "a.txt", "new", extra)
        .catch((error: { code: number }) => error.code);
      expect([extra, failure]).toEqual([extra, code]);
      expect((await client.download(codebase_id, "a.txt")).toString()).toBe("old");
    }
    const entry = { path: "a.txt", size: "3", checksum: wrong };
    const batch = await client.outcome("CodebaseService", "BatchUpload", [
      { begin: { codebase_id }, items: [{ entry: { path: "other.txt", size: "1" }, data: Buffer.from("x") }] },
      { items: [{ entry, data: Buffer.from("new") }] },
    ]);
    expect(batch.code).toBe(15);
    expect(await listing(codebase_id)).toHaveLength(1);
    expect(await version(codebase_id)).toBe("1");
    expect(staged(codebase_id)).toEqual([]);
    const right = createHash("sha256").update("new").digest("hex");
    expect(await client.upload(codebase_id, "a.txt", "new", { checksum: right.toUpperCase() })).toMatchObject({
      checksum: right,
    });
  });

  test("API-15 of uploads to one path at once one wins as a whole, also while a sandbox writes it", async () => {
    const codebase_id = await makeCodebase(client, { "a.bin": "old" }, "owner");
    const sandbox = await makeSandbox(client, codebase_id);
    const size = 1024 * 1024;
    const contents = ["a", "b", "c", "d"].map((letter) => Buffer.alloc(size, letter));
    for (let round = 0; round < 3; round++) {
      const results = await Promise.all([
        ...contents.map((content) => client.upload(codebase_id, "a.bin", content)),
        exec(client, sandbox, `head -c ${size} /dev/zero | tr '\\0' s > a.bin`),
      ]);
      expect(results).toHaveLength(5);
      const content = await client.download(codebase_id, "a.bin");
      expect(content.length).toBe(size);
      expect(new Set(content).size).toBe(1);
      const { stdout } = await exec(client, sandbox, "wc -c < a.bin; fold -w 1048576 a.bin | tr -s 'a-z'");
      expect(stdout).toMatch(/^1048576\n[a-ds]\n?$/);
      const { files } = await client.call("CodebaseService", "ListFiles", { codebase_id });
      const stored = (files as Message[]).find(({ path }) => String(path).endsWith("a.bin"));
      expect(stored?.checksum).toBe(
        createHash("sha256")
          .update(await client.download(codebase_id, "a.bin"))
          .digest("hex"),
      );
    }
    expect(staged(codebase_id)).toEqual([]);
  });
});

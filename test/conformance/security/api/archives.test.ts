import { existsSync, globSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeCodebase } from "../../../support/belongings.ts";
import { GrpcClient, type Message, type Outcome } from "../../../support/grpc-client.ts";
import { TestServer } from "../../../support/server.ts";
import { pax, tar } from "../../../support/tar.ts";

const MAX_FILE = 64 * 1024;
const MAX_FILES = 50;
const MAX_BYTES = 512 * 1024;

let server: TestServer;
let client: GrpcClient;
let outside: string;
let codebase_id: string;

beforeAll(async () => {
  server = await TestServer.start({
    settings: { storage: { max_file_size: MAX_FILE, max_files_per_owner: MAX_FILES, max_bytes_per_owner: MAX_BYTES } },
  });
  client = new GrpcClient(server.grpc);
  outside = mkdtempSync(join(tmpdir(), "agentfense-outside-"));
  writeFileSync(join(outside, "kept.txt"), "kept");
  codebase_id = await makeCodebase(client, { "a.txt": "old", "d/b.txt": "old" }, "owner");
  await client.upload(codebase_id, "link", "", { symlink_target: outside });
});
afterAll(async () => {
  client?.[Symbol.dispose]();
  await server?.[Symbol.asyncDispose]();
  rmSync(outside, { recursive: true, force: true });
});

function uploadArchive(archive: Buffer, metadata: Message = {}): Promise<Outcome> {
  const pieces = Array.from({ length: Math.ceil(archive.length / 65_536) }, (_, index) => ({
    data: archive.subarray(index * 65_536, (index + 1) * 65_536),
  }));
  return client.outcome("CodebaseService", "UploadArchive", [{ metadata: { codebase_id, ...metadata } }, ...pieces]);
}

async function state(): Promise<unknown> {
  const { version, size, file_count } = await client.call("CodebaseService", "GetCodebase", { codebase_id });
  const { files } = await client.call("CodebaseService", "ListFiles", { codebase_id, recursive: true });
  return { version, size, file_count, files: (files as Message[]).map(({ path, checksum }) => [path, checksum]) };
}

function staged(): string[] {
  return globSync("codebases/*/staging/**/*", { cwd: server.directory });
}

const GOOD = { name: "good.txt", content: "good" };
const HUGE = Buffer.concat([Buffer.from([0x80]), Buffer.alloc(10, 0xff), Buffer.from([0xff])]).toString("latin1");

const BELOW_LINK = "a file below a link of the codebase";

/** By the attack: the archive. In all but the first places there is a good entry before it, which must not stay. */
const REFUSED: Readonly<Record<string, Buffer>> = {
  "a name with ..": tar([GOOD, { name: "../slipped.txt", content: "x" }]),
  "a name that comes back": tar([GOOD, { name: "d/../../slipped.txt", content: "x" }]),
  "a name with .. inside": tar([GOOD, { name: "d/../e.txt", content: "x" }]),
  "an absolute name": tar([GOOD, { name: "/tmp/slipped.txt", content: "x" }]),
  "a name with a backslash": tar([GOOD, { name: "..\\slipped.txt", content: "x" }]),
  "a name with a control character": tar([GOOD, { name: "a\x1b[2Jb", content: "x" }]),
  "a name that is not UTF-8": tar([GOOD, { name: Buffer.from([0x66, 0xff, 0xfe]), content: "x" }]),
  "an empty name": tar([GOOD, { name: "", content: "x" }]),
  "a file named dot": tar([GOOD, { name: ".", content: "x" }]),
  "an extended name with ..": tar([GOOD, pax({ path: "../slipped.txt" }), { name: "innocent", content: "x" }]),
  "an extended absolute name": tar([GOOD, pax({ path: "/etc/slipped" }), { name: "innocent", content: "x" }]),
  "a GNU long name with ..": tar([
    GOOD,
    { name: "././@LongLink", type: "L", content: `${"../".repeat(60)}slipped.txt\0` },
    { name: "innocent", content: "x" },
  ]),
  "a hard link": tar([GOOD, { name: "hard", type: "1", linkName: "a.txt" }]),
  "a hard link to the host": tar([GOOD, { name: "hard", type: "1", linkName: "/etc/passwd" }]),
  "a character device": tar([GOOD, { name: "null", type: "3" }]),
  "a block device": tar([GOOD, { name: "disk", type: "4" }]),
  "a fifo": tar([GOOD, { name: "fifo", type: "6" }]),
  "an unknown kind": tar([GOOD, { name: "what", type: "Z" }]),
  "a file below a link of the archive": tar([
    GOOD,
    { name: "out", type: "2", linkName: "/tmp" },
    { name: "out/slipped.txt", content: "x" },
  ]),
  [BELOW_LINK]: tar([GOOD, { name: "link/slipped.txt", content: "x" }]),
  "a directory in place of a link, and a file in it": tar([
    GOOD,
    { name: "l2", type: "2", linkName: "/tmp" },
    { name: "l2", type: "5" },
    { name: "l2/slipped.txt", content: "x" },
  ]),
  "the same name twice": tar([GOOD, { name: "twice", content: "1" }, { name: "twice", content: "2" }]),
  "the same name as a file and a directory": tar([
    { name: "n", content: "1" },
    { name: "n/x", content: "2" },
  ]),
  "a link without a target": tar([GOOD, { name: "nowhere", type: "2", linkName: "" }]),
  "a file that is too large": tar([GOOD, { name: "large", content: Buffer.alloc(MAX_FILE + 1) }]),
  "a size without the content": tar([GOOD, { name: "short", content: "x", size: 4096 }], { end: false }),
  "a huge size": tar([GOOD, { name: "huge", content: "x", size: HUGE }]),
  "a negative extended size": tar([GOOD, pax({ size: "-1" }), { name: "negative", content: "x" }]),
  "too many files": tar(Array.from({ length: MAX_FILES + 1 }, (_, index) => ({ name: `f${index}`, content: "" }))),
  "too many directories": tar(Array.from({ length: 4 * MAX_FILES }, (_, index) => ({ name: `d${index}/`, type: "5" }))),
  "too many bytes": tar(
    Array.from({ length: 10 }, (_, index) => ({ name: `b${index}`, content: Buffer.alloc(MAX_FILE) })),
  ),
  "a wrong header checksum": tar([GOOD, { name: "x", content: "x", wrongChecksum: true }]),
  "a compressed one": gzipSync(tar([GOOD])),
  "a compressed bomb": gzipSync(Buffer.alloc(32 * 1024 * 1024)),
  "no archive": Buffer.from("this is no archive, and long enough to be mistaken for one ".repeat(40)),
  "one that is cut off": tar([GOOD, { name: "cut", content: Buffer.alloc(4096) }]).subarray(0, 2000),
};

test("API-11 a hostile archive is refused as a whole, and nothing of it stays anywhere", async () => {
  const before = await state();
  for (const [what, archive] of Object.entries(REFUSED)) {
    // An archive that replaces everything replaces the codebase's link by a directory.
    for (const metadata of what === BELOW_LINK ? [{}] : [{}, { replace_all: true }]) {
      const { code, message } = await uploadArchive(archive, metadata);
      expect([what, [3, 8, 9].includes(code), code, message]).toEqual([what, true, code, message]);
      expect([what, await state()]).toEqual([what, before]);
    }
  }
  expect(staged()).toEqual([]);
  expect(readdirSync(outside)).toEqual(["kept.txt"]);
  for (const place of [tmpdir(), server.directory, join(server.directory, "codebases")]) {
    expect(existsSync(join(place, "slipped.txt"))).toBe(false);
  }
});

test("API-11 the same archives over REST are refused with the same words", async () => {
  const before = await state();
  for (const [what, archive] of Object.entries(REFUSED).slice(0, 12)) {
    const { message } = await uploadArchive(archive);
    const response = await fetch(`${server.http}/v1/codebases/${codebase_id}/archive`, {
      method: "PUT",
      headers: { "content-type": "application/x-tar" },
      body: archive,
    });
    expect([what, response.status, await response.json()]).toMatchObject([what, 400, { code: 3, message }]);
  }
  expect(await state()).toEqual(before);
});

test("API-11 links of an archive are stored as what they are, and set-id bits are not", async () => {
  const archive = tar([
    { name: "./", type: "5" },
    { name: "to-host", type: "2", linkName: "/etc/passwd" },
    { name: "up", type: "2", linkName: "../../../../../etc" },
    { name: "tool", content: "#!/bin/sh\n", mode: "0006755\0" },
  ]);
  expect(await uploadArchive(archive)).toMatchObject({ code: 0 });
  const { files } = await client.call("CodebaseService", "ListFiles", { codebase_id });
  const byName = new Map((files as Message[]).map((file) => [file.name, file]));
  expect(byName.get("to-host")).toMatchObject({ symlink_target: "/etc/passwd" });
  expect(byName.get("up")).toMatchObject({ symlink_target: "../../../../../etc" });
  expect(byName.get("tool")).toMatchObject({ mode: 0o755 });
  const read = await client.outcome("CodebaseService", "DownloadFile", [{ codebase_id, file_path: "to-host" }]);
  expect(read).toMatchObject({ code: 9, messages: [] });
});

import { execFileSync } from "node:child_process";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { pax, tar } from "../../../../../test/support/tar.ts";
import { readTar, TAR_END, tarHeader, tarPadding } from "../../../src/runtime/codebases/tar.ts";
import { chunks } from "./opening.ts";

// The program `tar` is the other side: it made, and takes, what is read and written here.

const LONG = `${"a-long-directory-name/".repeat(8)}file`;
/** Where a header has no more room there is a slash, which is not the end of the name. */
const CUT_AT_SLASH = `${"nineteen-characters/".repeat(5)}file-with-ü`;
const UNPREFIXED = "n".repeat(180);
const TREE: Readonly<Record<string, string>> = {
  "short.txt": "short",
  empty: "",
  "ümlaut-日本.txt": "not ASCII",
  block: "b".repeat(512),
  large: "l".repeat(200_000),
  [LONG]: "long",
  [CUT_AT_SLASH]: "long too",
  [UNPREFIXED]: "one long name",
};
const TARGET = `../${"elsewhere/".repeat(20)}x`;

let directory: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "agentfense-tar-"));
  for (const name of [LONG, CUT_AT_SLASH]) mkdirSync(join(directory, "tree", name, ".."), { recursive: true });
  for (const [name, content] of Object.entries(TREE)) writeFileSync(join(directory, "tree", name), content);
  chmodSync(join(directory, "tree/short.txt"), 0o751);
  symlinkSync(TARGET, join(directory, "tree/link"));
});

afterAll(() => rmSync(directory, { recursive: true, force: true }));

test.each(["gnu", "oldgnu", "pax", "posix"])("an archive in the format %s that tar made is read", async (format) => {
  const archive = execFileSync("tar", [`--format=${format}`, "-C", join(directory, "tree"), "-c", "."], {
    maxBuffer: 1e8,
  });
  expect(await entriesOf(archive, 1000)).toEqual({
    ...Object.fromEntries(Object.entries(TREE).map(([name, content]) => [`./${name}`, content])),
    "./link": `-> ${TARGET}`,
  });
});

test("an archive in the format ustar, whose names are in two parts, is read", async () => {
  const archive = execFileSync("tar", ["--format=ustar", "-C", join(directory, "tree"), "-c", LONG, "short.txt"]);
  expect(await entriesOf(archive)).toEqual({ [LONG]: "long", "short.txt": "short" });
});

test("what comes in single bytes, and two archives that were put together, are read", async () => {
  const archive = Buffer.concat([tar([{ name: "a", content: "1" }]), tar([{ name: "b/", type: "0" }, { name: "c" }])]);
  expect(await entriesOf(archive, 1)).toEqual({ a: "1", c: "" });
});

test("what is written is unpacked by tar: names, targets, modes and contents", () => {
  const common = { mode: 0o640, modifiedAtMs: 1_700_000_000_000 };
  const files = Object.entries(TREE).flatMap(([name, content]) => {
    const size = Buffer.byteLength(content);
    return [tarHeader({ ...common, type: "file", name, size }), Buffer.from(content), tarPadding(size)];
  });
  const others = [
    tarHeader({ ...common, type: "directory", name: "ordner/ü", mode: 0o750 }),
    tarHeader({ ...common, type: "symlink", name: "link", target: TARGET }),
  ];
  const out = join(directory, "out");
  mkdirSync(out);
  execFileSync("tar", ["-x", "-p", "-C", out], { input: Buffer.concat([...others, ...files, TAR_END]) });
  for (const [name, content] of Object.entries(TREE)) expect(readFileSync(join(out, name), "utf8")).toBe(content);
  expect(readlinkSync(join(out, "link"))).toBe(TARGET);
  expect(lstatSync(join(out, "short.txt"))).toMatchObject({ mode: 0o100640, mtimeMs: common.modifiedAtMs });
  expect(lstatSync(join(out, "ordner/ü")).mode).toBe(0o040750);
  expect(readdirSync(join(out, "ordner"))).toEqual(["ü"]);
});

test("a size beyond 8 GiB is told in an extended header, and read again in either form", async () => {
  const size = 9 * 2 ** 30;
  const header = tarHeader({ type: "file", name: "huge", mode: 0o644, size, modifiedAtMs: 0 });
  expect(await firstSize(Buffer.from(header))).toBe(size);
  const inBytes = Buffer.alloc(12);
  inBytes[0] = 0x80;
  inBytes.writeBigUInt64BE(BigInt(size), 4);
  expect(await firstSize(tar([{ name: "huge", size: inBytes.toString("latin1") }]))).toBe(size);
});

test.each(
  Object.entries({
    "an extended header without records": tar([{ name: "x", type: "x", content: "no record\n" }, { name: "a" }]),
    "a record longer than its header": tar([{ name: "x", type: "x", content: "99 path=a\n" }, { name: "a" }]),
    "a record without a value": tar([{ name: "x", type: "x", content: "8 path\n\n" }, { name: "a" }]),
    "an extended size that is no number": tar([pax({ size: "0x10" }), { name: "a" }]),
    "a long name that would fill the memory": tar([{ name: "x", type: "L", size: 2 ** 30 }, { name: "a" }]),
    "a size that is no number": tar([{ name: "a", size: "12345678x" }]),
    "a size below zero": tar([{ name: "a", size: "\xff".repeat(12) }]),
    "a format from before there was one": withoutMagic(tar([{ name: "a" }])),
    "an end within a header": tar([{ name: "a" }]).subarray(0, 300),
    "an end within what fills the last block": tar([{ name: "a", content: "x" }]).subarray(0, 600),
  }),
)("%s is damage", async (_, archive) => {
  await expect(entriesOf(archive)).rejects.toMatchObject({
    code: "INVALID_ARGUMENT",
    message: "the archive is damaged",
  });
});

test("who stops reading ends the source", async () => {
  let ended = false;
  async function* source(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) yield tar([{ name: "a", content: "1" }], { end: false });
    } finally {
      ended = true;
    }
  }
  for await (const _ of readTar(source())) break;
  expect(ended).toBe(true);
});

/** By name: contents of files and targets of links. */
async function entriesOf(archive: Buffer, pieceBytes = archive.length): Promise<Record<string, string>> {
  const pieces = Array.from({ length: Math.ceil(archive.length / pieceBytes) }, (_, index) =>
    archive.subarray(index * pieceBytes, (index + 1) * pieceBytes),
  );
  const found: Record<string, string> = {};
  let name = "";
  for await (const piece of readTar(chunks(...pieces))) {
    if ("data" in piece) found[name] += String(piece.data);
    else {
      const { type, target } = piece.entry;
      name = String(piece.entry.name);
      if (type === "file") found[name] = "";
      if (type === "symlink") found[name] = `-> ${target}`;
    }
  }
  return found;
}

async function firstSize(archive: Buffer): Promise<number | undefined> {
  for await (const piece of readTar(chunks(archive))) if ("entry" in piece) return piece.entry.size;
  return undefined;
}

/** As the first programs wrote them: with a right checksum, and nothing where the format is named. */
function withoutMagic(archive: Buffer): Buffer {
  archive.fill(0, 257, 265).fill(" ", 148, 156);
  const sum = archive.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  archive.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return archive;
}

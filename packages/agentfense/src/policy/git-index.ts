import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { nameText } from "@agentfense/permission";

// The index of a git repository, as its gitformat-index(5) describes it: what git tracks, without running git, whose settings are
// those of whoever made the project.

const MOST_BYTES = 256 * 1024 * 1024;
/** Times, device, inode, mode, owner and size stand before an entry's hash, and two bytes of flags behind it. */
const STAT_BYTES = 40;
const EXTENDED = 0x4000;
const NUL = 0;

/** The files that git tracks in the repository at the top of a directory, as paths of the workspace; undefined without one. */
export function readTrackedFiles(directory: string): string[] | undefined {
  const repository = join(directory, ".git");
  const path = join(repository, "index");
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return undefined;
  if (!found.isFile() || found.size > MOST_BYTES) throw new RangeError("it is no index of git");
  const index = readFileSync(path);
  const version = index.readUInt32BE(4);
  if (index.toString("latin1", 0, 4) !== "DIRC" || version < 2 || version > 4) {
    throw new RangeError("it is no index of git");
  }
  const fixed = STAT_BYTES + hashBytes(repository) + 2;
  const paths: string[] = [];
  let name = Buffer.alloc(0);
  let at = 12;
  for (let left = index.readUInt32BE(8); left > 0; left -= 1) {
    const start = at;
    at += fixed;
    if (version > 2 && (index.readUInt16BE(at - 2) & EXTENDED) !== 0) at += 2;
    let kept = 0;
    if (version === 4) {
      const cut = readVariable(index, at);
      at = cut.end;
      kept = name.length - cut.value;
    }
    const end = index.indexOf(NUL, at);
    if (end < 0 || kept < 0) throw new RangeError("it ends too early");
    name = Buffer.concat([name.subarray(0, kept), index.subarray(at, end)]);
    paths.push(`/${nameText(name)}`);
    // Before the fourth version an entry has as many zeros behind it, one at least, as make its length a multiple of eight.
    at = version === 4 ? end + 1 : start + Math.ceil((end + 1 - start) / 8) * 8;
  }
  return paths;
}

function hashBytes(repository: string): number {
  const settings = join(repository, "config");
  if (statSync(settings, { throwIfNoEntry: false }) === undefined) return 20;
  return /^\s*objectformat\s*=\s*sha256\s*$/im.test(readFileSync(settings, "utf8")) ? 32 : 20;
}

/** A number of seven bits a byte, the highest first, each but the last marked, where every further byte adds one to what is before. */
function readVariable(bytes: Buffer, start: number): { readonly value: number; readonly end: number } {
  let at = start;
  let byte = bytes.readUInt8(at);
  let value = byte & 0x7f;
  while ((byte & 0x80) !== 0) {
    at += 1;
    byte = bytes.readUInt8(at);
    value = (value + 1) * 128 + (byte & 0x7f);
  }
  return { value, end: at + 1 };
}

import { createHash } from "node:crypto";

// How a deletion is written down in the delta, so that the delta is a valid OCI image layer:
//
//   .wh.<name>              an empty file: <name> of the layers below does not exist
//   .wh..wh.long.<digest>   a file whose content is the name, for names that do not fit behind the prefix (over 251
//                           bytes) or begin with it themselves; <digest> is the SHA-256 of the name in hexadecimal
//   .wh..wh..opq            an empty file in a directory: nothing of the layers below shows in this directory
//
// What remains when the prefix is taken away must be a proper name: `.wh.`, `.wh..` and `.wh...` mean nothing.
// An entry of the delta always outranks a whiteout of the same name beside it. Every change relies on that to be atomic:
// the whiteout is laid down first and takes effect when the entry goes.

const WHITEOUT_PREFIX = ".wh.";
export const OPAQUE_MARKER = ".wh..wh..opq";
const LONG_PREFIX = ".wh..wh.long.";
const NAME_MAX = 255;

/** Names of this form belong to the delta's bookkeeping and cannot be created through the mount. */
export function isReserved(name: string): boolean {
  return name.startsWith(WHITEOUT_PREFIX);
}

export interface WhiteoutFile {
  readonly name: string;
  readonly content: string;
}

/** The file that stands for the deletion of a name. */
export function whiteoutFor(name: string): WhiteoutFile {
  if (!isReserved(name) && name.length + WHITEOUT_PREFIX.length <= NAME_MAX) {
    return { name: WHITEOUT_PREFIX + name, content: "" };
  }
  const digest = createHash("sha256").update(name, "latin1").digest("hex");
  return { name: LONG_PREFIX + digest, content: name };
}

/** What a reserved name in a delta directory stands for. */
export type Marker = { kind: "whiteout"; name: string } | { kind: "long-whiteout" } | { kind: "opaque" } | undefined;

export function readMarker(fileName: string): Marker {
  if (fileName === OPAQUE_MARKER) return { kind: "opaque" };
  if (fileName.startsWith(LONG_PREFIX)) return { kind: "long-whiteout" };
  const name = fileName.slice(WHITEOUT_PREFIX.length);
  return name === "" || name === "." || name === ".." ? undefined : { kind: "whiteout", name };
}

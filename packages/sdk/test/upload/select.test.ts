import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { makeTree } from "../../../../test/support/upload-tree.ts";
import { UploadError } from "../../src/errors.ts";
import type { UploadProgress } from "../../src/model/options.ts";
import type { BatchEntry, ManifestEntry } from "../../src/model/requests.ts";
import { selectEntries } from "../../src/upload/select.ts";
import { uploadDirectory } from "../../src/upload/upload.ts";

/** Lacks what the test says, and keeps what it is sent. */
function recordingTarget(lacks: (path: string) => boolean) {
  const sent: { path: string; kind: string; content: string | undefined }[] = [];
  return {
    sent,
    async compareManifest(_codebaseId: string, entries: Iterable<ManifestEntry>) {
      return [...entries].map(({ path }) => path).filter(lacks);
    },
    async batchUpload(
      _codebaseId: string,
      entries: Iterable<BatchEntry>,
      options?: { readonly onBytes?: ((count: number) => void) | undefined },
    ) {
      for (const { path, kind, content } of entries) {
        const pieces: Uint8Array[] = [];
        if (content instanceof Uint8Array) pieces.push(content);
        else if (content !== undefined) for await (const piece of content) pieces.push(piece);
        for (const piece of pieces) options?.onBytes?.(piece.length);
        sent.push({ path, kind, content: content === undefined ? undefined : Buffer.concat(pieces).toString() });
      }
      return { version: 7, filesChanged: 3, bytesReceived: 3 };
    },
  };
}

describe("a directory that is uploaded", () => {
  test("sends what is missing, links as links, and says how far it is", async () => {
    const outside = await makeTree({ secret: "outside" });
    const top = await makeTree({
      "src/a": "one",
      b: "two",
      away: `-> ${join(outside, "secret")}`,
      tree: `-> ${outside}`,
    });
    const target = recordingTarget((path) => path === "src/a");
    const seen: UploadProgress[] = [];
    const result = await uploadDirectory(target, "cb_1", top, { onProgress: (progress) => seen.push(progress) });
    expect(result).toEqual({
      version: 7,
      filesChanged: 3,
      bytesReceived: 3,
      files: 4,
      bytes: 6,
      filesSent: 1,
      bytesSent: 3,
      leftOut: [],
    });
    expect(target.sent).toEqual([
      { path: "away", kind: "symlink", content: undefined },
      { path: "b", kind: "file", content: undefined },
      { path: "src", kind: "directory", content: undefined },
      { path: "src/a", kind: "file", content: "one" },
      { path: "tree", kind: "symlink", content: undefined },
    ]);
    expect(seen).toEqual([
      { phase: "reading", doneBytes: 3, totalBytes: 6, files: 2 },
      { phase: "reading", doneBytes: 6, totalBytes: 6, files: 2 },
      { phase: "uploading", doneBytes: 3, totalBytes: 3, files: 1 },
    ]);
  });

  test("a file that changes after it was read fails the upload", async () => {
    const top = await makeTree({ a: "one" });
    const target = recordingTarget(() => true);
    const compareManifest = async () => {
      await writeFile(join(top, "a"), "two");
      return ["a"];
    };
    await expect(uploadDirectory({ ...target, compareManifest }, "cb_1", top)).rejects.toMatchObject({
      name: "UploadError",
      code: "UPLOAD_FAILED",
      retryable: true,
      message: "a changed while it was being read; try again",
      details: { path: "a" },
    });
  });

  test("one that is not there, or is a file, is an error", async () => {
    const top = await makeTree({ a: "one" });
    const target = recordingTarget(() => true);
    await expect(uploadDirectory(target, "cb_1", join(top, "none"))).rejects.toThrow(UploadError);
    await expect(uploadDirectory(target, "cb_1", join(top, "a"))).rejects.toThrow("it is not a directory");
    expect(target.sent).toEqual([]);
  });

  test("an abort ends the reading with its reason", async () => {
    const top = await makeTree({ a: "one" });
    const reason = new Error("enough");
    await expect(selectEntries(top, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });
});

test("what cannot be read is named, or left out", async () => {
  const top = await makeTree({ open: "1", secret: "2" });
  await chmod(top, 0o755);
  await chmod(join(top, "secret"), 0o000);
  await mkdir(join(top, "closed"), { mode: 0o000 });
  await asNobody(async () => {
    await expect(selectEntries(top)).rejects.toMatchObject({
      name: "UploadError",
      unreadable: ["closed", "secret"],
      message: "these cannot be read: closed, secret",
      hint: "leave them out with skipUnreadable",
    });
    const { entries, leftOut } = await selectEntries(top, { skipUnreadable: true });
    expect({ paths: entries.map(({ path }) => path), leftOut }).toEqual({
      paths: ["closed", "open"],
      leftOut: ["closed: cannot be read", "secret: cannot be read"],
    });
  });
});

/** Nothing is closed to root. */
async function asNobody(work: () => Promise<void>): Promise<void> {
  if (process.geteuid?.() !== 0) return await work();
  process.seteuid?.(65_534);
  try {
    await work();
  } finally {
    process.seteuid?.(0);
  }
}

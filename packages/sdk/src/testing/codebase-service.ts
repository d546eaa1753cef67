import type { CodebaseService } from "@agentfense/protocol/codebase";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { entryOf, putEntry, sha256Of, targetOf } from "./codebase.ts";
import { Fault } from "./faults.ts";
import { type Handlers, pageOf, pieces, receive } from "./handlers.ts";
import { byPath, joined, nameOf, normalPath, notRoot } from "./path-tree.ts";
import type { World } from "./world.ts";

/** Codebases and single files of them. Whole trees are put there with the engine's own methods. */
export function codebaseHandlers(world: World): Handlers<typeof CodebaseService> {
  /** The files of one version; 0 is the newest. */
  const treeOf = (codebaseId: string, version: bigint) => {
    const codebase = world.codebase(codebaseId);
    return version === 0n ? codebase.tree : codebase.at(Number(version));
  };

  return {
    createCodebase: async ({ name, ownerId }) => world.createCodebase({ name, ownerId }).message,

    getCodebase: async ({ codebaseId }) => world.codebase(codebaseId).message,

    async listCodebases({ ownerId, ...page }) {
      const all = [...world.codebases.values()].map(({ message }) => message);
      const listed = all.filter((one) => ownerId === "" || ownerId === one.ownerId);
      const { items, nextPageToken } = pageOf(listed, page);
      return { codebases: items, nextPageToken };
    },

    async deleteCodebase({ codebaseId, force }) {
      world.deleteCodebase(world.codebase(codebaseId), { force });
      return {};
    },

    async uploadFiles(requests) {
      const { metadata, data } = await receive(requests);
      const { codebaseId, filePath, mode, checksum, symlinkTarget } = metadata;
      const path = notRoot(normalPath(filePath));
      const codebase = world.codebase(codebaseId);
      const before = codebase.tree.get(path);
      if (before?.kind === "directory") throw wrongKind(filePath, "is a directory");
      const options = mode === 0 ? (before ?? {}) : { mode };
      const file = entryOf("file", data, { ...options, modifiedAtMs: Date.now() });
      const entry = symlinkTarget === "" ? file : entryOf("symlink", symlinkTarget);
      if (checksum !== "" && checksum !== sha256Of(entry)) {
        throw new Fault("UPLOAD_MISMATCH", `"${filePath}" did not arrive as announced`);
      }
      const version = codebase.change((tree) => putEntry(tree, path, entry));
      if (version > 0) world.tellOf(codebase, "files_uploaded", { version, files: 1, bytes: data.length });
      const size = BigInt(data.length);
      return { codebaseId, filePath, size, checksum: sha256Of(entry), version: BigInt(codebase.version) };
    },

    async *downloadFile({ codebaseId, filePath, version }) {
      const entry = treeOf(codebaseId, version).get(normalPath(filePath));
      if (entry === undefined) throw notFound(filePath);
      if (entry.kind !== "file") throw wrongKind(filePath, `is a ${entry.kind}, not a file`);
      for (const data of pieces(entry.content)) yield { data };
    },

    async listFiles({ codebaseId, path, recursive, version, ...page }) {
      const tree = treeOf(codebaseId, version);
      const directory = normalPath(path);
      const kind = directory === "/" ? "directory" : tree.get(directory)?.kind;
      if (kind === undefined) throw notFound(path);
      if (kind !== "directory") throw wrongKind(path, "is no directory");
      const found = recursive ? tree.below(directory) : tree.names(directory).map((name) => joined(directory, name));
      const entries = found.map((each) => ({ path: each, entry: tree.get(each)! })).sort(byPath);
      const { items, nextPageToken } = pageOf(entries, page);
      const files = items.map(({ path: at, entry }) => ({
        // Paths begin as the request's path did.
        path: path.startsWith("/") ? at : at.slice(1),
        name: nameOf(at),
        isDir: entry.kind === "directory",
        size: BigInt(entry.kind === "file" ? entry.content.length : 0),
        modifiedAt: timestampFromMs(entry.modifiedAtMs),
        mode: entry.mode,
        symlinkTarget: targetOf(entry),
        checksum: sha256Of(entry),
      }));
      return { files, nextPageToken };
    },
  };
}

function notFound(path: string): Fault {
  return new Fault("FILE_NOT_FOUND", `file not found: ${path}`, { details: { path } });
}

function wrongKind(path: string, problem: string): Fault {
  return new Fault("FILE_WRONG_KIND", `"${path}" ${problem}`, { details: { path } });
}

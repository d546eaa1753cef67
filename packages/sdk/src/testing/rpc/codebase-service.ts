import { isSensitive } from "@agentfense/permission";
import type {
  BatchUploadResultSchema,
  CodebaseSchema,
  CodebaseService,
  FileInfoSchema,
  VersionSchema,
} from "@agentfense/protocol/codebase";
import { CHANGE_KINDS, VERSION_ORIGINS } from "@agentfense/protocol/words";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Codebase, VersionRecord } from "../codebases/codebase.ts";
import { directoryPath, fileNotFound, filePath, shown, wrongKind } from "../codebases/codebase-paths.ts";
import { packTar, unpackTar } from "../codebases/tar.ts";
import { Fault, invalid } from "../faults.ts";
import { directoryEntry, type Entry, fileEntry, linkEntry, modeOf, sha256Of, sizeOf } from "../files/entry.ts";
import type { PathTree } from "../files/path-tree.ts";
import { ancestorsOf, byPath, isBelow, joined, nameOf } from "../files/paths.ts";
import type { World } from "../world.ts";
import { checkContent, mismatch, missingContent, receiveBatch, wantedOf } from "./batch.ts";
import { count, pageOf, permissionBits, required, timestampMessage } from "./fields.ts";
import type { Handlers } from "./handlers.ts";
import { pieces, receiveUpload } from "./uploads.ts";

export function codebaseHandlers(world: World): Handlers<typeof CodebaseService> {
  const uploaded = (codebase: Codebase, made: VersionRecord | undefined, bytes: number): BatchResult => {
    if (made !== undefined) {
      world.tellOf(codebase, "files_uploaded", { version: made.version, files: made.filesChanged, bytes });
    }
    return { ...batchResult(codebase, made), bytesReceived: BigInt(bytes) };
  };

  return {
    async createCodebase({ name, ownerId }) {
      required(name, "name");
      required(ownerId, "owner_id");
      return codebaseMessage(world.createCodebase({ name, ownerId }));
    },

    async getCodebase({ codebaseId }) {
      return codebaseMessage(world.codebase(codebaseId));
    },

    async listCodebases({ ownerId, ...page }) {
      const all = [...world.codebases.values()].filter((one) => ownerId === "" || ownerId === one.ownerId);
      const { items, nextPageToken } = pageOf(all, page);
      return { codebases: items.map(codebaseMessage), nextPageToken };
    },

    async deleteCodebase({ codebaseId, force }) {
      world.deleteCodebase(codebaseId, { force });
      return {};
    },

    uploadFiles(requests) {
      return receiveUpload(requests, (metadata) => {
        const { codebaseId, filePath: given, mode, totalSize, checksum, symlinkTarget } = metadata;
        required(codebaseId, "codebase_id", "in metadata");
        const path = filePath(required(given, "file_path", "in metadata"));
        const codebase = world.codebase(codebaseId);
        const bits = permissionBits(mode, "mode");
        return (content) => {
          if (symlinkTarget !== "") {
            if (content.length > 0) throw invalid("a symbolic link has no data: send its metadata alone");
            uploaded(codebase, putOne(codebase, path, linkEntry(symlinkTarget)), 0);
            return { codebaseId, filePath: given, version: BigInt(codebase.version) };
          }
          if (totalSize > 0n && BigInt(content.length) !== totalSize) {
            throw mismatch(path, `${content.length} bytes arrived, ${totalSize} were announced`);
          }
          checkContent(path, content, { size: BigInt(content.length), checksum: checksum.toLowerCase() });
          const before = codebase.tree.get(path);
          const entry = fileEntry(content, bits || (before?.kind === "file" ? before.mode : undefined));
          const made = putOne(codebase, path, entry);
          uploaded(codebase, made, content.length);
          return {
            codebaseId,
            filePath: given,
            size: BigInt(content.length),
            checksum: sha256Of(entry),
            version: BigInt(codebase.version),
          };
        };
      });
    },

    async *downloadFile({ codebaseId, filePath: given, version }) {
      required(codebaseId, "codebase_id");
      const path = filePath(required(given, "file_path"));
      const entry = world.codebase(codebaseId).treeAt(count(version, "version")).get(path);
      if (entry === undefined) throw fileNotFound(path);
      if (entry.kind !== "file") throw wrongKind(path, `${shown(path)} is a ${entry.kind}, not a file`);
      for (const data of pieces(entry.content)) yield { data };
    },

    async listFiles({ codebaseId, path, recursive, version, ...page }) {
      const tree = world.codebase(required(codebaseId, "codebase_id")).treeAt(count(version, "version"));
      const directory = directoryPath(path);
      if (directory !== "/" && tree.get(directory) === undefined) {
        if (recursive) throw fileNotFound(directory);
        return { files: [] };
      }
      requireDirectory(tree, directory);
      const found = recursive ? tree.below(directory) : tree.names(directory).map((name) => joined(directory, name));
      const entries = found.map((each) => ({ path: each, entry: tree.get(each)! })).sort(byPath);
      const { items, nextPageToken } = pageOf(entries, page, { allByDefault: true });
      return { files: items.map((item) => fileMessage(item, path.startsWith("/"))), nextPageToken };
    },

    async compareManifest({ codebaseId, entries }) {
      return { missing: missingContent(world.codebase(required(codebaseId, "codebase_id")), entries) };
    },

    async batchUpload(requests) {
      const { begin, received } = await receiveBatch(requests);
      const codebase = world.codebase(begin.codebaseId);
      const base = count(begin.baseVersion, "base_version");
      if (base !== 0 && base !== codebase.version) {
        throw new Fault("VERSION_CONFLICT", `the codebase is at version ${codebase.version}, not ${base}`, {
          details: { version: String(codebase.version) },
          hint: "look at what changed, and try again from there",
        });
      }
      const wanted = wantedOf(codebase, received);
      const { message, replaceAll } = begin;
      const made = codebase.change({ origin: "upload", message }, (draft) => draft.fulfil(wanted, { replaceAll }));
      const bytes = received.reduce((sum, { data }) => sum + data.reduce((all, one) => all + one.length, 0), 0);
      return uploaded(codebase, made, bytes);
    },

    uploadArchive(requests) {
      return receiveUpload(requests, ({ codebaseId, replaceAll, message }) => {
        const codebase = world.codebase(required(codebaseId, "codebase_id", "in metadata"));
        return (archive) => {
          const wanted = unpackTar(archive);
          const made = codebase.change({ origin: "upload", message }, (draft) => draft.fulfil(wanted, { replaceAll }));
          const bytes = wanted.reduce((sum, { entry }) => sum + (entry?.kind === "file" ? sizeOf(entry) : 0), 0);
          return uploaded(codebase, made, bytes);
        };
      });
    },

    async *downloadArchive({ codebaseId, path, version }) {
      const tree = world.codebase(required(codebaseId, "codebase_id")).treeAt(count(version, "version"));
      const directory = directoryPath(path);
      if (directory !== "/" && tree.get(directory) === undefined) throw fileNotFound(directory);
      requireDirectory(tree, directory);
      const entries = tree.below(directory).map((each) => [each, tree.get(each)!] as const);
      for (const data of pieces(packTar(entries, directory))) yield { data };
    },

    async deleteFile({ codebaseId, filePath: given, recursive }) {
      const codebase = world.codebase(required(codebaseId, "codebase_id"));
      const path = filePath(required(given, "file_path"));
      if (codebase.tree.get(path) === undefined) throw fileNotFound(path);
      if (codebase.tree.names(path).length > 0 && !recursive) {
        throw wrongKind(path, `${shown(path)} is a directory that is not empty`, "delete it recursively");
      }
      const made = codebase.change({ origin: "delete" }, (draft) => draft.remove(path));
      const { version, filesChanged: files } = made!;
      world.tellOf(codebase, "file_deleted", { path: path.slice(1), version, files });
      return batchResult(codebase, made);
    },

    async renameFile({ codebaseId, fromPath, toPath }) {
      const codebase = world.codebase(required(codebaseId, "codebase_id"));
      const from = filePath(required(fromPath, "from_path"));
      const to = filePath(required(toPath, "to_path"));
      const made = renameOne(codebase, from, to);
      const { version, filesChanged: files } = made!;
      world.tellOf(codebase, "file_renamed", { from: from.slice(1), to: to.slice(1), version, files });
      return batchResult(codebase, made);
    },

    async listVersions({ codebaseId, ...page }) {
      const codebase = world.codebase(required(codebaseId, "codebase_id"));
      const { items, nextPageToken } = pageOf([...codebase.versions].reverse(), page);
      return { versions: items.map((version) => versionMessage(codebase, version)), nextPageToken };
    },

    async getVersion({ codebaseId, version }) {
      const codebase = world.codebase(required(codebaseId, "codebase_id"));
      const found = codebase.versions[codebase.resolve(count(version, "version")) - 1];
      if (found === undefined) throw new Fault("VERSION_NOT_FOUND", `version ${version} not found`);
      return versionMessage(codebase, found, found.changes);
    },

    async rollback({ codebaseId, version: wanted }) {
      const codebase = world.codebase(required(codebaseId, "codebase_id"));
      const version = count(wanted, "version");
      if (version === 0) throw invalid("version must be that of an earlier version");
      const old = codebase.treeAt(version);
      const message = `rollback to version ${version}`;
      const made = codebase.change({ origin: "rollback", message }, (draft) => {
        for (const path of codebase.tree.below("/").reverse())
          if (old.get(path) === undefined) draft.set(path, undefined);
        for (const [path, entry] of [...old]) draft.set(path, entry);
      });
      if (made === undefined) return versionMessage(codebase, codebase.versions.at(-1)!);
      const data = { to_version: version, version: made.version, files: made.filesChanged };
      world.tellOf(codebase, "version_rolled_back", data);
      return versionMessage(codebase, made);
    },
  };
}

type BatchResult = MessageInitShape<typeof BatchUploadResultSchema>;

function putOne(codebase: Codebase, path: string, entry: Entry): VersionRecord | undefined {
  if (codebase.tree.get(path)?.kind === "directory") throw wrongKind(path, `${shown(path)} is a directory`);
  return codebase.change({ origin: "upload" }, (draft) => draft.fulfil([{ path, entry }], { replaceAll: false }));
}

/** Nothing may be at the new path; directories on the way to it appear. */
function renameOne(codebase: Codebase, from: string, to: string): VersionRecord | undefined {
  const { tree } = codebase;
  const source = tree.get(from);
  if (source === undefined) throw fileNotFound(from);
  if (tree.get(to) !== undefined) {
    throw new Fault("FILE_EXISTS", `${shown(to)} exists already`, { details: { path: to.slice(1) } });
  }
  if (isBelow(to, from)) throw invalid(`${shown(from)} cannot be moved into itself`);
  const moved = [from, ...tree.below(from)].map((path) => ({ path, entry: tree.get(path)! }));
  return codebase.change({ origin: "rename" }, (draft) => {
    for (const above of ancestorsOf(to)) {
      const there = tree.get(above);
      if (there === undefined) draft.set(above, directoryEntry());
      else if (there.kind !== "directory") {
        throw wrongKind(to, `${shown(to)} cannot be below ${shown(above)}, which is a ${there.kind}`);
      }
    }
    draft.remove(from);
    for (const { path, entry } of moved) draft.set(to + path.slice(from.length), entry);
  });
}

function requireDirectory(tree: PathTree<Entry>, path: string): void {
  const kind = path === "/" ? "directory" : tree.get(path)?.kind;
  if (kind !== "directory") throw wrongKind(path, `${shown(path)} is a ${kind}, not a directory`);
}

function codebaseMessage(codebase: Codebase): MessageInitShape<typeof CodebaseSchema> {
  return {
    id: codebase.id,
    name: codebase.name,
    ownerId: codebase.ownerId,
    size: BigInt(codebase.size),
    fileCount: codebase.fileCount,
    createdAt: timestampMessage(codebase.createdAtMs),
    updatedAt: timestampMessage(codebase.updatedAtMs),
    version: BigInt(codebase.version),
  };
}

function batchResult(codebase: Codebase, made: VersionRecord | undefined): BatchResult {
  return { codebaseId: codebase.id, version: BigInt(codebase.version), filesChanged: made?.filesChanged ?? 0 };
}

function versionMessage(
  codebase: Codebase,
  version: VersionRecord,
  changes: VersionRecord["changes"] = [],
): MessageInitShape<typeof VersionSchema> {
  return {
    codebaseId: codebase.id,
    version: BigInt(version.version),
    origin: VERSION_ORIGINS[version.origin],
    sandboxId: version.sandboxId,
    message: version.message,
    createdAt: timestampMessage(version.createdAtMs),
    filesChanged: version.filesChanged,
    size: BigInt(version.size),
    fileCount: version.fileCount,
    changes: changes.map(changeMessage),
    conflicts: version.conflicts.map(({ path, replacedVersion, replacedSandboxId }) => ({
      path: path.slice(1),
      replacedVersion: BigInt(replacedVersion),
      replacedSandboxId,
    })),
  };
}

function changeMessage({ path, before, after }: VersionRecord["changes"][number]) {
  const kind = before === undefined ? "added" : after === undefined ? "deleted" : "modified";
  const size = after === undefined ? (before === undefined ? 0 : sizeOf(before)) : sizeOf(after);
  const sensitive = after !== undefined && isSensitive(path, after.kind === "symlink" ? after.target : undefined);
  return { kind: CHANGE_KINDS[kind], path: path.slice(1), size: BigInt(size), sensitive };
}

/** Paths begin as the request's path did. */
function fileMessage(
  { path, entry }: { readonly path: string; readonly entry: Entry },
  isAbsolute: boolean,
): MessageInitShape<typeof FileInfoSchema> {
  return {
    path: isAbsolute ? path : path.slice(1),
    name: nameOf(path),
    isDir: entry.kind === "directory",
    size: BigInt(entry.kind === "file" ? sizeOf(entry) : 0),
    modifiedAt: timestampMessage(entry.modifiedAtMs),
    mode: modeOf(entry),
    symlinkTarget: entry.kind === "symlink" ? entry.target : "",
    checksum: sha256Of(entry),
  };
}

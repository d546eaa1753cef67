import type { CodebaseService, UploadResultSchema } from "@agentfense/protocol/codebase";
import { FILE_EVENT_CAUSES, FILE_EVENTS } from "@agentfense/protocol/words";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Sandboxes } from "../../runtime/sandboxes/api.ts";
import type { Handlers, SandboxHandlers } from "./handlers.ts";
import {
  batchResultMessage,
  codebaseMessage,
  entryInfo,
  manifestEntryOf,
  pathForm,
  versionMessage,
  viewInfo,
} from "./messages/codebase.ts";
import { count, invalid, optionalCount, permissionBits, required } from "./messages/fields.ts";
import type { ServiceRuntime } from "./register.ts";
import { chunked, receiveBatch, receiveUpload } from "./streams.ts";

type UploadResult = MessageInitShape<typeof UploadResultSchema>;

export function codebaseHandlers({
  codebases,
  sandboxes,
}: Pick<ServiceRuntime, "codebases" | "sandboxes">): Handlers<typeof CodebaseService> {
  return {
    async createCodebase({ name, ownerId }, { caller }) {
      required(name, "name");
      // A key has an owner already; without one the request must name it.
      if (caller.ownerId === undefined) required(ownerId, "owner_id");
      return codebaseMessage(await codebases.create(caller, { name, ownerId }));
    },

    getCodebase: async ({ codebaseId }, { caller }) => codebaseMessage(await codebases.get(caller, codebaseId)),

    async listCodebases({ ownerId, pageSize, pageToken }, { caller }) {
      const page = await codebases.list(caller, { ownerId, pageSize, pageToken });
      return { codebases: page.items.map(codebaseMessage), nextPageToken: page.nextPageToken };
    },

    deleteCodebase: ({ codebaseId, force }, { caller }) => sandboxes.deleteCodebase(caller, codebaseId, { force }),

    uploadFiles(requests, { caller, signal }) {
      return receiveUpload(requests, async ({ codebaseId, filePath, ...metadata }, content): Promise<UploadResult> => {
        required(codebaseId, "codebase_id", "in metadata");
        required(filePath, "file_path", "in metadata");
        const { mode, totalSize, checksum, symlinkTarget } = metadata;
        if (symlinkTarget !== "") {
          await expectNoData(content);
          const { version } = await codebases.link(caller, codebaseId, filePath, symlinkTarget);
          return { codebaseId, filePath, version: BigInt(version) };
        }
        const { size, sha256, version } = await codebases.upload(caller, codebaseId, filePath, content, {
          mode: permissionBits(mode, "mode"),
          signal,
          totalSize: optionalCount(totalSize, "total_size"),
          sha256: checksum,
        });
        return { codebaseId, filePath, size: BigInt(size), checksum: sha256, version: BigInt(version) };
      });
    },

    async *downloadFile({ codebaseId, filePath, version }, { caller, signal }) {
      required(filePath, "file_path");
      const options = { version: count(version, "version"), signal };
      const { content } = await codebases.download(caller, codebaseId, filePath, options);
      for await (const data of chunked(content)) yield { data };
    },

    async listFiles({ codebaseId, version: number, ...query }, { caller }) {
      const { path, recursive, pageSize, pageToken } = query;
      const version = count(number, "version");
      const page = await codebases.listFiles(caller, codebaseId, { path, recursive, version, pageSize, pageToken });
      const form = pathForm(path);
      return { files: page.items.map((entry) => entryInfo(entry, form)), nextPageToken: page.nextPageToken };
    },

    async compareManifest({ codebaseId, entries }, { caller }) {
      const manifest = entries.map((entry, index) => manifestEntryOf(entry, `entries[${index}]`));
      return { missing: [...(await codebases.compare(caller, codebaseId, manifest))] };
    },

    batchUpload(requests, { caller, signal }) {
      return receiveBatch(requests, async ({ codebaseId, replaceAll, baseVersion, message }, pieces) => {
        const base = optionalCount(baseVersion, "base_version");
        const options = { replaceAll, message, signal, baseVersion: base };
        return batchResultMessage(codebaseId, await codebases.batch(caller, codebaseId, pieces, options));
      });
    },

    uploadArchive(requests, { caller, signal }) {
      return receiveUpload(requests, async ({ codebaseId, replaceAll, message }, tar) => {
        required(codebaseId, "codebase_id", "in metadata");
        const options = { replaceAll, message, signal };
        return batchResultMessage(codebaseId, await codebases.uploadArchive(caller, codebaseId, tar, options));
      });
    },

    async *downloadArchive({ codebaseId, path, version }, { caller, signal }) {
      const query = { path, version: count(version, "version"), signal };
      for await (const data of chunked(await codebases.downloadArchive(caller, codebaseId, query))) yield { data };
    },

    async deleteFile({ codebaseId, filePath, recursive }, { caller }) {
      required(filePath, "file_path");
      return batchResultMessage(codebaseId, await codebases.deleteFile(caller, codebaseId, filePath, { recursive }));
    },

    async renameFile({ codebaseId, fromPath, toPath }, { caller }) {
      required(fromPath, "from_path");
      required(toPath, "to_path");
      return batchResultMessage(codebaseId, await codebases.renameFile(caller, codebaseId, fromPath, toPath));
    },

    async listVersions({ codebaseId, pageSize, pageToken }, { caller }) {
      const page = await codebases.listVersions(caller, codebaseId, { pageSize, pageToken });
      return { versions: page.items.map((record) => versionMessage(record)), nextPageToken: page.nextPageToken };
    },

    async getVersion({ codebaseId, version }, { caller }) {
      const found = await codebases.getVersion(caller, codebaseId, count(version, "version"));
      return versionMessage(found.version, found.changes);
    },

    rollback: async ({ codebaseId, version }, { caller }) =>
      versionMessage(await codebases.rollback(caller, codebaseId, count(version, "version"))),
  };
}

async function expectNoData(content: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _data of content) throw invalid("a symbolic link has no data: send its metadata alone");
}

/** Where no path means the workspace itself. */
const ROOT = "/";

/** Files of a running sandbox, as a process inside sees them. */
export function fileHandlers(sandboxes: Sandboxes) {
  return {
    async *readFile({ sandboxId, path }, { caller, signal }) {
      const content = await sandboxes.readFile(caller, sandboxId, required(path, "path"), signal);
      for await (const data of chunked(content)) yield { data };
    },

    writeFile(requests, { caller, signal }) {
      return receiveUpload(requests, async ({ sandboxId, path, mode, append, ...more }, content) => {
        required(sandboxId, "sandbox_id", "in metadata");
        required(path, "path", "in metadata");
        const { attributes: values, attributePrefix: prefix } = more;
        const attributes = prefix === "" && Object.keys(values).length === 0 ? undefined : { values, prefix };
        const options = { mode: permissionBits(mode, "mode"), append, attributes, signal };
        return viewInfo(await sandboxes.writeFile(caller, sandboxId, path, content, options), pathForm(path));
      });
    },

    async listDirectory({ sandboxId, path, recursive, attributes }, { caller }) {
      const entries = await sandboxes.listDirectory(caller, sandboxId, path || ROOT, { recursive, attributes });
      const form = pathForm(path);
      return { files: entries.map((entry) => viewInfo(entry, form)) };
    },

    async statFile({ sandboxId, path, attributes }, { caller }) {
      return viewInfo(await sandboxes.stat(caller, sandboxId, path || ROOT, { attributes }), pathForm(path));
    },

    async makeDirectory({ sandboxId, path, recursive }, { caller }) {
      required(path, "path");
      return viewInfo(await sandboxes.makeDirectory(caller, sandboxId, path, { recursive }), pathForm(path));
    },

    removeFile: async ({ sandboxId, path, recursive }, { caller }) =>
      sandboxes.remove(caller, sandboxId, required(path, "path"), { recursive }),

    async moveFile({ sandboxId, fromPath, toPath }, { caller }) {
      required(fromPath, "from_path");
      required(toPath, "to_path");
      return viewInfo(await sandboxes.move(caller, sandboxId, fromPath, toPath), pathForm(toPath));
    },

    async *watchFiles({ sandboxId, path, recursive }, { caller, signal }) {
      const changes = await sandboxes.watch(caller, sandboxId, path || ROOT, { recursive, signal });
      yield {}; // the watch is on
      for await (const { kind, path: changed, cause } of changes) {
        yield { kind: FILE_EVENTS[kind], path: changed, ...(cause && { cause: FILE_EVENT_CAUSES[cause] }) };
      }
    },
  } satisfies SandboxHandlers;
}

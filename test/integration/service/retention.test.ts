import { globSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { exec, makeCodebase, makeSandbox } from "../../support/belongings.ts";
import { eventually } from "../../support/eventually.ts";
import { GrpcClient, type Message } from "../../support/grpc-client.ts";
import { TestServer } from "../../support/server.ts";
import { tar } from "../../support/tar.ts";

const MIB = 1024 * 1024;
const RESOURCE_EXHAUSTED = 8;
const NOT_FOUND = 5;

let server: TestServer;
let client: GrpcClient;

beforeAll(async () => {
  server = await TestServer.start({
    settings: { storage: { keep_versions: 6, keep_bytes: "3MiB" }, limits: { max_upload_size: "2MiB" } },
  });
  client = new GrpcClient(server.grpc);
});
afterAll(async () => {
  client?.[Symbol.dispose]();
  await server?.[Symbol.asyncDispose]();
});

function keptBytes(codebaseId: string): number {
  const kept = join(server.directory, "codebases", codebaseId, "kept");
  return globSync("*/*", { cwd: kept }).reduce((sum, name) => sum + statSync(join(kept, name)).size, 0);
}

async function versions(codebase_id: string): Promise<number[]> {
  const answer = await client.call("CodebaseService", "ListVersions", { codebase_id });
  return (answer.versions as Message[]).map(({ version }) => Number(version));
}

test("RES-19: commands that rewrite a large file fill no more of the disk than is kept", async () => {
  const codebase_id = await makeCodebase(client, { "large.bin": Buffer.alloc(MIB, 1) }, "ann");
  const sandbox = await makeSandbox(client, codebase_id);
  let most = 0;
  for (let n = 0; n < 10; n++) {
    const { exit_code } = await exec(client, sandbox, "head -c 1048576 /dev/urandom > large.bin");
    expect(exit_code).toBe(0);
    most = Math.max(most, keptBytes(codebase_id));
  }
  expect(most).toBeLessThanOrEqual(4 * MIB);
  // Three replaced files are as much as is kept, but each takes a record, too; the last ones are dropped after their command's end.
  await eventually(async () => expect(await versions(codebase_id)).toEqual([11, 10, 9]));
  await eventually(() => expect(keptBytes(codebase_id)).toBeLessThanOrEqual(2 * MIB));
  const gone = await client.failure("CodebaseService", "Rollback", { codebase_id, version: "3" });
  expect(gone).toMatchObject({ code: NOT_FOUND, message: expect.stringContaining("version 3 not found") });
  await client.call("CodebaseService", "Rollback", { codebase_id, version: "9" });

  for (let n = 0; n < 10; n++) await client.upload(codebase_id, "small", String(n));
  await eventually(async () => expect(await versions(codebase_id)).toEqual([22, 21, 20, 19, 18, 17]));
});

test("API-13: an upload, a batch and an archive beyond limits.max_upload_size are refused", async () => {
  const codebase_id = await makeCodebase(client, {}, "ann");
  const half = Buffer.alloc(1.2 * MIB);
  const pieces = (content: Buffer): Message[] =>
    Array.from({ length: Math.ceil(content.length / 65_536) }, (_, n) => ({
      data: content.subarray(n * 65_536, (n + 1) * 65_536),
    }));
  const archive = tar(["a", "b"].map((name) => ({ name, content: half })));
  const batch = ["a", "b"].flatMap((path) => [
    { items: [{ entry: { path } }] },
    ...pieces(half).map((item) => ({ items: [item] })),
  ]);
  const uploads: readonly (readonly [string, readonly Message[]])[] = [
    ["UploadFiles", [{ metadata: { codebase_id, file_path: "f" } }, ...pieces(Buffer.concat([half, half]))]],
    ["UploadFiles", [{ metadata: { codebase_id, file_path: "f", total_size: String(3 * MIB) } }]],
    ["BatchUpload", [{ begin: { codebase_id } }, ...batch]],
    ["UploadArchive", [{ metadata: { codebase_id } }, ...pieces(archive)]],
  ];
  for (const [method, requests] of uploads) {
    const outcome = await client.outcome("CodebaseService", method, requests);
    const message = expect.stringContaining("an upload may have 2097152 bytes at most");
    expect(outcome, method).toMatchObject({ code: RESOURCE_EXHAUSTED, message });
  }
  expect(await client.call("CodebaseService", "GetCodebase", { codebase_id })).toMatchObject({ version: "0" });
  await client.upload(codebase_id, "f", half);
});

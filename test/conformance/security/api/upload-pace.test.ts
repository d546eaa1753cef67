import { globSync } from "node:fs";
import { expect, test } from "vitest";
import { makeCodebase } from "../../../support/belongings.ts";
import { eventually } from "../../../support/eventually.ts";
import { GrpcClient } from "../../../support/grpc-client.ts";
import { TestServer } from "../../../support/server.ts";

test("API-13 silence, dripping and a caller who leaves end an upload in time, and leave nothing", async () => {
  // A server of its own: on a busy machine an honest upload of others would be too slow for these limits.
  await using server = await TestServer.start({
    settings: { limits: { upload_idle_timeout: "2s", upload_timeout: "8s" } },
  });
  using client = new GrpcClient(server.grpc);
  const codebase_id = await makeCodebase(client, { "a.txt": "old" }, "owner");
  const begin = () => {
    const call = client.sending("CodebaseService", "UploadFiles");
    call.on("error", () => {});
    // A cancelled call of this client looks complete for a moment: it ends its stream, and only then takes it back.
    call.write({ metadata: { codebase_id, file_path: "a.txt", announces_end: true } });
    call.write({ data: Buffer.from("half of it") });
    const status = new Promise<{ code: number }>((resolve) => call.once("status", resolve));
    return { call, status };
  };
  const [silent, dripping, gone] = [begin(), begin(), begin()];
  const drops = setInterval(() => {
    dripping.call.write({ data: Buffer.from(".") });
    gone.call.cancel();
  }, 200);
  expect((await silent.status).code).toBe(8);
  expect((await gone.status).code).toBe(1);
  expect((await dripping.status).code).toBe(8);
  clearInterval(drops);
  const staged = () => globSync(`codebases/${codebase_id}/staging/**/*`, { cwd: server.directory });
  await eventually(() => expect(staged()).toEqual([]));
  expect((await client.download(codebase_id, "a.txt")).toString()).toBe("old");
  expect((await client.call("CodebaseService", "GetCodebase", { codebase_id })).version).toBe("1");
});

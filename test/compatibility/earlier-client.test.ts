import { execFile } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { TestServer } from "../support/server.ts";

// The client that was published for the earlier server (PyPI: agentfense 0.2.1), as it is, against ours.

const repository = join(import.meta.dirname, "../..");
let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start();
});
afterAll(() => server[Symbol.asyncDispose]());

test.for([
  ["the published client of the earlier server works unmodified", "earlier_client.py", 12],
  ["grpcio with the stubs of that client gets every status of the contract", "earlier_stubs.py", 6],
] as const)("%s", async ([, script, tests]) => {
  const output = await new Promise<string>((resolve) => {
    execFile(
      join(repository, ".cache/python/bin/python"),
      [join(repository, "test/python", script)],
      { env: { ...process.env, AGENTFENSE_TEST_ENDPOINT: server.grpc }, timeout: 150_000 },
      (_error, stdout, stderr) => resolve(`${stdout}${stderr}`),
    );
  });
  expect(output).toMatch(new RegExp(`Ran ${tests} tests in [\\d.]+s\\s+OK`));
});

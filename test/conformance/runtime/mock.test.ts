import { type MockCall, openIsolation } from "@agentfense/server/isolation";
import { expect, test } from "vitest";
import { describeBackend, SCRIPT } from "./contract.suite.ts";

const answer = ({ argv }: { argv: readonly string[] }) => SCRIPT[argv[2] ?? ""];

describeBackend("mock", {
  open: () => openIsolation({ runtimes: ["mock"], mock: { answer } }),
  spec: { runtime: "mock" },
  acted: true,
});

test("the mock records every call in order", async () => {
  const calls: MockCall[] = [];
  await using isolation = await openIsolation({ runtimes: ["mock"], mock: { calls } });
  const workspaces = [{ lowers: ["/nowhere"], rules: [] }];
  await using sandbox = await isolation.create({ id: "a", runtime: "mock", workspaces });
  await sandbox.start();
  await sandbox.exec({ command: "make test" });
  await sandbox.destroy();
  expect(calls).toEqual([
    { call: "create", sandbox: "a" },
    { call: "start", sandbox: "a" },
    { call: "run", sandbox: "a", command: ["/bin/bash", "-c", "make test"] },
    { call: "destroy", sandbox: "a" },
  ]);
});

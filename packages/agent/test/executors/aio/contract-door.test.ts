import { afterAll, beforeAll, expect, test } from "vitest";
import { DoorServer } from "../../../../doors/test/aio/door-server.ts";
import { AioExecutor } from "../../../src/executors/aio/aio-executor.ts";
import { LANGUAGES } from "../../../src/types.ts";
import { describeExecutor } from "../contract.ts";

let server: DoorServer;
beforeAll(async () => {
  server = await DoorServer.open();
});
afterAll(async () => await server?.[Symbol.asyncDispose]());

describeExecutor("AioExecutor on our own AIO door", {
  type: "aio",
  languages: LANGUAGES,
  open: async () => {
    const sandbox = await server.sandbox({}, [{ pattern: "**", permission: "write" }]);
    return new AioExecutor({ baseUrl: server.url(sandbox.id) });
  },
});

test("clients that know shells only do the same with the door's shells", async () => {
  await using old = await DoorServer.open();
  old.hidden = "/v1/bash/";
  const sandbox = await old.sandbox({ "a.txt": "one" }, [{ pattern: "**", permission: "write" }]);
  await using executor = new AioExecutor({ baseUrl: old.url(sandbox.id) });
  expect(await executor.server()).toMatchObject({ calls: "shell", workspace: "/workspace" });
  const task = { language: "python", risk: { level: "HIGH", detected: [] }, securityMode: "STRICT" } as const;
  const code = "import os, sys; print(open('a.txt').read(), os.environ['A']); print('e', file=sys.stderr); sys.exit(3)";
  const outcomes = await Promise.all(
    ["x y", "it's"].map((value) => executor.execute({ ...task, code, env: { A: value } })),
  );
  expect(outcomes).toMatchObject([
    { stdout: "one x y\n", stderr: "e\n", exitCode: 3, timedOut: false },
    { stdout: "one it's\n", stderr: "e\n", exitCode: 3, timedOut: false },
  ]);
  const late = await executor.execute({ ...task, code: "import time; time.sleep(60)", timeoutMs: 1_000 });
  expect(late).toMatchObject({ timedOut: true });
  expect(await sandbox.files.readdir("/")).toEqual(["a.txt"]);
});

import { expect, test } from "vitest";
import type { ProcessEvent } from "../../src/model/records.ts";
import { Sandbox } from "../../src/sandbox/sandbox.ts";
import { codeOf, openMock } from "./support.ts";

async function textOf(events: AsyncIterable<ProcessEvent>): Promise<string> {
  let text = "";
  for await (const event of events) text += event.kind === "exit" ? `(${event.end.exitCode})` : Buffer.from(event.data);
  return text;
}

test("a spawned process is found by number and tag, takes input, and tells its output and end afterwards", async () => {
  await using mock = await openMock();
  const sandbox = await Sandbox.connect(mock.id, { engine: mock.client.engine });
  const spawned = await sandbox.spawn("cat; exit 3", { tag: "cat", stdin: true });
  expect(spawned.info).toMatchObject({
    number: 1,
    tag: "cat",
    kind: "started",
    state: "running",
    command: "cat; exit 3",
  });
  const found = await sandbox.process("cat");
  const output = textOf(await found.attach());
  await found.write("hello ");
  await found.write(new TextEncoder().encode("you\n"));
  await found.end();
  expect(await spawned.wait()).toEqual({ exitCode: 3, signal: undefined, timedOut: false, outOfMemory: false });
  expect(await output).toBe("hello you\n(3)");
  expect(await textOf((await sandbox.process(1)).output())).toBe("hello you\n(3)");
  expect((await sandbox.processes()).map(({ info }) => [info.number, info.state, info.end?.exitCode])).toEqual([
    [1, "ended", 3],
  ]);
  expect(await codeOf(found.write("too late"))).toBe("PROCESS_UNSUITABLE");
  expect(await codeOf(sandbox.process("web"))).toBe("PROCESS_NOT_FOUND");
});

test("a signal, a stop and a time limit end it; a tag means the one that lives", async () => {
  await using mock = await openMock();
  const { client, id } = mock;
  const first = await client.startProcess(id, "cat", { tag: "t", stdin: true });
  const second = await client.startProcess(id, ["cat"], { tag: "t", terminal: { columns: 80, rows: 24 } });
  await client.resizeProcess(id, second.number, { columns: 90, rows: 30 });
  await client.signalProcess(id, "t", "SIGTERM");
  expect((await client.waitProcess(id, second.number)).end?.exitCode).toBe(137);
  const waiting = client.waitProcess(id, "t");
  await client.signalProcess(id, first.number, 9);
  expect(await waiting).toMatchObject({ number: first.number, state: "ended" });
  const limited = await client.startProcess(id, "cat", { stdin: true, timeoutMs: 20 });
  expect((await client.waitProcess(id, limited.number)).end).toMatchObject({ timedOut: true });
  expect(await codeOf(client.startProcess(id, "true", { tag: "9" }))).toBe("INVALID_ARGUMENT");
  expect(await codeOf(client.signalProcess(id, limited.number, "NO SIGNAL"))).toBe("INVALID_ARGUMENT");
  expect(await codeOf(client.closeInput(id, second.number))).toBe("PROCESS_UNSUITABLE");
});

import { InvalidConfigurationError, Sandbox } from "@agentfense/sdk";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { TestServer } from "../../support/server.ts";

let server: TestServer;
let sandbox: Sandbox;
beforeAll(async () => {
  server = await TestServer.start();
  sandbox = await Sandbox.create({ endpoint: server.grpc, preset: "full-access", sync: "manual" });
});
afterAll(async () => {
  await sandbox?.[Symbol.asyncDispose]();
  await server?.[Symbol.asyncDispose]();
});

/** What a stream has up to a text, which is then known to have arrived. */
async function readUntil(reader: ReadableStreamDefaultReader<Uint8Array>, wanted: string): Promise<string> {
  let text = "";
  while (!text.includes(wanted)) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`it ended without ${wanted}: ${text}`);
    text += Buffer.from(value).toString();
  }
  return text;
}

describe("a handle on a running command", () => {
  test("output arrives while it runs, input goes in, and the end is known", async () => {
    const execution = await sandbox.exec("while read line; do echo got $line; done; echo over >&2; exit 3");
    const reader = execution.stdout.getReader();
    await execution.sendStdin("one\n");
    expect(await readUntil(reader, "one\n")).toBe("got one\n");
    await execution.sendStdin("two\n");
    expect(await readUntil(reader, "two\n")).toBe("got two\n");
    execution.endStdin();
    expect(await execution.wait()).toMatchObject({ exitCode: 3, stdout: "", stderr: "over\n" });
    expect(await reader.read()).toEqual({ done: true, value: undefined });
    await expect(execution.sendStdin("three\n")).rejects.toMatchObject({ code: "COMMAND_FAILED" });
  });

  test("much input, as fast as the command reads it", async () => {
    const execution = await sandbox.exec("sha256sum | cut -c1-8; wc -c < /dev/null");
    const megabyte = Buffer.alloc(1024 * 1024, "x");
    for (let sent = 0; sent < 8; sent += 1) await execution.sendStdin(megabyte);
    execution.endStdin();
    const { stdout } = await execution.wait();
    const alone = await sandbox.run(
      "head -c 8388608 /dev/zero | tr '\\0' x | sha256sum | cut -c1-8; wc -c < /dev/null",
    );
    expect(stdout).toBe(alone.stdout);
  });

  test("input that is given at once ends by itself, and no more can be sent", async () => {
    const execution = await sandbox.exec("cat", { stdin: "all of it" });
    await expect(execution.sendStdin("x")).rejects.toThrow(InvalidConfigurationError);
    expect((await execution.wait()).stdout).toBe("all of it");
  });

  test("events in the order they came", async () => {
    const events: string[] = [];
    const command = "echo 1; sleep 0.2; echo 2 >&2; sleep 0.2; echo 3; exit 4";
    for await (const event of await sandbox.exec(command)) {
      events.push(event.kind === "exit" ? `exit ${event.end.exitCode}` : `${event.kind} ${Buffer.from(event.data)}`);
    }
    expect(events).toEqual(["stdout 1\n", "stderr 2\n", "stdout 3\n", "exit 4"]);
  });

  test("kill ends all that the command has started; being killed is a result", async () => {
    const execution = await sandbox.exec(
      "echo $$ > pid; (while sleep 0.1; do date +%s%N > alive; done) & echo up; wait",
    );
    await readUntil(execution.stdout.getReader(), "up\n");
    await execution.kill();
    await execution.kill();
    expect(await execution.wait()).toMatchObject({ exitCode: 137, signal: "SIGKILL", success: false });
    // The server hears of it a moment later; from then on nothing writes any more.
    const isStill = async (): Promise<boolean> => {
      const { stdout } = await sandbox.run('a=$(cat alive); sleep 0.5; test "$a" = "$(cat alive)" && echo still');
      return stdout === "still\n";
    };
    await eventually(async () => expect(await isStill()).toBe(true));
  });

  test("disposing kills", async () => {
    let waited: Promise<unknown>;
    {
      await using execution = await sandbox.exec("sleep 600");
      waited = execution.wait();
    }
    expect(await waited).toMatchObject({ exitCode: 137 });
  });

  test("that a command could not be started shows in its handle", async () => {
    const nowhere = await sandbox.exec("true", { workdir: "/no/such/directory" });
    await expect(nowhere.stdout.getReader().read()).rejects.toMatchObject({ code: "WORKDIR_UNUSABLE" });
    await expect(nowhere.wait()).rejects.toThrow(InvalidConfigurationError);
  });

  test("wait with much of both outputs, which nobody reads", async () => {
    const execution = await sandbox.exec("head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2; echo end");
    const { stdoutBytes, stderrBytes, truncated } = await execution.wait();
    expect([stdoutBytes.length, stderrBytes.length, truncated]).toEqual([3_000_004, 3_000_000, false]);
  });

  test("a command of a session that is streamed can be killed", async () => {
    await using session = await sandbox.session();
    const execution = await session.stream("echo up; sleep 600");
    await readUntil(execution.stdout.getReader(), "up\n");
    await execution.kill();
    expect(await execution.wait()).toMatchObject({ exitCode: 137, signal: "SIGKILL", command: "echo up; sleep 600" });
  });
});

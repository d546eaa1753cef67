import { readdirSync, readFileSync } from "node:fs";
import { ConnectionError, Sandbox, type SandboxClient } from "agentfense";
import { describe, expect, test } from "vitest";
import { aWhile, eventually, withoutHanging } from "../../support/eventually.ts";
import { heldBytes } from "../../support/garbage.ts";
import { rounds } from "../../support/rounds.ts";
import { setStage, type World } from "../../support/scenes.ts";
import { TestServer } from "../../support/server.ts";

const WORLDS: readonly World[] = ["embedded", "remote"];
/** A gibibyte when there is time. */
const OUTPUT_BYTES = Math.min(1024 ** 3, rounds(1) * 256 * 1024 ** 2);
/** Of which at most this may ever be here at once. */
const HELD_BYTES = Math.min(OUTPUT_BYTES / 2, 256 * 1024 ** 2);
const LOOK_EVERY_BYTES = 16 * 1024 ** 2;

describe.each(WORLDS)("a %s sandbox", (world) => {
  const stage = setStage(world);
  const open = () => Sandbox.fromLocal(stage.project({ "a.txt": "a\n" }), { ...stage.place, preset: "full-access" });

  test("an aborted command is ended with everything it started, and the reason is thrown", async () => {
    await using sandbox = await open();
    const controller = new AbortController();
    const running = sandbox.run("sleep 4321 & sleep 4322", { signal: controller.signal });
    await eventually(() => countRunning("sleep 432[12]") === 2);
    const reason = new Error("changed my mind");
    controller.abort(reason);
    await expect(running).rejects.toBe(reason);
    await eventually(() => countRunning("sleep 432[12]") === 0);
  });

  test("an abort that came before is heeded", async () => {
    await using sandbox = await open();
    await expect(sandbox.run("touch made", { signal: AbortSignal.abort() })).rejects.toMatchObject({
      name: "AbortError",
    });
    expect(await sandbox.changes().toArray()).toEqual([]);
  });

  test("an aborted handle ends its command and its wait", async () => {
    await using sandbox = await open();
    const controller = new AbortController();
    const execution = await sandbox.exec("sleep 4323", { signal: controller.signal });
    await eventually(() => countRunning("sleep 4323") === 1);
    controller.abort();
    await expect(execution.wait()).rejects.toMatchObject({ name: "AbortError" });
    await eventually(() => countRunning("sleep 4323") === 0);
  });

  test("an aborted command of a session leaves the session usable or says that it is closed", async () => {
    await using sandbox = await open();
    await using session = await sandbox.session();
    await session.exec("export KEPT=yes");
    const leaving = new AbortController();
    const command = session.exec("sleep 4324", { signal: leaving.signal }).catch((error: unknown) => error);
    await eventually(() => countRunning("sleep 4324") === 1);
    leaving.abort();
    expect(await command).toMatchObject({ name: "AbortError" });
    await eventually(() => countRunning("sleep 4324") === 0);
    expect((await session.exec("echo $KEPT")).stdout).toBe("yes\n");
  });

  test("who leaves the loop of events ends the command", async () => {
    await using sandbox = await open();
    const execution = await sandbox.exec("yes 4326");
    for await (const event of execution) {
      if (event.kind === "stdout") break;
    }
    await eventually(() => countRunning("yes 4326") === 0);
  });

  test("a timeout ends the tree, keeps the output and leaves the sandbox in order", async () => {
    await using sandbox = await open();
    const result = await sandbox.run("echo begun; sleep 4325 & sleep 4325", { timeoutMs: 2_000 });
    expect(result).toMatchObject({ timedOut: true, stdout: "begun\n" });
    expect(countRunning("sleep 4325")).toBe(0);
    expect(await sandbox.run("echo fine")).toMatchObject({ exitCode: 0, stdout: "fine\n" });
  });

  test("a slow reader of very much output slows the command, and memory stays", async () => {
    await using sandbox = await open();
    const execution = await sandbox.exec(`head -c ${OUTPUT_BYTES} /dev/zero`, { timeoutMs: 600_000 });
    const reader = execution.stdout.getReader();
    let received = (await reader.read()).value?.length ?? 0;
    // Nobody reads on: what comes next waits in the command, not here.
    const before = heldBytes();
    await standsStill(`head -c ${OUTPUT_BYTES} /dev/zero`);
    expect(heldBytes() - before).toBeLessThan(64 * 1024 * 1024);
    let most = 0;
    for (let looks = 0; ; ) {
      const { value, done } = await reader.read();
      if (done) break;
      received += value.length;
      if (received <= looks * LOOK_EVERY_BYTES) continue;
      looks += 1;
      most = Math.max(most, heldBytes() - before);
    }
    expect(received).toBe(OUTPUT_BYTES);
    expect(most).toBeLessThan(HELD_BYTES);
    expect((await execution.wait()).exitCode).toBe(0);
  });

  test("the output of one stream does not wait for a reader of the other", async () => {
    await using sandbox = await open();
    const execution = await sandbox.exec("head -c 20000000 /dev/zero >&2; echo done");
    const text = await new Response(execution.stdout).text();
    expect(text).toBe("done\n");
    expect((await execution.wait()).truncated).toBe(true);
  });

  test("callbacks get all of it, in order, and may take their time", async () => {
    await using sandbox = await open();
    const seen: string[] = [];
    const result = await sandbox.run("for i in 1 2 3; do echo $i; sleep 0.1; done", {
      onStdout: async (text) => {
        await aWhile(20);
        seen.push(text);
      },
    });
    expect(seen.join("")).toBe("1\n2\n3\n");
    expect(result.stdout).toBe("1\n2\n3\n");
  });

  test("many commands at once do not wait for each other", async () => {
    await using sandbox = await open();
    const results = await Promise.all(Array.from({ length: 20 }, (_, index) => sandbox.run(`echo ${index}`)));
    expect(results.map(({ stdout }) => stdout)).toEqual(Array.from({ length: 20 }, (_, index) => `${index}\n`));
  });
});

describe("when the server dies", () => {
  test("a running call fails as a lost connection, soon, and so do streams, sessions and watchers", async () => {
    await using server = await TestServer.start();
    const sandbox = await Sandbox.create({ endpoint: server.grpc, preset: "full-access" });
    await using client = sandbox.client;
    const session = await sandbox.session();
    const execution = await sandbox.exec("echo up; sleep 600");
    const reader = execution.stdout.getReader();
    await reader.read();
    const calls = {
      run: sandbox.run("sleep 600", { timeoutMs: 590_000 }),
      session: session.exec("sleep 600", { timeoutMs: 590_000 }),
      stream: execution.wait(),
      watch: nextEvent(client, sandbox.id),
    };
    const settled = Object.entries(calls).map(async ([name, call]) => {
      const error = await call.then(
        () => undefined,
        (reason: unknown) => reason,
      );
      return { name, error };
    });
    await aWhile(500);
    await server.stop("SIGKILL");
    for (const { name, error } of await withoutHanging(() => Promise.all(settled))) {
      expect(error, name).toBeInstanceOf(ConnectionError);
      expect(error, name).toMatchObject({ code: "CONNECTION_FAILED" });
    }
  });

  test("the same client goes on when it is back, with the same sandbox and its changes", async () => {
    await using first = await TestServer.start();
    const sandbox = await Sandbox.create({ endpoint: first.grpc, preset: "full-access", sync: "manual" });
    await sandbox.run("echo kept > kept.txt");
    const { port } = new URL(`http://${first.grpc}`);
    await first.stop("SIGKILL");
    await expect(sandbox.run("true")).rejects.toBeInstanceOf(ConnectionError);
    await using second = await TestServer.start({
      directory: first.directory,
      settings: { server: { grpc_addr: `127.0.0.1:${port}` } },
    });
    expect(second.grpc).toBe(first.grpc);
    await eventually(async () => (await sandbox.refresh()).status === "running");
    expect((await sandbox.run("cat kept.txt")).stdout).toBe("kept\n");
    await sandbox.destroy();
    await sandbox.close();
  });

  test("an idempotent call waits for a server that comes back soon", async () => {
    await using first = await TestServer.start();
    const sandbox = await Sandbox.create({ endpoint: first.grpc, preset: "full-access" });
    const { port } = new URL(`http://${first.grpc}`);
    await first.stop("SIGKILL");
    const asked = sandbox.client.getSandbox(sandbox.id).then(
      ({ id }) => id,
      (error: unknown) => error,
    );
    await using _second = await TestServer.start({
      directory: first.directory,
      settings: { server: { grpc_addr: `127.0.0.1:${port}` } },
    });
    const outcome = await asked;
    // A start takes about as long as the retries: either is right, a hang or another error is not.
    expect(outcome === sandbox.id || outcome instanceof ConnectionError).toBe(true);
    await eventually(async () => (await sandbox.refresh()).status === "running");
    await sandbox.close();
  });

  test("who follows events misses none and sees none twice", async () => {
    await using first = await TestServer.start();
    const sandbox = await Sandbox.create({ endpoint: first.grpc, preset: "full-access" });
    const { port } = new URL(`http://${first.grpc}`);
    const stop = new AbortController();
    const commands: unknown[] = [];
    const following = (async () => {
      for await (const event of sandbox.events({ types: ["command_executed"], signal: stop.signal })) {
        commands.push(event.data.command);
      }
    })().catch((error: unknown) => error);
    await sandbox.run("echo 1");
    await eventually(() => commands.length === 1);
    await first.stop("SIGKILL");
    await using _second = await TestServer.start({
      directory: first.directory,
      settings: { server: { grpc_addr: `127.0.0.1:${port}` } },
    });
    await eventually(async () => (await sandbox.refresh().catch(() => undefined))?.status === "running");
    await sandbox.run("echo 2");
    await sandbox.run("echo 3");
    await eventually(() => commands.length >= 3);
    stop.abort();
    await following;
    expect(commands).toEqual(["echo 1", "echo 2", "echo 3"]);
    await sandbox.close();
  });
});

async function nextEvent(client: SandboxClient, sandboxId: string): Promise<unknown> {
  for await (const event of client.watchEvents({ sandboxId, types: ["never"] })) return event;
  return undefined;
}

function countRunning(pattern: string): number {
  return running(pattern).length;
}

/** Every command has a process namespace of its own, so they are looked for on the host, by their words. */
function running(pattern: string): string[] {
  const words = new RegExp(`^${pattern}$`);
  return readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      return words.test(readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ").trim());
    } catch {
      return false;
    }
  });
}

/** Waits until the command is in a write that nobody takes, and has been for some looks after each other. */
async function standsStill(command: string): Promise<void> {
  await eventually(() => countRunning(command) === 1);
  const [pid] = running(command);
  let written = "";
  let looks = 0;
  await eventually(() => {
    const waits = readFileSync(`/proc/${pid}/wchan`, "utf8").endsWith("pipe_write");
    const now = /^wchar: .*$/m.exec(readFileSync(`/proc/${pid}/io`, "utf8"))?.[0] ?? "";
    looks = waits && now === written ? looks + 1 : 0;
    written = now;
    return looks === 10;
  });
}

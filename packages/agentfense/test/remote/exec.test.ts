import { once } from "node:events";
import { text } from "node:stream/consumers";
import { ExecOutput_OutputType as OutputType } from "@agentfense/protocol/sandbox";
import { describe, expect, test } from "vitest";
import { registryError } from "../../../../test/support/scripted-server.ts";
import { start } from "../run-cli.ts";
import { scriptedServer } from "./scripted-server.ts";

const bytes = (content: string) => Buffer.from(content);

describe("processes that stay", () => {
  test("spawn tells the number, ps lists, attach passes output, input and exit code on, kill names the signal", async () => {
    const asked: unknown[] = [];
    const started = { number: 3, tag: "web", kind: 1, command: "npm start", state: 1 };
    const server = await scriptedServer({
      sandboxes: {
        startProcess({ tag, stdin, command, argv, timeout }) {
          asked.push([tag, stdin, command, argv, Number(timeout?.seconds)]);
          return started;
        },
        listProcesses: () => ({
          processes: [
            started,
            { ...started, number: 2, state: 2, argv: ["ls", "-l"], exitCode: 137, signal: "SIGKILL" },
          ],
        }),
        async *attachProcess({ number, tag }) {
          asked.push([number, tag]);
          yield {};
          yield { type: 1, data: bytes("out\n"), lostBytes: 7n };
          yield { type: 2, data: bytes("err\n") };
          while (!asked.includes("closed")) await new Promise((resolve) => setImmediate(resolve));
          yield { exitCode: 4 };
        },
        sendInput({ data }) {
          asked.push(Buffer.from(data).toString());
          return {};
        },
        closeInput() {
          asked.push("closed");
          return {};
        },
        signalProcess({ number, tag, signal }) {
          asked.push([number, tag, signal]);
          return {};
        },
      },
    });
    const spawn = ["sandbox", "spawn", "--tag", "web", "--input", "--timeout", "9s", "sb_1", "--", "npm start"];
    expect(await server.run(spawn)).toEqual({ code: 0, stdout: "3\n", stderr: "" });
    const { stdout } = await server.run(["sandbox", "ps", "sb_1"]);
    expect(stdout).toMatch(/^NUMBER +TAG +KIND +STATE/);
    expect(stdout).toMatch(/3 +web +started +running/);
    expect(stdout).toMatch(/2 +web +started +exit 137 \(SIGKILL\) .*ls -l/);
    expect(await server.run(["sandbox", "attach", "--input", "sb_1", "web"], { input: "in" })).toEqual({
      code: 4,
      stdout: "out\n",
      stderr: "agentfense: 7 bytes before this were not kept\nerr\n",
    });
    expect(await server.run(["sandbox", "kill", "sb_1", "3"])).toEqual({ code: 0, stdout: "", stderr: "" });
    expect(await server.run(["sandbox", "kill", "sb_1", "web", "--signal", "HUP"])).toMatchObject({ code: 0 });
    expect(asked).toEqual([
      ["web", true, "npm start", [], 9],
      [0, "web"],
      "in",
      "closed",
      [3, "", "KILL"],
      [0, "web", "HUP"],
    ]);
  });
});

describe("sandbox exec", () => {
  test("passes on both streams and the exit code", async () => {
    const requests: unknown[] = [];
    const server = await scriptedServer({
      sandboxes: {
        async *execStream(request) {
          requests.push([
            request.command,
            request.argv,
            request.env,
            request.workdir,
            Buffer.from(request.stdinBytes).toString(),
          ]);
          yield { type: OutputType.STDOUT, data: bytes("out \u00ff") };
          yield { type: OutputType.STDERR, data: bytes("err\n") };
          yield { exitCode: 7, syncProblems: ["/a: not writable"] };
        },
      },
    });
    const args = ["sandbox", "exec", "--env", "A=1", "--workdir", "src", "sb_1", "--", "cat", "-n"];
    expect(await server.run(args, { input: "from a pipe" })).toEqual({
      code: 7,
      stdout: "out \u00ff",
      stderr: "err\nagentfense: not written to the codebase: /a: not writable\n",
    });
    await server.run(["sandbox", "exec", "sb_1", "--", "ls | wc"]);
    expect(requests).toEqual([
      ["", ["cat", "-n"], { A: "1" }, "src", "from a pipe"],
      ["ls | wc", [], {}, "", ""],
    ]);
  });

  test("a command whose time was up ends with 124", async () => {
    const server = await scriptedServer({
      sandboxes: {
        async *execStream() {
          yield { exitCode: 137, timedOut: true };
        },
      },
    });
    const { code, stderr } = await server.run(["sandbox", "exec", "sb_1", "--timeout", "1s", "--", "sleep 9"]);
    expect({ code, stderr }).toEqual({ code: 124, stderr: expect.stringContaining("its time was up") });
  });

  test("one that could not be run ends with 125, and says why", async () => {
    const server = await scriptedServer({
      sandboxes: {
        // biome-ignore lint/correctness/useYield: it fails before the first output
        async *execStream() {
          throw registryError("SANDBOX_NOT_RUNNING", "sandbox is not running");
        },
      },
    });
    expect(await server.run(["sandbox", "exec", "sb_1", "--", "ls"])).toEqual({
      code: 125,
      stdout: "",
      stderr: "agentfense: sandbox is not running\nhint: start it first: agentfense sandbox start ID\n",
    });
  });

  test("--json is one object at the end", async () => {
    const server = await scriptedServer({
      sandboxes: {
        async *execStream() {
          yield { type: OutputType.STDOUT, data: bytes("a") };
          yield { type: OutputType.STDOUT, data: bytes("b") };
          yield { exitCode: 0, duration: { seconds: 1n, nanos: 500_000_000 }, syncedVersion: 4n };
        },
      },
    });
    const { code, stdout } = await server.run(["sandbox", "exec", "--json", "sb_1", "--", "ls"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      exitCode: 0,
      timedOut: false,
      outOfMemory: false,
      sessionClosed: false,
      durationMs: 1500,
      syncedVersion: 4,
      syncProblems: [],
      stdout: "ab",
      stderr: "",
    });
  });

  test("Ctrl-C cancels the call and ends with 130", async () => {
    const cancelled = Promise.withResolvers<void>();
    const server = await scriptedServer({
      sandboxes: {
        async *execStream(_request, { signal }) {
          yield { type: OutputType.STDOUT, data: bytes("started\n") };
          await once(signal, "abort");
          cancelled.resolve();
        },
      },
    });
    const child = start(["sandbox", "exec", "sb_1", "--", "sleep 100"], { env: server.env });
    const stderr = text(child.stderr!);
    await once(child.stdout!, "data");
    child.kill("SIGINT");
    const [code] = await once(child, "exit");
    await cancelled.promise;
    expect({ code, stderr: await stderr }).toEqual({ code: 130, stderr: "" });
  });
});

test("session exec joins the words of its line", async () => {
  const commands: string[] = [];
  const server = await scriptedServer({
    sandboxes: {
      async *sessionExecStream({ sessionId, command }) {
        commands.push(`${sessionId}: ${command}`);
        yield { exitCode: 3 };
      },
    },
  });
  const { code } = await server.run(["session", "exec", "sess_1", "--", "cd", "src", "&&", "ls"]);
  expect({ code, commands }).toEqual({ code: 3, commands: ["sess_1: cd src && ls"] });
});

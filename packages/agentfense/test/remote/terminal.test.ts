import { Sandbox } from "@agentfense/sdk";
import { expect, test } from "vitest";
import { TestServer } from "../../../../test/support/server.ts";
import { atATerminal, reasonAgainstTerminals } from "../at-a-terminal.ts";
import { agentfense } from "../run-cli.ts";

const PROMPT = "[$#] $";

test("a process on a terminal of its own is attached to, left and found again, on a real server", async ({ skip }) => {
  const reason = reasonAgainstTerminals();
  if (reason !== undefined) skip(reason);
  await using server = await TestServer.start();
  const surroundings = { env: { AGENTFENSE_ENDPOINT: `http://${server.grpc}` } };
  await using sandbox = await Sandbox.create({ endpoint: server.grpc });
  const spawn = ["sandbox", "spawn", "--terminal", "--tag", "shell", sandbox.id];
  expect(await agentfense([...spawn, "--", "/bin/sh", "-i"], surroundings)).toMatchObject({ code: 0, stdout: "1\n" });
  await sandbox.spawn("sleep 300", { tag: "plain" });
  const attach = ["sandbox", "attach", "--terminal", sandbox.id];

  const first = await atATerminal([...attach, "shell"], surroundings, [
    // What is to be interrupted says that it runs: a shell that is just starting it may take the signal for its own.
    { wait: PROMPT, type: 'kept=42; stty size; sh -c "echo runs; exec sleep 300"\r' },
    { wait: "30 100\r\nruns\r\n", type: "\u0003" },
    { wait: PROMPT, resize: [77, 22] },
    { type: "until stty size | grep '22 7[7]'; do sleep 0.1; done\r" },
    { wait: "22 77\r\n", type: "\u001d" },
  ]);
  expect(first).toMatchObject({ code: 0, restored: true });
  expect(first.output).toContain("agentfense: detached; the process goes on");

  const second = await atATerminal([...attach, "shell"], surroundings, [
    { wait: PROMPT, type: "echo still-$kept; exit 7\r" },
  ]);
  expect(second).toMatchObject({ code: 7, restored: true });
  expect(second.output).toContain("still-42\r\n");

  const refused = await atATerminal([...attach, "plain"], surroundings, []);
  expect(refused).toMatchObject({ code: 125, restored: true });
  expect(refused.output).toContain("terminal");
  expect(await agentfense([...attach, "plain"], surroundings)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--terminal needs a terminal here"),
  });
});

import { PassThrough } from "node:stream";
import { finished } from "node:stream/promises";
import { type BoxedWorkspace, type Isolation, openIsolation } from "@agentfense/server/isolation";
import { answerParent } from "./peer.ts";
import type { SandboxAnswers, SandboxRequest } from "./sandbox-link.ts";

/** A process that has sandboxes, as a server has: what must not leak into them is in its environment and descriptors. */
let isolation: Isolation | undefined;
const sandboxes = new Map<string, BoxedWorkspace>();
const tasks = new Map<number, Task>();
let lastTask = 0;

/** A command that runs until its standard input ends. */
interface Task {
  readonly stdin: PassThrough;
  readonly output: Promise<string>;
}

answerParent(
  (body) => answer(body as SandboxRequest),
  () => isolation?.close(),
);

async function answer(request: SandboxRequest): Promise<SandboxAnswers[SandboxRequest["method"]]> {
  switch (request.method) {
    case "open":
      Object.assign(process.env, request.environment);
      isolation = await openIsolation(request.options);
      return isolation.degradations;
    case "create": {
      if (isolation === undefined) throw new Error("open the isolation first");
      const sandbox = await isolation.create(request.spec);
      sandboxes.set(sandbox.id, sandbox);
      await sandbox.start();
      return sandbox.id;
    }
    case "exec": {
      const { exitCode, stdout, stderr } = await sandboxOf(request.id).exec(request.request);
      return { exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
    }
    case "session": {
      await using session = await sandboxOf(request.id).session();
      const { exitCode, stdout, stderr } = await session.exec({ command: request.command });
      return { exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
    }
    case "terminal": {
      const size = { columns: 200, rows: 50 };
      await using terminal = await sandboxOf(request.id).terminal({ argv: request.argv, size });
      let text = "";
      terminal.output.on("data", (chunk: Buffer) => {
        text += chunk.toString();
      });
      await Promise.all([terminal.exit, finished(terminal.output)]);
      return text;
    }
    case "begin":
      return await begin(sandboxOf(request.id), request.command);
    case "end": {
      const task = tasks.get(request.task);
      if (task === undefined) throw new Error(`there is no task ${request.task}`);
      tasks.delete(request.task);
      task.stdin.end();
      return await task.output;
    }
    case "destroy":
      await sandboxOf(request.id).destroy();
      return undefined;
    case "close":
      await isolation?.close();
      return undefined;
  }
}

/** Starts a command and waits for the first line it prints. */
async function begin(sandbox: BoxedWorkspace, command: readonly string[]): Promise<SandboxAnswers["begin"]> {
  const stdin = new PassThrough();
  const { promise: firstLine, resolve, reject } = Promise.withResolvers<string>();
  let text = "";
  const follow = async (): Promise<string> => {
    for await (const event of sandbox.execStream({ command, stdin })) {
      if (event.kind === "exit") break;
      text += event.data.toString();
      const [line, rest] = text.split("\n", 2);
      if (rest !== undefined) resolve(line!);
    }
    reject(new Error(`the command ended early: ${text}`));
    return text;
  };
  const output = follow();
  output.catch(reject);
  lastTask += 1;
  tasks.set(lastTask, { stdin, output });
  return { task: lastTask, firstLine: await firstLine };
}

function sandboxOf(id: string): BoxedWorkspace {
  const found = sandboxes.get(id);
  if (found === undefined) throw new Error(`there is no sandbox ${id}`);
  return found;
}

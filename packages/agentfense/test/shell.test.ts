import { execFileSync, spawn } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { expect, test } from "vitest";
import { processesWith } from "../../../test/support/leftovers.ts";
import { describeForBoth, type Places, places } from "./sandbox-places.ts";

interface Step {
  /** A regular expression the output must match, after what earlier steps waited for. */
  readonly wait?: string;
  readonly type?: string;
  readonly resize?: readonly [columns: number, rows: number];
  readonly signal?: string;
}

interface Seen {
  readonly code: number | null;
  readonly output: string;
  readonly restored: boolean;
  readonly missing?: string;
}

const cli = join(import.meta.dirname, "../src/cli.ts");
const driver = join(import.meta.dirname, "fixtures/at-a-terminal.py");

/** Plays a user at a terminal of 100 × 30. */
async function atATerminal(
  args: readonly string[],
  { cwd, surroundings }: Places,
  steps: readonly Step[],
): Promise<Seen> {
  const child = spawn("python3", [driver], { stdio: ["pipe", "pipe", "inherit"] });
  const env = {
    PATH: process.env.PATH,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
    LC_ALL: "C",
    TERM: "xterm-256color",
    ...surroundings.env,
  };
  const argv = [process.execPath, cli, ...args];
  child.stdin.end(JSON.stringify({ argv, env, cwd, ...surroundings.identity, size: [100, 30], steps }));
  const seen = (await json(child.stdout)) as Seen;
  if (seen.missing !== undefined) throw new Error(`never saw ${seen.missing} in:\n${seen.output}`);
  return seen;
}

const PROMPT = "[$#] $";

function hasPython(): boolean {
  try {
    execFileSync("python3", ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

describeForBoth("agentfense shell", (as) => {
  const reason = hasPython() ? undefined : "python3, which plays the user, is not installed";

  test("is a real terminal in the sandbox, and ends with the shell's code and the changes", async ({ skip }) => {
    if (reason !== undefined) skip(reason);
    const here = await places(as);
    const { code, output, restored } = await atATerminal(["shell", "--preset", "full-access", "project"], here, [
      { wait: PROMPT, type: "tty -s && echo terminal-$TERM\r" },
      { wait: "terminal-xterm-256color", type: "pwd; stty size\r" },
      { wait: "/workspace\r\n30 100\r\n", type: "cat .git 2>/dev/null; echo new > added.txt\r" },
      { wait: PROMPT, type: "exit 7\r" },
    ]);
    expect({ code, restored }).toEqual({ code: 7, restored: true });
    expect(output).toContain("agentfense: 1 change:\r\n  \u001b[32madded    \u001b[0m /added.txt (4 bytes)\r\n");
    await expect(readFile(join(here.cwd, "project/added.txt"))).rejects.toMatchObject({ code: "ENOENT" });
    expect(await readdir(here.temporary)).toEqual([]);
  });

  test("follows the size of the terminal, and Ctrl-C goes to what runs inside", async ({ skip }) => {
    if (reason !== undefined) skip(reason);
    const mark = `43${Date.now() % 1e6}.5`;
    const { code, restored } = await atATerminal(["shell", "project"], await places(as), [
      { wait: PROMPT, resize: [77, 22] },
      { type: "until stty size | grep '22 7[7]'; do sleep 0.1; done\r" },
      { wait: "22 77", type: `sh -c "echo wait; exec sleep ${mark}"\r` },
      { wait: "wait\r\n", type: "\u0003" },
      { wait: PROMPT, type: "echo still-$((1+1))\r" },
      { wait: "still-2", type: "exit\r" },
    ]);
    expect({ code: code === 0 || code === 130, restored }).toEqual({ code: true, restored: true });
    expect(processesWith(mark)).toEqual([]);
  });

  test("SIGTERM from outside ends it, restores the terminal and leaves nothing", async ({ skip }) => {
    if (reason !== undefined) skip(reason);
    const here = await places(as);
    const mark = `44${Date.now() % 1e6}.5`;
    const { code, restored } = await atATerminal(["shell", "project"], here, [
      { wait: PROMPT, type: `trap '' TERM HUP; setsid sleep ${mark} & echo begun; sleep ${mark}\r` },
      { wait: "begun\r\n", signal: "SIGTERM" },
    ]);
    expect({ code, restored }).toEqual({ code: 143, restored: true });
    expect(processesWith(mark)).toEqual([]);
    expect(await readdir(here.temporary)).toEqual([]);
  });

  test("--env, --workdir and --delta work as in run", async ({ skip }) => {
    if (reason !== undefined) skip(reason);
    const here = await places(as);
    const args = ["shell", "--env", "GREETING=hello there", "--workdir", "src", "--delta", "kept", "project"];
    const { code } = await atATerminal(args, here, [
      { wait: PROMPT, type: 'echo "<$GREETING>"; pwd\r' },
      { wait: "<hello there>\r\n/workspace/src", type: "mkdir /workspace/output; exit\r" },
    ]);
    expect(code).toBe(0);
    expect(await readdir(join(here.cwd, "kept/tree"))).toEqual(["output"]);
  });
});

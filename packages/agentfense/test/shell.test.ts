import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { processesWith } from "../../../test/support/leftovers.ts";
import { atATerminal, reasonAgainstTerminals } from "./at-a-terminal.ts";
import { describeForBoth, places } from "./sandbox-places.ts";

const PROMPT = "[$#] $";

describeForBoth("agentfense shell", (as) => {
  const reason = reasonAgainstTerminals();

  test("is a real terminal in the sandbox, and ends with the shell's code and the changes", async ({ skip }) => {
    if (reason !== undefined) skip(reason);
    const here = await places(as);
    const { code, output, restored } = await atATerminal(
      ["shell", "--preset", "full-access", "project"],
      here.surroundings,
      [
        { wait: PROMPT, type: "tty -s && echo terminal-$TERM\r" },
        { wait: "terminal-xterm-256color", type: "pwd; stty size\r" },
        { wait: "/workspace\r\n30 100\r\n", type: "cat .git 2>/dev/null; echo new > added.txt\r" },
        { wait: PROMPT, type: "exit 7\r" },
      ],
    );
    expect({ code, restored }).toEqual({ code: 7, restored: true });
    expect(output).toContain("agentfense: 1 change:\r\n  \u001b[32madded\u001b[0m     /added.txt (4 bytes)\r\n");
    await expect(readFile(join(here.cwd, "project/added.txt"))).rejects.toMatchObject({ code: "ENOENT" });
    expect(await readdir(here.temporary)).toEqual([]);
  });

  test("follows the size of the terminal, and Ctrl-C goes to what runs inside", async ({ skip }) => {
    if (reason !== undefined) skip(reason);
    const mark = `43${Date.now() % 1e6}.5`;
    const { code, restored } = await atATerminal(["shell", "project"], (await places(as)).surroundings, [
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
    const { code, restored } = await atATerminal(["shell", "project"], here.surroundings, [
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
    const { code } = await atATerminal(args, here.surroundings, [
      { wait: PROMPT, type: 'echo "<$GREETING>"; pwd\r' },
      { wait: "<hello there>\r\n/workspace/src", type: "mkdir /workspace/output; exit\r" },
    ]);
    expect(code).toBe(0);
    expect(await readdir(join(here.cwd, "kept/tree"))).toEqual(["output"]);
  });
});

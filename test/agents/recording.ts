import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { COLUMNS, playUser } from "../../packages/agentfense/test/at-a-terminal.ts";
import { REPOSITORY } from "../../scripts/docs/source.ts";
import { terminalPicture } from "../../scripts/docs/terminal-picture.ts";
import { Machine } from "./machine.ts";

const inRepository = (path: string): string => join(REPOSITORY, path);

/** Where the recording is kept. */
export const PICTURE = inRepository("docs/agent.svg");

const KEY = "sk-ant-api03-the-real-key-of-the-user-0123456789";
const LOOKS = ["ls -Am", "cat .env", "curl -sS https://example.com", "printenv ANTHROPIC_API_KEY | cut -c-20"];
const TEST = `import assert from "node:assert/strict";
import { test } from "node:test";
import { latestEvent } from "./events.js";

test("the latest event wins", () => {
  assert.equal(latestEvent([{ time: 2 }, { time: 1 }]).time, 2);
});
`;

/**
 * A user at a shell lets Claude Code work on examples/project and applies what it did. All of it is real but the model: that wants
 * to look around, then to write a test, and says what it saw.
 */
export async function recordAgent() {
  const top = mkdtempSync(join(tmpdir(), "agentfense-recording-"));
  try {
    // The machine has this at /mnt: the screen is to be the same wherever it is made.
    mkdirSync(join(top, "state"));
    cpSync(inRepository("examples/project"), join(top, "parcels"), { recursive: true });
    const machine = new Machine(join(top, "machine"), {
      command: LOOKS.map((line) => `echo "+ ${line}"; ${line} 2>&1`).join("; "),
      edit: { path: "/workspace/src/events.test.js", content: TEST },
      says: "I find no .env, do not get to example.com, and have a placeholder for a key.\nThe test is in src/events.test.js.",
    });
    const bash = ["bash", "--noprofile", "--norc", "--noediting", "-i"];
    const shell = ["sh", "-ec", 'mount --bind "$0" /mnt; cd /mnt/parcels; exec "$@"', top, ...bash];
    const own = { HOME: "/mnt", XDG_STATE_HOME: "/mnt/state", ANTHROPIC_API_KEY: KEY, PS1: "$ " };
    const terminal = { LC_ALL: "C", TERM: "xterm-256color" };
    const command = readFileSync(inRepository("examples/docs/agents/start.sh"), "utf8").trim();
    const prompt = "\\$ $";
    const { output } = await playUser(
      {
        argv: ["/usr/bin/env", ...machine.argv(shell)],
        env: { ...machine.env(), ...own, ...terminal },
      },
      [
        { wait: prompt, type: `${command} -- -p "What do you see and reach? Write a test for events.js."\n` },
        { wait: "discard \\(x\\)\\? $", type: "a\n" },
        { wait: prompt, type: "ls src\n" },
        { wait: prompt, type: "exit\n" },
      ],
    );
    return {
      picture: pictureOf(output),
      keysInBox: [...output.matchAll(PLACEHOLDER)].map(([key]) => key),
      keysAtModel: new Set(machine.requests().map(({ key }) => key)),
      key: KEY,
      project: readFileSync(join(top, "parcels/src/events.test.js"), "utf8"),
      wanted: TEST,
    };
  } finally {
    rmSync(top, { recursive: true, force: true });
  }
}

const PLACEHOLDER = /sk-ant-api03-\S+/g;

function pictureOf(output: string): string {
  // "…" stands for what differs from run to run. How the user left the shell is of no interest.
  const text = output.replaceAll(PLACEHOLDER, "sk-ant-api03-…").replace(/\$ exit\r\nexit\r\n$/, "");
  const title = "A terminal: agentfense agent claude works on a project, and its user applies the change it made";
  return terminalPicture(text, { columns: COLUMNS, title });
}

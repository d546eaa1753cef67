import { execFile } from "node:child_process";
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { reasonAgainstTerminals } from "../../packages/agentfense/test/at-a-terminal.ts";
import { REPOSITORY } from "../../scripts/docs/source.ts";
import { type As, identityOf, reasonAgainst } from "../support/identity.ts";
import { Machine } from "./machine.ts";
import { PICTURE, recordAgent } from "./recording.ts";

interface RealAgent {
  readonly name: string;
  readonly host: string;
  readonly variable: string;
  readonly key: string;
  /** How the key is sent, where not as it is. */
  readonly sent?: string;
  /** What its user gives it to do, and how he goes on with that. */
  readonly first: readonly string[];
  readonly again: readonly string[];
}

const ANTHROPIC_KEY = "sk-ant-api03-the-real-key-of-the-user-0123456789";
const OPENAI_KEY = "sk-the-real-key-of-the-user-0123456789";
const AGENTS: readonly [RealAgent, ...RealAgent[]] = [
  {
    name: "claude",
    host: "api.anthropic.com",
    variable: "ANTHROPIC_API_KEY",
    key: ANTHROPIC_KEY,
    first: ["-p", "write it"],
    again: ["-c", "-p", "and now?"],
  },
  {
    name: "gemini",
    host: "generativelanguage.googleapis.com",
    variable: "GEMINI_API_KEY",
    key: "AIzaTheRealKeyOfTheUser0123456789abcdef",
    first: ["-p", "write it"],
    again: ["--resume", "latest", "-p", "and now?"],
  },
  {
    name: "codex",
    host: "api.openai.com",
    variable: "OPENAI_API_KEY",
    key: OPENAI_KEY,
    sent: `Bearer ${OPENAI_KEY}`,
    first: ["exec", "--skip-git-repo-check", "write it"],
    again: ["exec", "--skip-git-repo-check", "resume", "--last", "and now?"],
  },
  {
    name: "opencode",
    host: "api.anthropic.com",
    variable: "ANTHROPIC_API_KEY",
    key: ANTHROPIC_KEY,
    first: ["run", "-m", "anthropic/claude-sonnet-4-5", "write it"],
    again: ["run", "-m", "anthropic/claude-sonnet-4-5", "-c", "and now?"],
  },
];

describe.each(["root", "user"] satisfies As[])("a real agent, with a model that wants a file written (%s)", (as) => {
  const reason = reasonAgainst("root") ?? reasonAgainst(as);
  // Who starts it makes no difference to what an agent is: one is enough for the second.
  test.skipIf(reason !== undefined).for(as === "root" ? AGENTS : AGENTS.slice(0, 1))(
    `$name writes it, its key is put in outside, and it goes on where it ended${reason ? `: skipped, ${reason}` : ""}`,
    async ({ name, host, variable, key, sent = key, first, again }, { skip }) => {
      if (!Machine.has(name)) {
        console.log(`${name} is not tried: it is not installed for ${process.arch}`);
        return skip();
      }
      const { inProject, run, requests } = place(as);
      const agent = (...args: string[]) => run(["agentfense", "agent", name, ...args], { [variable]: key });
      expect(JSON.parse(await agent("--json", "--", ...first))).toMatchObject({
        exitCode: 0,
        stdout: expect.stringContaining("done"),
        changes: [{ kind: "added", path: "/src/b.ts" }],
      });
      const asked = requests();
      expect(new Set(asked.map((request) => request.host))).toEqual(new Set([host]));
      expect(new Set(asked.map((request) => request.key))).toEqual(new Set([sent]));
      expect(inProject("src/b.ts")).toBeUndefined();

      // Its home is the same one: the conversation is in it.
      await agent("--continue", "--apply", "--", ...again);
      const later = requests().slice(asked.length);
      expect(later.filter(({ results }) => results === 0)).toEqual([]);
      expect(new Set(later.map((request) => request.key))).toEqual(new Set([sent]));
      expect(inProject("src/b.ts")).toBe("export const b = 2;\n");
    },
  );
});

describe("what the documents show of agents", () => {
  const reason = reasonAgainst("root") ?? reasonAgainstTerminals();
  const why = reason === undefined ? "" : `: skipped, ${reason}`;

  test.skipIf(reason !== undefined)(
    `the recording, which begins with start.sh, is what a user sees${why}`,
    async () => {
      const { picture, keysInBox, keysAtModel, key, project, wanted } = await recordAgent();
      expect(picture, "node scripts/record-agent.ts makes it anew").toBe(readFileSync(PICTURE, "utf8"));
      expect(keysInBox).toHaveLength(1);
      expect(key.startsWith(keysInBox[0]!)).toBe(false);
      expect(keysAtModel).toEqual(new Set([key]));
      expect(project).toBe(wanted);
    },
  );

  test.skipIf(reason !== undefined)(`alone.sh works without a terminal${why}`, async () => {
    const { inProject, run } = place("root");
    const [{ variable, key }] = AGENTS;
    await run(["bash", "-eu", join(REPOSITORY, "examples/docs/agents/alone.sh")], { [variable]: key });
    expect(inProject("src/b.ts")).toBe("export const b = 2;\n");
    expect(JSON.parse(inProject("result.json")!)).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining("done"),
    });
  });
});

/** A project, on a machine of its own with an internet of its own. */
function place(as: As) {
  const top = mkdtempSync(join(tmpdir(), "agentfense-real-agent-"));
  onTestFinished(() => rmSync(top, { recursive: true, force: true }));
  const [project, state] = ["project", "state"].map((name) => join(top, name)) as [string, string];
  for (const directory of [join(project, "src"), state]) mkdirSync(directory, { recursive: true });
  writeFileSync(join(project, "src/a.ts"), "export const a = 1;\n");
  const { uid, gid } = identityOf(as);
  for (const path of [top, project, join(project, "src"), join(project, "src/a.ts"), state]) chownSync(path, uid, gid);
  const become = as === "root" ? [] : ["setpriv", `--reuid=${uid}`, `--regid=${gid}`, "--clear-groups", "--"];
  const machine = new Machine(join(top, "machine"), {
    edit: { path: "/workspace/src/b.ts", content: "export const b = 2;\n" },
    says: "done",
  });
  return {
    inProject: (path: string): string | undefined => {
      try {
        return readFileSync(join(project, path), "utf8");
      } catch {
        return undefined;
      }
    },
    requests: () => machine.requests(),
    run: async (command: readonly string[], keys: Readonly<Record<string, string>>): Promise<string> => {
      const env = { ...machine.env(), ...keys, HOME: top, XDG_STATE_HOME: state };
      const [program, ...args] = machine.argv([...become, ...command]);
      const running = promisify(execFile)(program, args, { cwd: project, env });
      running.child.stdin!.end(); // some read all of it first
      return (await running).stdout;
    },
  };
}

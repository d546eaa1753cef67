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
}

const AGENTS: readonly [RealAgent, ...RealAgent[]] = [
  {
    name: "claude",
    host: "api.anthropic.com",
    variable: "ANTHROPIC_API_KEY",
    key: "sk-ant-api03-the-real-key-of-the-user-0123456789",
  },
  {
    name: "gemini",
    host: "generativelanguage.googleapis.com",
    variable: "GEMINI_API_KEY",
    key: "AIzaTheRealKeyOfTheUser0123456789abcdef",
  },
];

describe.each(["root", "user"] satisfies As[])("a real agent, with a model that wants a file written (%s)", (as) => {
  const reason = reasonAgainst("root") ?? reasonAgainst(as);
  test.skipIf(reason !== undefined).for(AGENTS)(
    `$name writes it, and its key is put in outside${reason ? `: skipped, ${reason}` : ""}`,
    async ({ name, host, variable, key }) => {
      const { inProject, run, requests } = place(as);
      const agent = (...args: string[]) => run(["agentfense", "agent", name, ...args], { [variable]: key });
      const first = await agent("--json", "--", "-p", "write it");
      expect(JSON.parse(first)).toMatchObject({
        exitCode: 0,
        stdout: expect.stringContaining("done"),
        changes: [{ kind: "added", path: "/src/b.ts" }],
      });
      const asked = requests();
      expect(new Set(asked.map((request) => request.host))).toEqual(new Set([host]));
      expect(new Set(asked.map((request) => request.key))).toEqual(new Set([key]));
      expect(inProject("src/b.ts")).toBeUndefined();

      await agent("--continue", "--apply", "--", "--version");
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
      const { stdout } = await promisify(execFile)(program, args, { cwd: project, env });
      return stdout;
    },
  };
}

import { execFile } from "node:child_process";
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { type As, identityOf, reasonAgainst } from "../support/identity.ts";
import type { ModelRequest } from "./model-server.ts";

const here = (name: string): string => join(import.meta.dirname, name);
const cli = here("../../packages/agentfense/src/cli.ts");
const run = promisify(execFile);

interface RealAgent {
  readonly name: string;
  readonly host: string;
  readonly variable: string;
  readonly key: string;
}

const AGENTS: readonly RealAgent[] = [
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
      const { inProject, agentfense, requests } = place(as);
      const agent = (...args: string[]) => agentfense(["agent", name, ...args], { [variable]: key });
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

/** A project, on a machine of its own with an internet of its own. */
function place(as: As) {
  const top = mkdtempSync(join(tmpdir(), "agentfense-real-agent-"));
  onTestFinished(() => rmSync(top, { recursive: true, force: true }));
  const [project, state, machine] = ["project", "state", "machine"].map((name) => join(top, name)) as [
    string,
    string,
    string,
  ];
  for (const directory of [join(project, "src"), state, machine]) mkdirSync(directory, { recursive: true });
  writeFileSync(join(project, "src/a.ts"), "export const a = 1;\n");
  const { uid, gid } = identityOf(as);
  for (const path of [top, project, join(project, "src"), join(project, "src/a.ts"), state]) chownSync(path, uid, gid);
  const become = as === "root" ? [] : ["setpriv", `--reuid=${uid}`, `--regid=${gid}`, "--clear-groups", "--"];
  return {
    inProject: (path: string): string | undefined => {
      try {
        return readFileSync(join(project, path), "utf8");
      } catch {
        return undefined;
      }
    },
    requests: (): ModelRequest[] =>
      readFileSync(join(machine, "requests"), "utf8")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as ModelRequest),
    agentfense: async (args: readonly string[], keys: Readonly<Record<string, string>>): Promise<string> => {
      const env = {
        ...keys,
        PATH: `${here("node_modules/.bin")}:${join(process.execPath, "..")}:/usr/sbin:/usr/bin:/sbin:/bin`,
        HOME: top,
        XDG_STATE_HOME: state,
        NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
        NODE_EXTRA_CA_CERTS: join(machine, "ca.pem"),
      };
      const command = [...become, process.execPath, cli, ...args];
      const unshared = ["--net", "--mount", "--", "sh", here("machine.sh"), machine, process.execPath];
      const { stdout } = await run("unshare", [...unshared, here("internet-process.ts"), "--", ...command], {
        cwd: project,
        env,
      });
      return stdout;
    },
  };
}

import { EmbeddedEngine, type Sandbox, SandboxError, SandboxNotFoundError } from "agentfense";
import type { ToolOptions, ToolRequest } from "agentfense/tools";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stayOffline } from "./offline.ts";
import { HOLD_LOCK, lockIsFree, lockIsHeld, openProject } from "./project.ts";

export interface Call {
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
}

export interface Conversation {
  readonly calls: readonly Call[];
  readonly tools?: ToolOptions;
  readonly signal?: AbortSignal;
}

/** An agent of some framework, with a model that makes calls as they are in a script. */
export interface Framework {
  readonly name: string;
  /** What becomes of an error that a tool throws. */
  readonly thrown: "ends the run" | "is told to the model";
  /** Who answers input that does not fit the schema. */
  readonly checksInput: "the tool" | "the framework";
  /** Lets the agent work; gives what its model was told after each call. */
  converse(sandbox: Sandbox, conversation: Conversation): Promise<readonly string[]>;
}

/** A session of work, and what the model is told at each step. */
const WORK: readonly (Call & { readonly told: string })[] = [
  { tool: "list_files", input: { recursive: true }, told: "README.md\nsrc/\nsrc/greet.sh" },
  { tool: "read_file", input: { path: "src/greet.sh" }, told: 'name="world"\necho "hello $name"\n' },
  {
    tool: "read_file",
    input: { path: "src/greet.sh", offset: 1, limit: 1 },
    told: 'name="world"\n[more lines: read on with offset 2]',
  },
  { tool: "read_file", input: { path: ".env" }, told: '".env": it does not exist' },
  { tool: "read_file", input: { path: "absent" }, told: '"absent": it does not exist' },
  { tool: "search", input: { pattern: "w[o]rld|s3cret" }, told: 'src/greet.sh:1:name="world"' },
  {
    tool: "edit_file",
    input: { path: "src/greet.sh", old_text: "moon", new_text: "sun" },
    told: "the old text is not in src/greet.sh: it must be there exactly as given",
  },
  {
    tool: "edit_file",
    input: { path: "src/greet.sh", old_text: "name", new_text: "who" },
    told: "the old text is in src/greet.sh 2 times: give more of what is around it, or replace all",
  },
  {
    tool: "edit_file",
    input: { path: "src/greet.sh", old_text: "world", new_text: "sandbox" },
    told: "edited src/greet.sh",
  },
  { tool: "shell", input: { command: "sh src/greet.sh" }, told: "hello sandbox" },
  {
    tool: "shell",
    input: { command: "cat .env", workdir: "." },
    told: "[stderr]\ncat: .env: No such file or directory\n[exit code 1]",
  },
  { tool: "shell", input: { command: "sleep 30", timeout_ms: 50 }, told: "[ended after 50 ms: its time was up]" },
  { tool: "write_file", input: { path: "src/deep/new.txt", content: "new\n" }, told: "wrote src/deep/new.txt" },
  { tool: "write_file", input: { path: "README.md", content: "" }, told: '"README.md": permission denied' },
  { tool: "changes", input: {}, told: "added src/deep\nmodified src/greet.sh\nadded src/deep/new.txt" },
];

/** What tools do in the agents of a framework: the same in all of them. */
export function describeAdapter(framework: Framework): void {
  describe(`sandbox tools in ${framework.name}`, () => {
    let engine: EmbeddedEngine;
    beforeAll(async () => {
      engine = await EmbeddedEngine.open();
    });
    afterAll(() => engine?.[Symbol.asyncDispose]());
    stayOffline();

    test("a model works under the rules, and is told what it can act on", async () => {
      const sandbox = await openProject(engine);
      const outputs = await framework.converse(sandbox, { calls: WORK });
      expect(outputs).toEqual(WORK.map(({ told }) => told));
    });

    test("aborting the agent ends the command that runs", async () => {
      const sandbox = await openProject(engine);
      const abort = new AbortController();
      const call = { tool: "shell", input: { command: HOLD_LOCK, timeout_ms: 300_000 } };
      const conversation = framework.converse(sandbox, { calls: [call], signal: abort.signal });
      const ended = conversation.then(
        () => "ended",
        () => "ended",
      );
      await lockIsHeld(sandbox);
      abort.abort();
      expect(await ended).toBe("ended");
      expect(await lockIsFree(sandbox)).toBe(true);
    });

    test("what is not approved is not done", async () => {
      const sandbox = await openProject(engine);
      const asked: ToolRequest[] = [];
      const approve = (request: ToolRequest) => {
        asked.push(request);
        return request.input.command === "echo yes";
      };
      const calls = [
        { tool: "read_file", input: { path: "README.md" } },
        { tool: "shell", input: { command: "echo yes" } },
        { tool: "write_file", input: { path: "src/new", content: "x" } },
        { tool: "changes", input: {} },
      ];
      const outputs = await framework.converse(sandbox, { calls, tools: { approve } });
      const refused = "this call was not approved, and nothing was done";
      expect(outputs).toEqual(["# Greeter\n", "yes", refused, "(nothing)"]);
      expect(asked).toEqual([
        { tool: "shell", input: { command: "echo yes" } },
        { tool: "write_file", input: { path: "src/new", content: "x" } },
      ]);
    });

    test("names have the prefix, and only the tools that were asked for are there", async () => {
      const sandbox = await openProject(engine);
      const calls = [{ tool: "repo_list_files", input: { path: "src" } }];
      const outputs = await framework.converse(sandbox, { calls, tools: { only: ["list_files"], prefix: "repo_" } });
      expect(outputs).toEqual(["src/greet.sh"]);
    });

    test("input that does not fit is answered with what is wrong, and nothing is done", async () => {
      const sandbox = await openProject(engine);
      const calls = [
        { tool: "write_file", input: { path: "src/new" } },
        { tool: "changes", input: {} },
      ];
      const [answer, changes] = await framework.converse(sandbox, { calls });
      expect(answer).toContain("content");
      if (framework.checksInput === "the tool") expect(answer).toMatch(/^the input does not fit: content: /);
      expect(changes).toBe("(nothing)");
    });

    test(`the loss of the sandbox is no output of a tool: it ${framework.thrown}`, async () => {
      const sandbox = await openProject(engine);
      await sandbox.destroy();
      const calls = [{ tool: "list_files", input: {} }];
      const conversation = framework.converse(sandbox, { calls });
      if (framework.thrown === "ends the run") {
        const error: unknown = await conversation.then(() => undefined, rootCause);
        expect(error).toBeInstanceOf(SandboxNotFoundError);
      } else {
        expect((await conversation).join()).toContain("sandbox not found");
      }
    });
  });
}

/** Frameworks wrap what a tool throws. */
function rootCause(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof SandboxError) return error;
  const inner = "error" in error ? error.error : error.cause;
  return inner === undefined ? error : rootCause(inner);
}

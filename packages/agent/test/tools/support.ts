import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { CodeRunner } from "../../src/tools/tool.ts";
import { AgentWorkspace } from "../../src/workspace/agent-workspace.ts";
import { WorldInterface, type WorldOptions } from "../../src/world/world.ts";

/** Where no code is run. */
const NOTHING_RUNS: CodeRunner = {
  execute: () => Promise.reject(new Error("no test here runs code")),
};

/** A world of files alone, in a directory that lasts as long as the test. */
export async function fileWorld(options: Partial<WorldOptions> = {}) {
  const directory = await mkdtemp(join(tmpdir(), "agentfense-tools-test-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const workspace = new AgentWorkspace("tools", { directory });
  const world = new WorldInterface({ manager: NOTHING_RUNS, workspace, ...options });
  return {
    directory,
    workspace,
    world,
    /** The text of an answer that must not be an error. */
    async done(tool: string, input: unknown): Promise<string> {
      const { text, isError } = await world.execute(tool, input);
      if (isError) throw new Error(`${tool} said: ${text}`);
      return text;
    },
    /** The text of an answer that must be an error. */
    async refused(tool: string, input: unknown): Promise<string> {
      const { text, isError } = await world.execute(tool, input);
      if (!isError) throw new Error(`${tool} did it: ${text}`);
      return text;
    },
  };
}

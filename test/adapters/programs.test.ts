import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { closeEngine } from "agentfense";
import { MockLanguageModelV4 } from "ai/test";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { improve as withAi } from "./programs/ai.ts";
import { improve as withDeepAgents } from "./programs/deepagents.ts";
import { improve as withLangchain } from "./programs/langchain.ts";
import { improve as withMastra } from "./programs/mastra.ts";
import { improve as withOpenaiAgents } from "./programs/openai-agents.ts";
import { improve as withNothing } from "./programs/plain.ts";
import { answerTo, USAGE } from "./support/ai-model.ts";
import type { Call } from "./support/contract.ts";
import { stayOffline } from "./support/offline.ts";
import { Script } from "./support/script.ts";
import { ScriptedChatModel } from "./support/scripted-chat-model.ts";
import { ScriptedModel } from "./support/scripted-openai-model.ts";

// The programs that docs/adapters.md shows, each with a model that does what its prompt asks for.

afterAll(() => closeEngine());
stayOffline();

const WORK: readonly Call[] = [
  { tool: "read_file", input: { path: "src/greet.sh" } },
  { tool: "edit_file", input: { path: "src/greet.sh", old_text: "world", new_text: "moon" } },
];
const DEEP_WORK: readonly Call[] = [
  { tool: "read_file", input: { file_path: "/src/greet.sh" } },
  { tool: "edit_file", input: { file_path: "/src/greet.sh", old_string: "world", new_string: "moon" } },
];

function languageModel(script: Script): MockLanguageModelV4 {
  return new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => {
      const { content, reason } = answerTo(prompt, script);
      return { content, finishReason: { unified: reason, raw: undefined }, usage: USAGE, warnings: [] };
    },
  });
}

const PROGRAMS = {
  "ai.ts": (directory) => withAi(directory, languageModel(new Script(WORK))),
  "openai-agents.ts": (directory) => withOpenaiAgents(directory, new ScriptedModel(new Script(WORK))),
  "langchain.ts": (directory) => withLangchain(directory, new ScriptedChatModel(new Script(WORK))),
  "deepagents.ts": (directory) => withDeepAgents(directory, new ScriptedChatModel(new Script(DEEP_WORK))),
  "mastra.ts": (directory) => withMastra(directory, languageModel(new Script(WORK))),
  "plain.ts": (directory) => {
    const script = new Script(WORK);
    return withNothing(directory, async () => {
      const call = script.next();
      return call === undefined ? "done" : [{ id: call.id, name: call.tool, input: call.input }];
    });
  },
} satisfies Record<string, (directory: string) => Promise<string | undefined>>;

test.each(Object.entries(PROGRAMS))("%s", async (_, program) => {
  const directory = mkdtempSync(join(tmpdir(), "agentfense-programs-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  mkdirSync(join(directory, "src"));
  writeFileSync(join(directory, "src/greet.sh"), "echo hello world\n");
  expect(await program(directory)).toBe("done");
  expect(readFileSync(join(directory, "src/greet.sh"), "utf8")).toBe("echo hello moon\n");
});

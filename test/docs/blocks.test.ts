import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { documents, readDocument, upToDate } from "../../scripts/docs/documents.ts";
import { type Block, blocksOf } from "../../scripts/docs/markdown.ts";
import { REPOSITORY } from "../../scripts/docs/source.ts";
import { FOLDERS, filesOf, outputOf } from "./programs.ts";

/** What a block may say of itself to be no code that anybody runs. */
const NOT_CODE = ["text", "console", "mermaid"];

/** Files that blocks come from, besides the programs that run.test.ts runs, and the test that proves them. */
const PROVEN_BY: Readonly<Record<string, string>> = {
  "examples/docs/agents/alone.sh": "test/agents/agents.test.ts",
  "examples/docs/agents/profile.yaml": "packages/agentfense/test/agents/agent.test.ts",
  "examples/docs/agents/start.sh": "test/agents/agents.test.ts",
  "examples/docs/commands.sh": "test/docs/blocks.test.ts",
  "examples/docs/install.sh": "test/packaging/packaging.test.ts",
  "examples/docs/mcp/claude-code.json": "packages/agentfense/test/mcp-configuration.test.ts",
  "examples/docs/mcp/claude-code.sh": "packages/agentfense/test/mcp-configuration.test.ts",
  "examples/docs/mcp/cursor.json": "packages/agentfense/test/mcp-configuration.test.ts",
  "examples/docs/mcp/http.json": "packages/agentfense/test/mcp-configuration.test.ts",
  "examples/docs/mcp/http.sh": "packages/agentfense/test/mcp-configuration.test.ts",
  "examples/docs/mcp/inspector.sh": "packages/agentfense/test/mcp-configuration.test.ts",
  "examples/operations/agentfense.yaml": "test/docs/operations.test.ts",
  "examples/operations/e2b.yaml": "test/docs/operations.test.ts",
  "examples/operations/postgresql.yaml": "test/docs/operations.test.ts",
  "examples/operations/agentfense.service": "test/docs/operations.test.ts",
  "examples/operations/Dockerfile": "test/docs/operations.test.ts",
  "examples/operations/container.sh": "test/docs/operations.test.ts",
  "python/examples/langchain_agent.py": "python/tests/integrations/test_langchain.py",
  "python/examples/openai_agents_agent.py": "python/tests/integrations/test_openai_agents.py",
  "python/examples/smolagents_agent.py": "python/tests/integrations/test_smolagents.py",
  "test/e2b/programs/after.ts": "test/e2b/clients.test.ts",
  "test/e2b/programs/before.ts": "test/e2b/clients.test.ts",
  "test/adapters/programs/ai.ts": "test/adapters/programs.test.ts",
  "test/adapters/programs/deepagents.ts": "test/adapters/programs.test.ts",
  "test/adapters/programs/langchain.ts": "test/adapters/programs.test.ts",
  "test/adapters/programs/mastra.ts": "test/adapters/programs.test.ts",
  "test/adapters/programs/openai-agents.ts": "test/adapters/programs.test.ts",
  "test/adapters/programs/plain.ts": "test/adapters/programs.test.ts",
};

/** Blocks of code that come from no file, by document and first line, and why. */
const EXEMPT: readonly { readonly document: string; readonly begins: string; readonly reason: string }[] = [
  { document: "docs/performance.md", begins: "npm run bench", reason: "takes an hour and is not part of npm test" },
];

const everyBlock = documents().flatMap((document) => {
  return blocksOf(readDocument(document)).map((block) => ({ document, block }));
});

describe("the blocks of the documents", () => {
  test.for(documents())("those of %s are what their files say", async (document) => {
    expect(readDocument(document)).toBe(await upToDate(document));
  });

  test("the command that keeps them finds nothing to do", () => {
    const command = fileURLToPath(new URL("../../scripts/docs/main.ts", import.meta.url));
    expect(execFileSync(process.execPath, [command, "--check"], { encoding: "utf8" })).toBe("");
  });

  test("every block comes from a file, says that it is no code, or is exempt for a stated reason", () => {
    const loose = everyBlock.filter(({ block }) => block.origin === undefined && !NOT_CODE.includes(block.info));
    expect(loose.map(({ document, block }) => `${document}: ${firstLine(block)}`).toSorted()).toEqual(
      EXEMPT.map(({ document, begins }) => `${document}: ${begins}`).toSorted(),
    );
  });

  test("every file that a block comes from is run or proven by a test", () => {
    const run = FOLDERS.flatMap((folder) => Object.values(filesOf(folder)).flat());
    const used = new Set(everyBlock.flatMap(({ block }) => block.origin?.file ?? []));
    expect([...used].filter((file) => !run.includes(file)).toSorted()).toEqual(Object.keys(PROVEN_BY).toSorted());
    for (const [file, proof] of Object.entries(PROVEN_BY)) {
      // A test in Python imports the module.
      expect(readFileSync(join(REPOSITORY, proof), "utf8")).toContain(basename(file, ".py"));
    }
  });

  test("every output next to a program is one of a program, and all other files are read by one", () => {
    for (const folder of FOLDERS) {
      const { programs, outputs, data } = filesOf(folder);
      expect(new Set(programs.map(outputOf)).size, "two programs have one output").toBe(programs.length);
      expect(outputs.filter((output) => !programs.some((program) => outputOf(program) === output))).toEqual([]);
      const texts = programs.map((program) => readFileSync(join(REPOSITORY, program), "utf8"));
      expect(data.filter((file) => !texts.some((text) => text.includes(basename(file))))).toEqual([]);
    }
  });

  test("the two commands of commands.sh are scripts of this repository", () => {
    const { scripts } = JSON.parse(readFileSync(join(REPOSITORY, "package.json"), "utf8")) as {
      scripts: Record<string, string>;
    };
    const text = readFileSync(join(REPOSITORY, "examples/docs/commands.sh"), "utf8");
    const commands = [...text.matchAll(/^npm (\w+)/gm)].map(([, name]) => name!);
    expect(commands).toEqual(["start", "test"]);
    // `npm start` shows what packages/agentfense/test/demo.test.ts runs; `npm test` is what runs this.
    expect(scripts.start).toContain("npm run --silent demo");
    expect(scripts.test).toContain("npm run --silent verify");
  });
});

describe("the links of the documents", () => {
  test.for(documents())("those of %s lead to something", (document) => {
    expect(linksOf(document).filter((link) => !leadsSomewhere(document, link))).toEqual([]);
  });
});

function firstLine({ text }: Block): string {
  return text.split("\n")[0]!.split("  ")[0]!.trim();
}

/** Relative ones, without those in blocks. */
function linksOf(document: string): readonly string[] {
  const prose = readDocument(document).replaceAll(/^```.*?^```$/gms, "");
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link!).filter((link) => !link.includes("://"));
}

function leadsSomewhere(document: string, link: string): boolean {
  const [path, anchor] = link.split("#") as [string, string?];
  const file = path === "" ? document : join(dirname(document), path);
  if (!existsSync(join(REPOSITORY, file))) return false;
  if (anchor === undefined || !file.endsWith(".md")) return true;
  const headings = readFileSync(join(REPOSITORY, file), "utf8").matchAll(/^#+ (.+)$/gm);
  return [...headings].some(([, heading]) => slug(heading!) === anchor);
}

/** As GitHub makes anchors of headings. */
function slug(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");
}

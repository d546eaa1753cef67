import { Sandbox } from "agentfense";
import { sandboxTools } from "agentfense/tools";

interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
}

interface ToolResult {
  readonly id: string;
  readonly content: string;
  readonly isError: boolean;
}

interface Declaration {
  readonly name: string;
  readonly description: string;
  readonly parameters: object;
}

/** Whatever you have: it is given the tools and the results of its last calls, and answers with calls or a text. */
export type AskModel = (tools: readonly Declaration[], results: readonly ToolResult[]) => Promise<ToolCall[] | string>;

export async function improve(directory: string, ask: AskModel): Promise<string> {
  await using sandbox = await Sandbox.fromLocal(directory, { preset: "development" });
  const tools = sandboxTools(sandbox, {
    only: ["shell", "read_file", "edit_file"],
    approve: ({ tool, input }) => tool !== "shell" || !String(input.command).includes("rm "),
  });
  const declarations = tools.map(({ name, description, inputSchema }) => ({
    name,
    description,
    parameters: inputSchema,
  }));
  let results: ToolResult[] = [];
  for (;;) {
    const answer = await ask(declarations, results);
    if (typeof answer === "string") {
      await sandbox.apply();
      return answer;
    }
    results = [];
    for (const { id, name, input } of answer) {
      const tool = tools.find((one) => one.name === name);
      const { text, isError } = tool ? await tool.execute(input) : { text: `there is no ${name}`, isError: true };
      results.push({ id, content: text, isError });
    }
  }
}

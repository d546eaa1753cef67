import { InvalidConfigurationError } from "../errors.ts";
import type { CallOptions } from "../model/options.ts";
import { Turns } from "../turns.ts";
import { changes, FILE_TOOLS, type SandboxToolContext, shell, type ToolSandbox } from "./tools/family.ts";
import { sandboxFiles, textForModel } from "./tools/files.ts";
import { type Tool, ToolFailure } from "./tools/tool.ts";

export type { ToolSandbox } from "./tools/family.ts";

export interface ToolPropertySchema {
  type: "string" | "integer" | "boolean";
  description?: string;
  minLength?: number;
  minimum?: number;
  maximum?: number;
}

/** A JSON Schema, as plain as they come. */
export interface ToolInputSchema {
  type: "object";
  properties: Record<string, ToolPropertySchema>;
  required: string[];
  additionalProperties: false;
}

const TOOLS: ReadonlyMap<string, Tool<SandboxToolContext>> = new Map(
  [shell, ...FILE_TOOLS, changes].map((tool) => [tool.name, tool]),
);

export type ToolName = "shell" | "read_file" | "write_file" | "edit_file" | "list_files" | "search" | "changes";

/** A call that is about to run a command or to write a file. */
export interface ToolRequest {
  readonly tool: ToolName;
  /** As it was accepted: what the model left out is absent. */
  readonly input: Readonly<Record<string, unknown>>;
}

export interface ToolOptions {
  /** Which tools; default all. */
  readonly only?: readonly ToolName[] | undefined;
  /** Put before each name: "repo_" makes repo_shell. */
  readonly prefix?: string | undefined;
  /** Characters kept of each output; what is beyond is left out, and the text says so. Default 30,000. */
  readonly maxOutput?: number | undefined;
  /** Asked before `shell`, `write_file` and `edit_file`; what it refuses is not done, and the model is told. */
  readonly approve?: ((request: ToolRequest) => boolean | Promise<boolean>) | undefined;
}

/** What a tool tells the model. */
export interface ToolOutput {
  readonly text: string;
  /** It could not be done, and the text says why. A command that ended with another exit code than 0 was done. */
  readonly isError: boolean;
}

/** A tool in a form that every model interface can be given. */
export interface SandboxTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: ToolInputSchema;
  /** It only looks. */
  readonly readOnly: boolean;
  /** Takes what the model sent. Throws when the sandbox is out of reach or gone, and the reason of an aborted signal. */
  execute(input: unknown, options?: CallOptions): Promise<ToolOutput>;
}

const MAX_OUTPUT = 30_000;

/** Tools with which a model works in a sandbox, and nowhere else. */
export function sandboxTools(sandbox: ToolSandbox, options: ToolOptions = {}): SandboxTool[] {
  const { only = [...TOOLS.keys()] as ToolName[], prefix = "", maxOutput = MAX_OUTPUT } = options;
  const turns = new Turns();
  const files = sandboxFiles(sandbox.files);
  return only.map((name) => {
    const tool = toolOf(name);
    const { description, effects, inputSchema } = tool;

    async function call(input: unknown, signal: AbortSignal | undefined): Promise<string> {
      const accepted = tool.accept(input);
      if (!effects.readOnly) await expectApproval({ tool: name, input: accepted.input }, options);
      signal?.throwIfAborted();
      return (await accepted.run({ sandbox, files, maxOutput, turns, signal })).text;
    }

    return {
      name: prefix + name,
      description,
      inputSchema: plainSchema(inputSchema),
      readOnly: effects.readOnly,
      execute: async (input, { signal } = {}) => {
        try {
          return { text: await call(input, signal), isError: false };
        } catch (error) {
          signal?.throwIfAborted();
          return { text: textForModel(error), isError: true };
        }
      },
    };
  });
}

function toolOf(name: ToolName): Tool<SandboxToolContext> {
  const tool = TOOLS.get(name);
  if (tool !== undefined) return tool;
  const hint = `there are ${[...TOOLS.keys()].join(", ")}`;
  throw new InvalidConfigurationError(`there is no tool ${JSON.stringify(name)}`, { code: "INVALID_ARGUMENT", hint });
}

/** A new one each time: frameworks change what they are given. */
function plainSchema(schema: Tool<never>["inputSchema"]): ToolInputSchema {
  const { properties = {}, required = [] } = structuredClone(schema) as Partial<ToolInputSchema>;
  return { type: "object", properties, required, additionalProperties: false };
}

async function expectApproval(request: ToolRequest, { approve }: ToolOptions): Promise<void> {
  if (approve === undefined || (await approve(request)) === true) return;
  throw new ToolFailure("this call was not approved, and nothing was done");
}

import { InvalidConfigurationError } from "../errors.ts";
import type { CallOptions } from "../model/options.ts";
import { changes } from "./tools/changes.ts";
import type { AcceptedCall, ToolDeclaration, ToolInputSchema, ToolSandbox } from "./tools/declaration.ts";
import { editFile } from "./tools/edit-file.ts";
import { ToolFailure, textForModel } from "./tools/failure.ts";
import { listFiles } from "./tools/list-files.ts";
import { readFile } from "./tools/read-file.ts";
import { search } from "./tools/search.ts";
import { shell } from "./tools/shell.ts";
import { Turns } from "./tools/turns.ts";
import { writeFile } from "./tools/write-file.ts";

export type { ToolInputSchema, ToolPropertySchema, ToolSandbox } from "./tools/declaration.ts";

const DECLARATIONS = {
  shell,
  read_file: readFile,
  write_file: writeFile,
  edit_file: editFile,
  list_files: listFiles,
  search,
  changes,
} satisfies Record<string, ToolDeclaration>;

export type ToolName = keyof typeof DECLARATIONS;

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
  const { only = Object.keys(DECLARATIONS) as ToolName[], prefix = "", maxOutput = MAX_OUTPUT } = options;
  const turns = new Turns();
  return only.map((tool) => {
    const declaration = declarationOf(tool);
    const { description, inputSchema, readOnly } = declaration;

    async function call(input: unknown, signal: AbortSignal | undefined): Promise<string> {
      const accepted = declaration.accept(input);
      if (!readOnly) await expectApproval({ tool, input: accepted.input }, options);
      signal?.throwIfAborted();
      return await accepted.run({ sandbox, maxOutput, turns, signal });
    }

    return {
      name: prefix + tool,
      description,
      inputSchema,
      readOnly,
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

function declarationOf(tool: ToolName): ToolDeclaration {
  if (Object.hasOwn(DECLARATIONS, tool)) return DECLARATIONS[tool];
  const hint = `there are ${Object.keys(DECLARATIONS).join(", ")}`;
  throw new InvalidConfigurationError(`there is no tool ${JSON.stringify(tool)}`, { code: "INVALID_ARGUMENT", hint });
}

async function expectApproval(
  request: { readonly tool: ToolName; readonly input: AcceptedCall["input"] },
  { approve }: ToolOptions,
): Promise<void> {
  if (approve === undefined || (await approve(request)) === true) return;
  throw new ToolFailure("this call was not approved, and nothing was done");
}

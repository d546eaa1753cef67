import { z } from "zod";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { ToolFailure } from "./failure.ts";
import type { Turns } from "./turns.ts";

/** What the tools need of a sandbox. */
export type ToolSandbox = Pick<Sandbox, "run" | "files" | "changes">;

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

export interface ToolContext {
  readonly sandbox: ToolSandbox;
  /** Characters kept of what is told. */
  readonly maxOutput: number;
  readonly turns: Turns;
  readonly signal: AbortSignal | undefined;
}

/** A call whose input is as the schema asks. */
export interface AcceptedCall {
  readonly input: Readonly<Record<string, unknown>>;
  run(context: ToolContext): Promise<string>;
}

export interface ToolDeclaration {
  readonly description: string;
  readonly inputSchema: ToolInputSchema;
  /** It only looks. */
  readonly readOnly: boolean;
  /** Throws a ToolFailure for input that does not fit. */
  accept(input: unknown): AcceptedCall;
}

export function declareTool<Schema extends z.ZodObject>(tool: {
  readonly description: string;
  readonly input: Schema;
  readonly readOnly: boolean;
  readonly run: (input: z.output<Schema>, context: ToolContext) => Promise<string>;
}): ToolDeclaration {
  const { description, readOnly, run } = tool;
  return {
    description,
    readOnly,
    inputSchema: jsonSchemaOf(tool.input),
    accept: (given) => {
      const input = parse(tool.input, given);
      return { input, run: (context) => run(input, context) };
    },
  };
}

function parse<Schema extends z.ZodObject>(schema: Schema, given: unknown): z.output<Schema> {
  const { data, error } = schema.safeParse(withoutNulls(given ?? {}));
  if (error === undefined) return data;
  const complaints = error.issues.map(({ path, message }) => [...path, message].join(": "));
  throw new ToolFailure(`the input does not fit: ${complaints.join("; ")}`);
}

/** null is how a model leaves out what its interface makes it write. */
function withoutNulls(given: unknown): unknown {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return given;
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
}

function jsonSchemaOf(schema: z.ZodObject): ToolInputSchema {
  const { properties, required = [] } = z.toJSONSchema(schema) as Partial<ToolInputSchema>;
  return { type: "object", properties: properties ?? {}, required, additionalProperties: false };
}

import type { Turns } from "@agentfense/sdk/tool-kit";
import { z } from "zod";
import type { BrowserContext } from "../browser/result.ts";
import { AgentError } from "../errors.ts";
import type { RiskLevel } from "../types.ts";
import type { WorldParts } from "./parts.ts";

/**
 * How risky a call is.
 *
 * | risk           | who assesses it, and asks where the table says so    |
 * | -------------- | ---------------------------------------------------- |
 * | a level        | it is known                                          |
 * | of the input   | the declaration                                      |
 * | "assessed"     | what the tool hands it to: the manager, the router   |
 */
type DeclaredRisk<Input> = RiskLevel | "assessed" | ((input: Input) => RiskLevel);

/** What a call can do, for hosts that ask their user by it. */
export interface ToolEffects {
  /** It only looks. */
  readonly readOnly: boolean;
  /** It can change or remove what was there. */
  readonly destructive: boolean;
  /** It can reach what is outside of the workspace: the internet. */
  readonly openWorld: boolean;
}

export interface ToolImage {
  readonly data: Uint8Array;
  readonly mimeType: string;
}

/** What a tool tells. */
export interface ToolResult {
  readonly text: string;
  /** It could not be done, and the text says why. Code that ended with another exit code than 0 was run. */
  readonly isError: boolean;
  /** The same for programs. */
  readonly data?: unknown;
  readonly images?: readonly ToolImage[] | undefined;
}

export interface ToolContext extends WorldParts {
  /** Characters kept of what is told. */
  readonly maxOutput: number;
  readonly browsing: BrowserContext;
  readonly turns: Turns;
  readonly signal: AbortSignal | undefined;
}

/** A JSON Schema of type object. */
export interface ToolSchema {
  readonly [keyword: string]: unknown;
  readonly type: "object";
}

/** A call whose input is as the schema asks. */
export interface AcceptedCall {
  readonly input: Readonly<Record<string, unknown>>;
  readonly risk: RiskLevel | "assessed";
  run(context: ToolContext): Promise<ToolResult>;
}

/** A tool, whatever its input is. */
export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: ToolSchema;
  readonly effects: ToolEffects;
  /** It is there only where there is such a part. */
  readonly needs?: "browser" | undefined;
  /** Throws a ToolFailure for input that does not fit. */
  accept(input: unknown): AcceptedCall;
}

/** Something a model can do better next time. */
export class ToolFailure extends AgentError {
  override readonly name = "ToolFailure";
}

export function declareTool<Schema extends z.ZodObject>(declaration: {
  readonly name: string;
  readonly description: string;
  readonly input: Schema;
  readonly risk: DeclaredRisk<z.output<Schema>>;
  readonly effects: ToolEffects;
  readonly needs?: "browser" | undefined;
  readonly handler: (
    input: z.output<Schema>,
    context: ToolContext,
  ) => Promise<Omit<ToolResult, "isError"> & { readonly isError?: boolean }>;
}): Tool {
  const { input: schema, risk, handler, ...told } = declaration;
  return {
    ...told,
    inputSchema: jsonSchemaOf(schema),
    accept: (given) => {
      const input = parse(schema, given);
      return {
        input,
        risk: typeof risk === "function" ? risk(input) : risk,
        run: async (context) => ({ isError: false, ...(await handler(input, context)) }),
      };
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

function jsonSchemaOf(schema: z.ZodObject): ToolSchema {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io: "input" });
  return { ...rest, type: "object" };
}

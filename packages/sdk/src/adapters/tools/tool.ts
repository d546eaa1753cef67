import { z } from "zod";

/** How much harm a call can do. */
export type RiskLevel = "SAFE" | "LOW" | "MEDIUM" | "HIGH" | "CRITICAL";

/**
 * How risky a call is.
 *
 * | risk           | who assesses it, and asks where that is wanted       |
 * | -------------- | ---------------------------------------------------- |
 * | a level        | it is known                                          |
 * | of the input   | the declaration                                      |
 * | "assessed"     | what the tool hands it to                            |
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

/** A tool without what it does. */
export interface ToolDeclaration<Schema extends z.ZodObject> {
  readonly name: string;
  readonly description: string;
  readonly input: Schema;
  readonly risk: DeclaredRisk<z.output<Schema>>;
  readonly effects: ToolEffects;
}

export type ToolHandler<Schema extends z.ZodObject, Context> = (
  input: z.output<Schema>,
  context: Context,
) => Promise<Omit<ToolResult, "isError"> & { readonly isError?: boolean }>;

/** A JSON Schema of type object. */
export interface ToolSchema {
  readonly [keyword: string]: unknown;
  readonly type: "object";
}

/** A call whose input is as the schema asks. */
export interface AcceptedCall<Context> {
  readonly input: Readonly<Record<string, unknown>>;
  readonly risk: RiskLevel | "assessed";
  run(context: Context): Promise<ToolResult>;
}

/** A tool, whatever its input is. */
export interface Tool<Context> {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: ToolSchema;
  readonly effects: ToolEffects;
  /** Throws a ToolFailure for input that does not fit. */
  accept(input: unknown): AcceptedCall<Context>;
}

/** Something a model can do better next time: it is told, instead of ending its loop. */
export class ToolFailure extends Error {
  override readonly name = "ToolFailure";
  /** What may help. */
  readonly hint: string | undefined;

  constructor(message: string, options: ErrorOptions & { readonly hint?: string | undefined } = {}) {
    super(message, options);
    this.hint = options.hint;
  }
}

export function declareTool<Schema extends z.ZodObject, Context>(
  declaration: ToolDeclaration<Schema> & { readonly handler: ToolHandler<Schema, Context> },
): Tool<Context> {
  const { name, description, effects, input: schema, risk, handler } = declaration;
  return {
    ...{ name, description, effects },
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

/** The same tool for who has something else to give it. */
export function inContext<Inner, Outer>(tool: Tool<Inner>, contextOf: (context: Outer) => Inner): Tool<Outer> {
  return {
    ...tool,
    accept: (given) => {
      const call = tool.accept(given);
      return { ...call, run: (context) => call.run(contextOf(context)) };
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

import { randomUUID } from "node:crypto";
import { SandboxError } from "@agentfense/sdk";
import { type AcceptedCall, clip, ToolFailure, type ToolResult, Turns } from "@agentfense/sdk/tool-kit";
import type { BrowserContext } from "../browser/result.ts";
import type { ConfirmationDecision, ConfirmationRequest, ConfirmationService } from "../confirmation/confirmation.ts";
import { AgentError } from "../errors.ts";
import { askFor } from "../manager/approval.ts";
import { tellListener } from "../pool/events.ts";
import { RISK_TABLE } from "../risk/table.ts";
import { TOOLS } from "../tools/all.ts";
import type { Tool, ToolContext, WorldParts } from "../tools/tool.ts";
import type { RiskLevel, SecurityMode } from "../types.ts";

const MAX_OUTPUT = 30_000;
const MOST_SHOWN_CHARACTERS = 500;
const CONFIRMATION_TIMEOUT_MS = 120_000;
const TOLD_INPUT_CHARACTERS = 500;
const MOST_EVENTS = 1000;

export interface WorldOptions extends WorldParts {
  /** Default: a random one. */
  readonly sessionId?: string | undefined;
  /** Default STRICT. */
  readonly securityMode?: SecurityMode | undefined;
  /** Asked about tools of your own whose risk asks for that; absent: they are denied. */
  readonly confirmation?: ConfirmationService | undefined;
  /** Default 2 min. */
  readonly confirmationTimeoutMs?: number | undefined;
  /** Default: all for which there is what they need. */
  readonly tools?: readonly Tool[] | undefined;
  /** Characters kept of each output; what is beyond is left out, and the text says so. Default 30,000. */
  readonly maxOutput?: number | undefined;
  readonly onEvent?: WorldListener | undefined;
}

export interface WorldContext extends BrowserContext {
  readonly signal?: AbortSignal | undefined;
}

/** A tool as it is shown to a model. */
export type ToolDescription = Pick<Tool, "name" | "description" | "inputSchema" | "effects">;

/** Everything that an agent can do: code, files and a browser, each by a tool. */
export class WorldInterface {
  readonly sessionId: string;
  readonly #options: WorldOptions;
  readonly #tools: ReadonlyMap<string, Tool>;
  readonly #turns = new Turns();
  readonly #listeners = new Set<WorldListener>();
  readonly #history: WorldEvent[] = [];

  constructor(options: WorldOptions) {
    this.#options = options;
    this.sessionId = options.sessionId ?? randomUUID();
    const { tools = TOOLS, browser, onEvent } = options;
    const usable = tools.filter(({ needs }) => needs !== "browser" || browser !== undefined);
    this.#tools = new Map(usable.map((tool) => [tool.name, tool]));
    if (onEvent !== undefined) this.#listeners.add(onEvent);
  }

  tools(): ToolDescription[] {
    return [...this.#tools.values()].map(({ name, description, inputSchema, effects }) => {
      return { name, description, inputSchema, effects };
    });
  }

  /** The last thousand events, oldest first. */
  get history(): readonly WorldEvent[] {
    return this.#history;
  }

  /** Returns the function that ends the listening. */
  subscribe(listener: WorldListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Whatever goes wrong is an answer; thrown is the reason of an aborted signal, and nothing else. */
  async execute(name: string, input: unknown, context: WorldContext = {}): Promise<ToolResult> {
    const { signal } = context;
    signal?.throwIfAborted();
    const call = new Call(this.sessionId, name, (event) => this.#tell(event));
    call.tell({ type: "called", input: clip(JSON.stringify(input) ?? "", TOLD_INPUT_CHARACTERS) });
    try {
      const result = await this.#carryOut(name, input, context, call);
      call.tell({ type: "finished", isError: result.isError, durationMs: call.durationMs });
      return result;
    } catch (error) {
      const text = signal?.aborted ? undefined : tellable(error);
      call.tell(
        text === undefined
          ? { type: "failed", error, durationMs: call.durationMs }
          : { type: "finished", isError: true, durationMs: call.durationMs },
      );
      signal?.throwIfAborted();
      return { text: text ?? "it could not be done: something failed inside", isError: true };
    }
  }

  async #carryOut(name: string, input: unknown, context: WorldContext, call: Call): Promise<ToolResult> {
    const tool = this.#tools.get(name);
    if (tool === undefined) {
      throw new ToolFailure(`there is no tool ${JSON.stringify(clip(name, 100))}; there are ${this.#names()}`);
    }
    const accepted = tool.accept(input);
    if (accepted.risk !== "assessed") await this.#expectApproval(tool, accepted, accepted.risk, context, call);
    const { signal, needsFileAccess, isResearch } = context;
    signal?.throwIfAborted();
    return await accepted.run({
      ...this.#options,
      browsing: { needsFileAccess, isResearch },
      maxOutput: this.#options.maxOutput ?? MAX_OUTPUT,
      turns: this.#turns,
      signal,
    });
  }

  async #expectApproval(
    tool: Tool,
    { input }: AcceptedCall<ToolContext>,
    level: RiskLevel,
    { signal }: WorldContext,
    call: Call,
  ): Promise<void> {
    const { securityMode = "STRICT", confirmation, confirmationTimeoutMs = CONFIRMATION_TIMEOUT_MS } = this.#options;
    if (!RISK_TABLE[securityMode][level].confirm) return;
    if (confirmation === undefined) {
      throw new ToolFailure(`${tool.name} needs somebody's agreement, and there is nobody to ask`, {
        hint: "give the world a confirmation service",
      });
    }
    const request: ConfirmationRequest = {
      sessionId: this.sessionId,
      action: tool.name,
      code: JSON.stringify(input),
      risk: { level, detected: [] },
      reason: `the tool ${tool.name} is rated ${level}`,
      expiresAt: new Date(Date.now() + confirmationTimeoutMs),
    };
    call.tell({ type: "confirmation_requested", level });
    const {
      decision,
      problem,
      comment = problem,
    } = await askFor(confirmation, request, signal ?? new AbortController().signal);
    call.tell({ type: "confirmation_answered", decision });
    if (decision === "approved") return;
    const because = comment === undefined ? "" : `: ${comment.slice(0, MOST_SHOWN_CHARACTERS)}`;
    throw new ToolFailure(`this call was not approved, and nothing was done${because}`);
  }

  #names(): string {
    return [...this.#tools.keys()].join(", ");
  }

  #tell(event: WorldEvent): void {
    this.#history.push(event);
    if (this.#history.length > MOST_EVENTS) this.#history.shift();
    for (const listener of this.#listeners) tellListener(listener, event);
  }
}

type Step<Event> = Event extends WorldEvent ? Omit<Event, "callId" | "sessionId" | "tool" | "at"> : never;

/** One call, as its events tell it. */
class Call {
  readonly #facts: Pick<WorldEvent, "callId" | "sessionId" | "tool">;
  readonly #listener: WorldListener;
  readonly #startedAtMs = performance.now();

  constructor(sessionId: string, tool: string, listener: WorldListener) {
    this.#facts = { callId: randomUUID(), sessionId, tool: clip(tool, 100) };
    this.#listener = listener;
  }

  get durationMs(): number {
    return performance.now() - this.#startedAtMs;
  }

  tell(step: Step<WorldEvent>): void {
    this.#listener({ ...this.#facts, at: new Date(), ...step } as WorldEvent);
  }
}

/** What to tell a model of a failure; undefined for what only an operator can make sense of. */
function tellable(error: unknown): string | undefined {
  const isTold = error instanceof AgentError || error instanceof SandboxError || error instanceof ToolFailure;
  if (!isTold) return undefined;
  return error.hint === undefined ? error.message : `${error.message} (${error.hint})`;
}

interface WorldEventFacts {
  /** The same for all events of one call. */
  readonly callId: string;
  readonly sessionId: string;
  readonly tool: string;
  readonly at: Date;
}

/** A step of a call. What the manager and the router do meanwhile, they tell themselves. */
export type WorldEvent = WorldEventFacts &
  (
    | {
        readonly type: "called";
        /** The input as JSON, shortened. */
        readonly input: string;
      }
    | { readonly type: "confirmation_requested"; readonly level: RiskLevel }
    | { readonly type: "confirmation_answered"; readonly decision: ConfirmationDecision }
    | { readonly type: "finished"; readonly isError: boolean; readonly durationMs: number }
    /** It was given up, or failed for a reason that is not told to the model. */
    | { readonly type: "failed"; readonly error: unknown; readonly durationMs: number }
  );

export type WorldListener = (event: WorldEvent) => void;

import { type AgentInputItem, type Model, type ModelRequest, type ModelResponse, Usage } from "@openai/agents";
import type { Script } from "./script.ts";

/** A model of the OpenAI Agents SDK that makes calls as they are in a script. */
export class ScriptedModel implements Model {
  readonly #script: Script;

  constructor(script: Script) {
    this.#script = script;
  }

  async getResponse({ input }: ModelRequest): Promise<ModelResponse> {
    if (typeof input !== "string") this.#hear(input);
    const call = this.#script.next();
    const usage = new Usage();
    if (call === undefined) {
      const content = [{ type: "output_text" as const, text: "done" }];
      return { usage, output: [{ type: "message", role: "assistant", status: "completed", content }] };
    }
    const { id: callId, tool: name } = call;
    const args = JSON.stringify(call.input);
    return { usage, output: [{ type: "function_call", callId, name, arguments: args, status: "completed" }] };
  }

  // biome-ignore lint/correctness/useYield: these tests do not stream
  async *getStreamedResponse(): AsyncGenerator<never, void, undefined> {
    throw new Error("not part of these tests");
  }

  #hear(input: readonly AgentInputItem[]): void {
    for (const item of input) {
      if (item.type !== "function_call_result") continue;
      const { output } = item;
      if (typeof output === "string") this.#script.hear(item.callId, output);
      else if (!Array.isArray(output) && output.type === "text") this.#script.hear(item.callId, output.text);
    }
  }
}

import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { ChatResult } from "@langchain/core/outputs";
import type { Script } from "./script.ts";

/** A chat model of LangChain that makes calls as they are in a script. */
export class ScriptedChatModel extends BaseChatModel {
  readonly #script: Script;

  constructor(script: Script) {
    super({});
    this.#script = script;
  }

  override _llmType(): string {
    return "scripted";
  }

  /** It knows its calls already. */
  override bindTools(): this {
    return this;
  }

  override async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    for (const message of messages) {
      if (ToolMessage.isInstance(message)) this.#script.hear(message.tool_call_id, message.text);
    }
    const call = this.#script.next();
    const toolCalls = call
      ? [{ type: "tool_call" as const, id: call.id, name: call.tool, args: { ...call.input } }]
      : [];
    const message = new AIMessage({ content: call ? "" : "done", tool_calls: toolCalls });
    return { generations: [{ text: message.text, message }] };
  }
}

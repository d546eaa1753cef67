import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib";

/** What was asked of the model: where, with which key, and what the conversation held. */
export interface ModelRequest {
  readonly host: string;
  readonly path: string;
  /** As it stood in the request, wherever the API wants it. */
  readonly key: string | undefined;
  /** Results of tools in the conversation, where it is one. */
  readonly results?: number;
}

/** What the model wants done, each once, whatever comes of it; then it answers. */
export interface Wanted {
  /** Run in a shell, first. What it printed is in the answer. */
  readonly command?: string;
  /** A file that is to be written. */
  readonly edit: { readonly path: string; readonly content: string };
  /** The answer at the end. */
  readonly says: string;
}

/**
 * A model that answers in the words of Anthropic's, Google's and OpenAI's APIs, as servers do, in pieces: first with calls of the
 * agent's own tools, one after the other, then, told what came of them, with words.
 */
export function fakeModel(wanted: Wanted, onRequest: (request: ModelRequest) => void): RequestListener {
  return (request, response) => {
    answer(request, response, wanted, onRequest).catch((error: unknown) => response.destroy(error as Error));
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  wanted: Wanted,
  onRequest: (request: ModelRequest) => void,
): Promise<void> {
  const { pathname: path } = new URL(request.url ?? "/", "http://model");
  const { host = "", "x-api-key": anthropic, "x-goog-api-key": google, authorization } = request.headers;
  const body = request.method === "POST" ? await bodyOf(request) : "";
  const results = (body.match(/"(?:tool_result|functionResponse|function_call_output)"/g) ?? []).length;
  const said = { host, path, key: String(anthropic ?? google ?? authorization) };
  onRequest(request.method === "POST" ? { ...said, results } : said);
  // Codex would rather have a WebSocket, and takes this for a server that has none.
  if (request.headers.upgrade !== undefined) return void response.writeHead(426).end();
  if (path === "/v1/responses") return openaiAnswer(response, JSON.parse(body), wanted);
  if (path === "/v1/messages") return anthropicAnswer(response, JSON.parse(body), wanted);
  if (path.endsWith(":streamGenerateContent")) return googleAnswer(response, JSON.parse(body), wanted);
  response.writeHead(404, { "content-type": "application/json" }).end('{"error":{"message":"not here"}}');
}

/** Clients pack large ones. */
async function bodyOf(request: IncomingMessage): Promise<string> {
  const bytes = await buffer(request);
  const unpack = { gzip: gunzipSync, br: brotliDecompressSync, zstd: zstdDecompressSync };
  const { "content-encoding": encoding } = request.headers;
  return (encoding === undefined ? bytes : unpack[encoding as keyof typeof unpack](bytes)).toString();
}

interface AnthropicBody {
  readonly tools?: readonly { readonly name: string }[];
  readonly messages: readonly { readonly content: string | readonly AnthropicBlock[] }[];
}

interface AnthropicBlock {
  readonly type: string;
  readonly content?: string | readonly { readonly text?: string }[];
}

function anthropicAnswer(response: ServerResponse, { tools = [], messages }: AnthropicBody, wanted: Wanted): void {
  const { command, edit } = wanted;
  const results = messages.flatMap(({ content }) =>
    typeof content === "string" ? [] : content.filter(({ type }) => type === "tool_result"),
  );
  const calls = [
    ...(command === undefined ? [] : [{ name: "Bash", input: { command, description: "Look around" } }]),
    // Claude Code's, and opencode's.
    tools.some(({ name }) => name === "Write")
      ? { name: "Write", input: { file_path: edit.path, content: edit.content } }
      : { name: "write", input: { filePath: edit.path, content: edit.content } },
  ];
  const call = tools.length === 0 ? undefined : calls[results.length];
  const outputs = results.map(({ content = "" }) =>
    typeof content === "string" ? content : content.map(({ text = "" }) => text).join(""),
  );
  const events: [string, object][] = [
    [
      "message_start",
      {
        message: {
          ...{ id: "msg_1", type: "message", role: "assistant", model: "claude", content: [], stop_reason: null },
          usage: { input_tokens: 1, output_tokens: 1 },
        },
      },
    ],
    ...(call === undefined
      ? anthropicBlock({ type: "text", text: "" }, { type: "text_delta", text: wordsOf(wanted, outputs) })
      : anthropicBlock(
          { type: "tool_use", id: `toolu_${results.length + 1}`, name: call.name, input: {} },
          { type: "input_json_delta", partial_json: JSON.stringify(call.input) },
        )),
    ["message_delta", { delta: { stop_reason: call ? "tool_use" : "end_turn" }, usage: { output_tokens: 9 } }],
    ["message_stop", {}],
  ];
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const [type, data] of events) response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
  response.end();
}

function anthropicBlock(block: object, delta: object): [string, object][] {
  return [
    ["content_block_start", { index: 0, content_block: block }],
    ["content_block_delta", { index: 0, delta }],
    ["content_block_stop", { index: 0 }],
  ];
}

interface GoogleBody {
  readonly tools?: readonly unknown[];
  readonly contents: readonly { readonly parts: readonly { readonly functionResponse?: GoogleResult }[] }[];
}

interface GoogleResult {
  readonly response: { readonly output?: string };
}

function googleAnswer(response: ServerResponse, { tools = [], contents }: GoogleBody, wanted: Wanted): void {
  const { command, edit } = wanted;
  const results = contents.flatMap(({ parts }) => parts.flatMap((part) => part.functionResponse ?? []));
  const calls = [
    ...(command === undefined ? [] : [{ name: "run_shell_command", args: { command } }]),
    { name: "write_file", args: { file_path: edit.path, content: edit.content } },
  ];
  const call = tools.length === 0 ? undefined : calls[results.length];
  const outputs = results.map((result) => result.response.output ?? "");
  const part = call === undefined ? { text: wordsOf(wanted, outputs) } : { functionCall: call };
  const chunk = {
    candidates: [{ content: { role: "model", parts: [part] }, finishReason: "STOP", index: 0 }],
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
  };
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end(`data: ${JSON.stringify(chunk)}\n\n`);
}

interface OpenaiBody {
  readonly input: readonly { readonly type: string; readonly output?: string }[];
}

function openaiAnswer(response: ServerResponse, { input }: OpenaiBody, wanted: Wanted): void {
  const { command, edit } = wanted;
  const results = input.filter(({ type }) => type === "function_call_output");
  const calls = [...(command === undefined ? [] : [command]), `cat > ${edit.path} <<'END'\n${edit.content}END`];
  const cmd = calls[results.length];
  const content = [
    {
      type: "output_text",
      text: wordsOf(
        wanted,
        results.map(({ output = "" }) => output),
      ),
      annotations: [],
    },
  ];
  const item =
    cmd === undefined
      ? { type: "message", id: "msg_1", role: "assistant", status: "completed", content }
      : { type: "function_call", ...callIds(results.length), name: "exec_command", arguments: JSON.stringify({ cmd }) };
  const whole = { id: "resp_1", object: "response", status: "completed", output: [item] };
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
  const events: [string, object][] = [
    ["response.created", { response: { ...whole, status: "in_progress", output: [] } }],
    ["response.output_item.done", { output_index: 0, item }],
    ["response.completed", { response: { ...whole, usage } }],
  ];
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const [type, data] of events) response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
  response.end();
}

function callIds(index: number) {
  return { id: `fc_${index}`, call_id: `call_${index}` };
}

function wordsOf({ command, says }: Wanted, outputs: readonly string[]): string {
  return command === undefined || outputs.length === 0 ? says : `${outputs[0]!.trimEnd()}\n\n${says}`;
}

import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib";

/** What was asked of the model: where, with which key, and what the conversation held. */
export interface ModelRequest {
  readonly host: string;
  readonly path: string;
  /** As it stood in the request, wherever the API wants it. */
  readonly key: string | undefined;
}

/** The edit that the model wants: it asks for it once, and is content with whatever comes of it. */
export interface WantedEdit {
  readonly path: string;
  readonly content: string;
}

/**
 * A model that answers in the words of Anthropic's and Google's APIs, as servers do, in pieces: first with a call of the
 * agent's own tool that writes a file, then, told what came of it, with the word "done".
 */
export function fakeModel(edit: WantedEdit, onRequest: (request: ModelRequest) => void): RequestListener {
  return (request, response) => {
    answer(request, response, edit, onRequest).catch((error: unknown) => response.destroy(error as Error));
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  edit: WantedEdit,
  onRequest: (request: ModelRequest) => void,
): Promise<void> {
  const { pathname: path } = new URL(request.url ?? "/", "http://model");
  const { host = "", "x-api-key": anthropic, "x-goog-api-key": google, authorization } = request.headers;
  onRequest({ host, path, key: String(anthropic ?? google ?? authorization) });
  const body = request.method === "POST" ? await bodyOf(request) : "";
  if (path === "/v1/messages") return anthropicAnswer(response, body, edit);
  if (path.endsWith(":streamGenerateContent")) return googleAnswer(response, body, edit);
  response.writeHead(404, { "content-type": "application/json" }).end('{"error":{"message":"not here"}}');
}

/** Clients pack large ones. */
async function bodyOf(request: IncomingMessage): Promise<string> {
  const bytes = await buffer(request);
  const unpack = { gzip: gunzipSync, br: brotliDecompressSync, zstd: zstdDecompressSync };
  const { "content-encoding": encoding } = request.headers;
  return (encoding === undefined ? bytes : unpack[encoding as keyof typeof unpack](bytes)).toString();
}

function anthropicAnswer(response: ServerResponse, body: string, { path, content }: WantedEdit): void {
  const asksForTool = body.includes('"tools":[{') && !body.includes('"tool_result"');
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
    ...(asksForTool
      ? anthropicBlock(
          { type: "tool_use", id: "toolu_1", name: "Write", input: {} },
          { type: "input_json_delta", partial_json: JSON.stringify({ file_path: path, content }) },
        )
      : anthropicBlock({ type: "text", text: "" }, { type: "text_delta", text: "done" })),
    ["message_delta", { delta: { stop_reason: asksForTool ? "tool_use" : "end_turn" }, usage: { output_tokens: 9 } }],
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

function googleAnswer(response: ServerResponse, body: string, { path, content }: WantedEdit): void {
  const asksForTool = body.includes('"functionDeclarations"') && !body.includes('"functionResponse"');
  const part = asksForTool
    ? { functionCall: { name: "write_file", args: { file_path: path, content } } }
    : { text: "done" };
  const chunk = {
    candidates: [{ content: { role: "model", parts: [part] }, finishReason: "STOP", index: 0 }],
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
  };
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end(`data: ${JSON.stringify(chunk)}\n\n`);
}

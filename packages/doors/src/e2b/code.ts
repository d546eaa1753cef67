import { setTimeout as sleep } from "node:timers/promises";
import {
  type CodeContext,
  type CodeEvent,
  type CodeLanguage,
  type CodeResult,
  type Sandbox,
  SandboxError,
} from "@agentfense/sdk";
import { bodyOf, jsonOf } from "../body.ts";
import type { Budget } from "../budget.ts";
import * as shape from "../shape.ts";
import { E2bFailure, notOffered } from "./failure.ts";
import { absolutePath } from "./paths.ts";
import { refusalOf } from "./processes.ts";

// The code interpreter, which E2B's clients look for at a port of the sandbox.

export const CODE_PORT = "49999";

const LARGEST_BODY = 8 * 1024 * 1024;
/** Clients take a longer silence for a connection that is lost. */
const KEEPALIVE_MS = 5_000;
/** Their names for languages. */
const LANGUAGES: Readonly<Record<string, CodeLanguage>> = {
  ...{ python: "python", javascript: "javascript", js: "javascript" },
  ...{ typescript: "typescript", ts: "typescript", bash: "bash" },
};

const optionalText = shape.string().optional();
const executeShape = shape.object({
  code: shape.string(),
  context_id: optionalText,
  language: optionalText,
  env_vars: shape.record(shape.string()).optional(),
});
const contextShape = shape.object({ language: optionalText, cwd: optionalText });

export async function answerCode(sandbox: Sandbox, request: Request, path: string, bodies: Budget): Promise<Response> {
  const { signal } = request;
  const [, id, step] = /^\/contexts(?:\/([^/]+)(\/restart)?)?$/.exec(path) ?? [path];
  if (request.method === "GET" && path === "/health") return Response.json("OK");
  if (request.method === "POST" && path === "/execute") return await execute(sandbox, request, bodies);
  if (path === "/contexts" && request.method === "GET") return Response.json((await all(sandbox, signal)).map(told));
  if (path === "/contexts" && request.method === "POST")
    return Response.json(told(await create(sandbox, request, bodies)));
  if (id === undefined) throw notOffered(`${request.method} ${path} of the code interpreter`);
  const context = (await sandbox.codeContexts({ signal })).find((each) => each.id === id);
  if (context === undefined) throw noContext(id);
  if (step !== undefined && request.method === "POST") await context.restart({ signal });
  else if (step === undefined && request.method === "DELETE") await context.remove({ signal });
  else throw notOffered(`${request.method} ${path} of the code interpreter`);
  return Response.json(null);
}

/** E2B's sandboxes have one of Python and one of JavaScript from the start; ours make them when somebody looks. */
async function all(sandbox: Sandbox, signal: AbortSignal): Promise<CodeContext[]> {
  const found = await sandbox.codeContexts({ signal });
  for (const language of ["python", "javascript"] as const) {
    if (found.some(({ info }) => info.isDefault && info.language === language)) continue;
    // One whose interpreter the sandbox lacks is not there.
    await sandbox.runCode("", { language, signal }).catch(unlessCodeOf("PROGRAM_NOT_FOUND"));
  }
  return await sandbox.codeContexts({ signal });
}

async function create(sandbox: Sandbox, request: Request, bodies: Budget): Promise<CodeContext> {
  const { language, cwd } = await parsedBody(contextShape, request, bodies);
  const workdir = cwd ? { workdir: absolutePath(cwd) } : {};
  return await sandbox.createCodeContext({
    language: languageOf(language ?? "python"),
    ...workdir,
    signal: request.signal,
  });
}

function told({ id, language, workdir }: CodeContext): object {
  return { id, language, cwd: workdir };
}

async function execute(sandbox: Sandbox, request: Request, bodies: Budget): Promise<Response> {
  const { code, context_id, language, env_vars } = await parsedBody(executeShape, request, bodies);
  if (context_id && language)
    throw new E2bFailure("invalid_argument", "Only one of context_id or language can be provided");
  const left = new AbortController();
  const events = sandbox.client.runCode(sandbox.id, code, {
    ...(context_id ? { contextId: context_id } : { language: languageOf(language || "python") }),
    ...(env_vars ? { env: env_vars } : {}),
    signal: AbortSignal.any([request.signal, left.signal]),
  });
  // What is refused is refused by a status: the head waits for the beginning, or for the silence before it to be told.
  const lines = linesOf(events);
  const first = await lines.next().catch((error: unknown) => {
    throw context_id && error instanceof SandboxError && error.code === "CONTEXT_NOT_FOUND"
      ? noContext(context_id)
      : error;
  });
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      if (!first.done) controller.enqueue(encoder.encode(first.value));
    },
    pull: async (controller) => {
      const { done, value } = await lines.next();
      if (done === true) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    // The code is interrupted, and its names stay.
    cancel: () => left.abort(),
  });
  return new Response(body, { headers: { "content-type": "application/json" } });
}

/** Each event as a line of ASCII: a client of theirs reads each piece by itself, and would break a character that is cut. */
async function* linesOf(events: AsyncIterator<CodeEvent>): AsyncGenerator<string, void, undefined> {
  const text = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  let next = events.next();
  for (;;) {
    const spoken = new AbortController();
    const silence = sleep(KEEPALIVE_MS, "silence" as const, { signal: spoken.signal, ref: false });
    silence.catch(() => {}); // something came first
    const outcome = await Promise.race([next, silence]).finally(() => spoken.abort());
    if (outcome === "silence") {
      yield lineOf({ type: "keepalive" });
      continue;
    }
    if (outcome.done === true) return;
    yield* messagesOf(outcome.value, text).map(lineOf);
    next = events.next();
  }
}

function messagesOf(
  event: CodeEvent,
  text: Readonly<Record<"stdout" | "stderr", InstanceType<typeof TextDecoder>>>,
): object[] {
  switch (event.kind) {
    case "started":
      return [{ type: "number_of_executions", execution_count: event.start.executionCount }];
    case "stdout":
    case "stderr": {
      const piece = text[event.kind].decode(event.data, { stream: true });
      return piece === "" ? [] : [{ type: event.kind, text: piece, timestamp: new Date().toISOString() }];
    }
    case "result":
      return [{ type: "result", ...members(event.result) }];
    case "error":
      return [{ type: "error", ...event.error }];
    case "end":
      return [{ type: "end_of_execution" }];
  }
}

const MEMBERS: Readonly<Record<string, string>> = {
  "text/html": "html",
  "text/markdown": "markdown",
  "image/svg+xml": "svg",
  "image/png": "png",
  "image/jpeg": "jpeg",
  "application/pdf": "pdf",
  "text/latex": "latex",
  "application/javascript": "javascript",
};
const OWN = ["text/plain", "application/json", "application/vnd.agentfense."];

function members(result: CodeResult): object {
  const { isMain, data, text, json, table, chart } = result;
  const entries = Object.entries(data);
  const named = entries.flatMap(([mime, value]) => (MEMBERS[mime] === undefined ? [] : [[MEMBERS[mime], value]]));
  const others = entries.filter(([mime]) => MEMBERS[mime] === undefined && !OWN.some((own) => mime.startsWith(own)));
  return {
    ...Object.fromEntries(named),
    // A string shows as itself there.
    text: text === undefined ? undefined : (/^(['"])(.*)\1$/s.exec(text)?.[2] ?? text),
    ...{ json, data: table, chart, extra: others.length === 0 ? undefined : Object.fromEntries(others) },
    is_main_result: isMain,
  };
}

function lineOf(message: object): string {
  const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return `${JSON.stringify(message).replaceAll(/[\u007f-\uffff]/g, escaped)}\n`;
}

function languageOf(name: string): CodeLanguage {
  const language = Object.hasOwn(LANGUAGES, name.toLowerCase()) ? LANGUAGES[name.toLowerCase()] : undefined;
  if (language !== undefined) return language;
  throw new E2bFailure(
    "internal",
    `there is no kernel for ${JSON.stringify(name.slice(0, 64))} here, but for python, javascript, typescript and bash`,
  );
}

async function parsedBody<Value>(expected: shape.Shape<Value>, request: Request, bodies: Budget): Promise<Value> {
  using bounded = await bodyOf(request, { limit: LARGEST_BODY, budget: bodies });
  const body: unknown = await jsonOf(bounded.request);
  // Python's client says null for what it does not say.
  const said =
    typeof body === "object" && body !== null ? Object.entries(body).filter(([, value]) => value !== null) : undefined;
  return shape.parsed(expected, said && Object.fromEntries(said), refusalOf);
}

function unlessCodeOf(code: string): (error: unknown) => void {
  return (error) => {
    if (!(error instanceof SandboxError && error.code === code)) throw error;
  };
}

function noContext(id: string): E2bFailure {
  return new E2bFailure("not_found", `Context ${id.slice(0, 64)} not found`);
}

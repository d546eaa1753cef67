import type { Sandbox } from "@agentfense/sdk";
import { bodyOf } from "../body.ts";
import type { Budget } from "../budget.ts";
import { E2bFailure, failureOf } from "./failure.ts";
import { type Entry, filesOf } from "./files.ts";
import { absolutePath, checkUser } from "./paths.ts";

// /files: the content of files.

/** Of a form, which is taken apart in memory. A stream may be as long as the sandbox's disk. */
const LARGEST_FORM = 256 * 1024 * 1024;

export async function answerContent(sandbox: Sandbox, request: Request, forms: Budget): Promise<Response> {
  const query = new URL(request.url).searchParams;
  checkUser(query.get("username") ?? "");
  try {
    if (request.method === "GET" || request.method === "HEAD") return await read(sandbox, request, query);
    if (request.method === "POST") return await write(sandbox, request, query, forms);
  } catch (error) {
    const failure = failureOf(error);
    // In the words of HTTP, a full disk has a status of its own.
    throw failure.code === "resource_exhausted" && failure.status === 429
      ? new E2bFailure("resource_exhausted", failure.message, { status: 507 })
      : failure;
  }
  throw new E2bFailure("invalid_argument", "Method Not Allowed", { status: 405 });
}

async function read(sandbox: Sandbox, request: Request, query: URLSearchParams): Promise<Response> {
  const path = absolutePath(query.get("path") ?? "");
  const { size, body } = await filesOf(sandbox, request.signal).read(path);
  const name = encodeURIComponent(path.slice(path.lastIndexOf("/") + 1));
  return new Response(body, {
    headers: {
      "content-type": "application/octet-stream",
      "content-disposition": `attachment; filename*=UTF-8''${name}`,
      // What agents write is never to be taken for a page of this server.
      "x-content-type-options": "nosniff",
      ...(size === undefined ? {} : { "content-length": String(size) }),
    },
  });
}

async function write(sandbox: Sandbox, given: Request, query: URLSearchParams, forms: Budget): Promise<Response> {
  const request = unpacked(given);
  const files = filesOf(sandbox, request.signal);
  const asked = query.get("path");
  const metadata = metadataIn(request.headers);
  if (!/^multipart\/form-data\s*;/i.test(request.headers.get("content-type") ?? "")) {
    if (asked === null || asked === "") throw new E2bFailure("invalid_argument", "path is required");
    await files.write(asked, request.body ?? new Uint8Array(), metadata);
    return Response.json([written(asked, metadata)]);
  }
  using bounded = await bodyOf(request, { limit: LARGEST_FORM, budget: forms });
  const form = await bounded.request.formData().catch(() => undefined);
  const parts = form?.getAll("file").filter((part) => part instanceof File) ?? [];
  if (parts.length === 0) throw new E2bFailure("invalid_argument", "the form has no part with a file");
  if (parts.length > 1 && asked) throw new E2bFailure("invalid_argument", "path is for a single file");
  const answers: object[] = [];
  for (const part of parts) {
    const path = asked || part.name;
    await files.write(path, new Uint8Array(await part.arrayBuffer()), metadata);
    answers.push(written(path, metadata));
  }
  return Response.json(answers);
}

function unpacked(request: Request): Request {
  const encoding = request.headers.get("content-encoding") ?? "identity";
  if (encoding === "identity" || request.body === null) return request;
  if (encoding !== "gzip") throw new E2bFailure("invalid_argument", `the encoding ${encoding} is not read here`);
  const { method, headers, signal, url } = request;
  const body = request.body.pipeThrough(new DecompressionStream("gzip") as TransformStream<Uint8Array, Uint8Array>);
  return new Request(url, { method, headers, signal, body, duplex: "half" } as RequestInit);
}

const METADATA_HEADER = "x-metadata-";

function metadataIn(headers: Headers): Entry["metadata"] {
  const named = [...headers].filter(([name]) => name.startsWith(METADATA_HEADER) && name !== METADATA_HEADER);
  return Object.fromEntries(named.map(([name, value]) => [name.slice(METADATA_HEADER.length), value]));
}

function written(given: string, metadata: Entry["metadata"]): object {
  const path = absolutePath(given);
  // Older clients refuse a member that they do not know.
  const more = Object.keys(metadata).length === 0 ? {} : { metadata };
  return { path, name: path.slice(path.lastIndexOf("/") + 1), type: "file", ...more };
}

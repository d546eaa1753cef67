import * as shape from "../../shape.ts";
import { Refusal } from "../envelope.ts";
import { workspacePath } from "../paths.ts";
import { type AioCall, bare, get, post, type Route } from "../route.ts";
import { fileRefusal, onFile } from "./file-refusal.ts";
import { type FileAt, readText, writeWithParents } from "./text.ts";

// Single files. `sudo` is understood and lifts nothing.

const sudo = shape.boolean().default(false);

const writeInput = shape.object({
  file: shape.string(),
  content: shape.string(),
  encoding: shape.oneOf(["utf-8", "base64", "raw"]).default("utf-8"),
  append: shape.boolean().default(false),
  leading_newline: shape.boolean().default(false),
  trailing_newline: shape.boolean().default(false),
  sudo,
});

export const CONTENT_ROUTES: readonly Route[] = [
  post(
    "v1/file/read",
    shape.object({
      file: shape.string(),
      start_line: shape.int().min(0).optional(),
      end_line: shape.int().min(0).optional(),
      sudo,
    }),
    async (call, { file, start_line, end_line }) => {
      const text = await readText(fileAt(call, file, "read"));
      if (start_line === undefined && end_line === undefined) return { content: text, file };
      const lines = text.split("\n").slice(start_line ?? 0, end_line);
      return { content: lines.join("\n"), file };
    },
  ),
  post("v1/file/write", writeInput, write),
  post(
    "v1/file/replace",
    shape.object({ file: shape.string(), old_str: shape.string().min(1), new_str: shape.string(), sudo }),
    async (call, { file, old_str, new_str }) => {
      const at = fileAt(call, file, "replace");
      const parts = (await readText(at)).split(old_str);
      if (parts.length > 1) await writeWithParents(at, parts.join(new_str));
      return { file, replaced_count: parts.length - 1 };
    },
  ),
  bare("POST", "v1/file/upload", upload),
  get(
    "v1/file/download",
    shape.object({ path: shape.string(), change_policy: shape.oneOf(["ignore", "abort"]).default("ignore") }),
    download,
  ),
];

/** A file that a client named. */
export function fileAt({ sandbox, request: { signal } }: AioCall, file: string, operation: string): FileAt {
  return { sandbox, path: workspacePath(file, operation), operation, signal };
}

async function write(call: AioCall, input: shape.Value<typeof writeInput>): Promise<unknown> {
  const { file, append } = input;
  const at = fileAt(call, file, "write");
  const content = contentOf(at, input);
  await writeWithParents(at, content, { append });
  return { file, bytes_written: content.byteLength };
}

function contentOf(at: FileAt, input: shape.Value<typeof writeInput>): Uint8Array {
  const [before, after] = [input.leading_newline ? "\n" : "", input.trailing_newline ? "\n" : ""];
  if (input.encoding !== "base64") return Buffer.from(`${before}${input.content}${after}`);
  const packed = input.content.replace(/\s/g, "");
  const bytes = Buffer.from(packed, "base64");
  // Buffer passes over what is not base64, and would write something else than was meant.
  if (bytes.toString("base64").replace(/=+$/, "") !== packed.replace(/=+$/, "")) {
    throw fileRefusal({ ...at, message: "the content is no base64", type: "decode_error" });
  }
  return Buffer.concat([Buffer.from(before), bytes, Buffer.from(after)]);
}

async function upload(call: AioCall): Promise<unknown> {
  const form = await call.request.formData().catch(() => undefined);
  const file = form?.get("file");
  if (!(file instanceof File)) {
    throw new Refusal("the body is a form with a file in it, called file", { status: 422 });
  }
  const named = form?.get("path");
  // A name from a form is a name, whatever it has in front.
  const path = typeof named === "string" && named !== "" ? named : file.name.slice(file.name.lastIndexOf("/") + 1);
  const at = fileAt(call, path, "upload");
  const content = new Uint8Array(await file.arrayBuffer());
  await writeWithParents(at, content);
  return { file_path: at.path, file_size: content.byteLength, success: true };
}

/** In pieces. Its refusals are HTTP statuses, unlike those of its neighbours. */
async function download(
  call: AioCall,
  { path, change_policy }: { readonly path: string; readonly change_policy: "ignore" | "abort" },
): Promise<Response> {
  const at = await withStatus(async () => fileAt(call, path, "download"));
  const { sandbox, signal } = at;
  const reader = sandbox.files.readStream(at.path, { signal }).getReader();
  const before = await withStatus(() => onFile(at, () => sandbox.files.stat(at.path, { signal })));
  // Whether it can be read shows with the first piece.
  let first: Awaited<ReturnType<typeof reader.read>> | undefined = await withStatus(() =>
    onFile(at, () => reader.read()),
  );
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const next = first ?? (await reader.read());
        first = undefined;
        if (!next.done) return controller.enqueue(next.value);
        if (change_policy === "abort") {
          const after = await sandbox.files.stat(at.path, { signal });
          const isSame = after.size === before.size && after.modifiedAt.getTime() === before.modifiedAt.getTime();
          if (!isSame) return controller.error(new Error("the file changed while it was read"));
        }
        controller.close();
      },
      async cancel(reason) {
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  const name = encodeURIComponent(at.path.slice(at.path.lastIndexOf("/") + 1));
  return new Response(body, {
    headers: {
      "content-type": "application/octet-stream",
      "content-disposition": `attachment; filename*=UTF-8''${name}`,
      // What agents write is never to be taken for a page of this server.
      "x-content-type-options": "nosniff",
    },
  });
}

const STATUSES: Readonly<Record<string, number>> = { not_found: 404, permission_denied: 403, io_error: 500 };

async function withStatus<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Refusal) || error.status !== 200) throw error;
    const { message, data, hint } = error;
    const { error_type } = data as { readonly error_type: string };
    throw new Refusal(message, { status: STATUSES[error_type] ?? 400, data, hint });
  }
}

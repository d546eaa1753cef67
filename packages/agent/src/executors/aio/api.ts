import { z } from "zod";
import { AioConnectionError, type HttpAnswer, HttpClient } from "./http.ts";

/** The longest answer with the output of a command in it, as JSON. */
const ANSWER_BYTES = 16 * 1024 * 1024;
const REQUEST_MS = 30_000;

/** The server answered, and the answer is no. */
export class AioRefusal extends Error {
  override readonly name = "AioRefusal";
  readonly status: number;
  /** What went wrong with a file operation. */
  readonly errorType: string | undefined;

  constructor(
    message: string,
    { status, errorType }: { readonly status: number; readonly errorType?: string | undefined },
  ) {
    super(message);
    this.status = status;
    this.errorType = errorType;
  }

  /** There is no such call on this server. A session that is not there is also 404, but says so in its envelope. */
  get isMissingCall(): boolean {
    return (this.status === 404 || this.status === 405) && !this.isMissingSession;
  }

  /** It was evicted, or never was. */
  get isMissingSession(): boolean {
    return /session\b.*\b(not found|does not exist|not exist)|(no|unknown) (such )?session/i.test(this.message);
  }

  /** What a shell session says for ever after two commands met in it. */
  get isCorruptSession(): boolean {
    return /ErrorObservation|has no attribute 'exit_code'/.test(this.message);
  }
}

/** Another session may do what this one did not. */
export function isSessionLost(error: unknown): boolean {
  if (error instanceof AioConnectionError) return true;
  return error instanceof AioRefusal && (error.isMissingSession || error.isCorruptSession);
}

const envelope = z.object({
  success: z.boolean().nullish(),
  message: z.string().nullish(),
  data: z.unknown().optional(),
  detail: z.unknown().optional(),
});

const probe = z.object({
  success: z.boolean().nullish(),
  home_dir: z.string().nullish(),
  workspace: z.string().nullish(),
  version: z.string().nullish(),
});

interface AioCallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
}

/** The calls of an AIO server, with its way of saying no: `success`, which counts more than the HTTP status. */
export class AioApi {
  readonly #http: HttpClient;
  readonly #requestMs: number;

  constructor(baseUrl: string, apiKey: string | undefined, requestMs: number = REQUEST_MS) {
    this.#http = new HttpClient(baseUrl, apiKey === undefined ? {} : { "x-aio-api-key": apiKey });
    this.#requestMs = requestMs;
  }

  get name(): string {
    return this.#http.name;
  }

  async sandbox(options: AioCallOptions): Promise<{ readonly version: string; readonly workspace: string }> {
    const given = jsonOf(await this.#call("GET", "v1/sandbox", undefined, options));
    const { success, home_dir, workspace, version } = parsed(probe, given, "v1/sandbox");
    if (success === false) throw new AioRefusal("the server says that it is not well", { status: 200 });
    return { version: version ?? "", workspace: workspace || home_dir || "/home/gem" };
  }

  async post<Schema extends z.ZodType>(
    path: string,
    body: object,
    shape: Schema,
    options: AioCallOptions,
  ): Promise<z.output<Schema>> {
    return parsed(shape, dataOf(await this.#call("POST", path, body, options)), path);
  }

  async delete(path: string, options: AioCallOptions): Promise<void> {
    dataOf(await this.#call("DELETE", path, undefined, options));
  }

  /** The beginning of a file. */
  async download(path: string, maxBytes: number, { signal, timeoutMs }: AioCallOptions): Promise<HttpAnswer> {
    const answer = await this.#http.call({
      method: "GET",
      path: `v1/file/download?path=${encodeURIComponent(path)}`,
      timeoutMs: timeoutMs ?? this.#requestMs,
      signal,
      maxBytes,
      cut: true,
    });
    if (answer.status !== 200) dataOf(answer);
    return answer;
  }

  close(): void {
    this.#http.close();
  }

  async #call(
    method: "GET" | "POST" | "DELETE",
    path: string,
    body: object | undefined,
    { signal, timeoutMs = this.#requestMs }: AioCallOptions,
  ): Promise<HttpAnswer> {
    return await this.#http.call({ method, path, body, timeoutMs, signal, maxBytes: ANSWER_BYTES });
  }
}

/** The data of an envelope, whatever the status: failures come with 200, and refusals of a gateway without an envelope. */
function dataOf(answer: HttpAnswer): unknown {
  const { status } = answer;
  const { data: given } = envelope.safeParse(jsonIn(answer));
  if (given?.success === true) return given.data;
  const fault = z
    .object({ error_type: z.string().optional(), message: z.string().optional() })
    .safeParse(given?.data).data;
  const said = given?.message ?? fault?.message ?? detailOf(given?.detail);
  throw new AioRefusal(said ?? `HTTP status ${status} without an explanation`, {
    status,
    errorType: fault?.error_type,
  });
}

/** FastAPI's: a text, or what is wrong with each field. */
function detailOf(detail: unknown): string | undefined {
  if (detail === undefined || detail === null) return undefined;
  return typeof detail === "string" ? detail : JSON.stringify(detail).slice(0, 1000);
}

function jsonOf(answer: HttpAnswer): unknown {
  if (answer.status !== 200) dataOf(answer);
  return jsonIn(answer);
}

function jsonIn({ body }: HttpAnswer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    return undefined;
  }
}

function parsed<Schema extends z.ZodType>(shape: Schema, given: unknown, path: string): z.output<Schema> {
  const { data, error } = shape.safeParse(given);
  if (error === undefined) return data;
  throw new AioConnectionError(`the answer to ${path} is not what an AIO server says`, { cause: error });
}

import { randomUUID } from "node:crypto";
import * as shape from "../../shape.ts";
import { Refusal, Remark } from "../envelope.ts";
import { WORKSPACE, workingDirectory } from "../paths.ts";
import { type AioCall, bare, post, type Route } from "../route.ts";
import { type CellResult, Kernel } from "./kernel.ts";
import { runOnce } from "./run.ts";

const MAX_SECONDS = 300;
const KERNEL_NAME = "python3";
/** Absent: what the server gives a command that names no limit, usually 30 s too. */
const seconds = shape.number().above(0).max(MAX_SECONDS).optional();
const sessionId = shape.string().min(1).max(128);
const code = shape.string().max(1024 * 1024);

const codeInput = shape.object({
  language: shape.oneOf(["python", "javascript"]),
  code,
  timeout: seconds,
  cwd: shape.string().optional(),
  stateful: shape.boolean().default(false),
  session_id: sessionId.optional(),
});

const cellInput = shape.object({
  code,
  timeout: seconds,
  kernel_name: shape.string().optional(),
  session_id: sessionId.optional(),
  cwd: shape.string().optional(),
});

const nodeInput = shape.object({
  code,
  timeout: seconds,
  stdin: shape.string().optional(),
  files: shape.record(shape.string()).optional(),
  stateful: shape.boolean().default(false),
  session_id: sessionId.optional(),
  cwd: shape.string().optional(),
  version: shape.string().optional(),
});

export const CODE_ROUTES: readonly Route[] = [
  post("v1/code/execute", codeInput, async (call, input) => {
    const { language, cwd } = input;
    if (!input.stateful) return { language, code: input.code, ...(await stateless(call, input)), session_id: null };
    if (language !== "python") throw noState();
    const id = input.session_id ?? randomUUID();
    const { status, outputs } = await inKernel(call, id, input.code, { cwd, seconds: input.timeout });
    const text = (name: string) => outputs.map((each) => (each.name === name ? (each.text ?? "") : "")).join("");
    const error = outputs.find(({ output_type }) => output_type === "error");
    return {
      language,
      status,
      outputs,
      code: input.code,
      stdout: text("stdout"),
      stderr: text("stderr"),
      exit_code: status === "ok" ? 0 : 1,
      traceback: error?.traceback ?? null,
      session_id: id,
    };
  }),
  bare("GET", "v1/code/info", async () => ({ languages: [described("python"), described("javascript")] })),
  post("v1/jupyter/execute", cellInput, async (call, input) => {
    expectPython(input.kernel_name);
    const id = input.session_id ?? randomUUID();
    const result = await inKernel(call, id, input.code, { cwd: input.cwd, seconds: input.timeout });
    // A cell without a session is the only one of its kernel.
    if (input.session_id === undefined && call.place.kernels.find(id) !== undefined)
      await call.place.kernels.remove(id);
    const data = {
      kernel_name: KERNEL_NAME,
      session_id: input.session_id ?? null,
      status: result.status,
      execution_count: result.executionCount,
      outputs: result.outputs,
      code: input.code,
      msg_id: null,
    };
    if (result.status !== "timeout") return data;
    return new Remark(data, "the time was up", "the cell was interrupted; the session keeps what it knows");
  }),
  bare("GET", "v1/jupyter/info", async ({ place }) => ({
    default_kernel: KERNEL_NAME,
    available_kernels: [KERNEL_NAME],
    active_sessions: place.kernels.all.length,
    session_timeout_seconds: place.idleMs / 1000,
    max_sessions: place.kernels.limit,
  })),
  post(
    "v1/jupyter/sessions/create",
    shape.object({
      session_id: sessionId.optional(),
      kernel_name: shape.string().optional(),
      cwd: shape.string().optional(),
    }),
    async (call, { session_id = randomUUID(), kernel_name, cwd }) => {
      expectPython(kernel_name);
      await kernelFor(call, session_id, cwd);
      return { session_id, kernel_name: KERNEL_NAME, message: "ready" };
    },
  ),
  bare("GET", "v1/jupyter/sessions", async ({ place }) => ({
    sessions: Object.fromEntries(place.kernels.all.map(([id, kernel]) => [id, kernelInfo(kernel)])),
  })),
  bare("GET", "v1/jupyter/sessions/{session_id}", async ({ place, parameters }) => ({
    session_id: parameters.session_id,
    ...kernelInfo(place.kernels.require(parameters.session_id!)),
  })),
  bare("DELETE", "v1/jupyter/sessions", async ({ place }) => {
    await place.kernels.clear();
    return null;
  }),
  bare("DELETE", "v1/jupyter/sessions/{session_id}", async ({ place, parameters }) => {
    await place.kernels.remove(parameters.session_id!);
    return null;
  }),
  post("v1/nodejs/execute", nodeInput, async (call, input) => {
    if (input.stateful) throw noState();
    if (input.stdin !== undefined || input.files !== undefined) {
      throw new Refusal("stdin and files are not supported here", { hint: "use /v1/file/write and /v1/bash/exec" });
    }
    const result = await stateless(call, { ...input, language: "javascript" });
    return { language: "javascript", execution_count: null, code: input.code, ...result, session_id: null };
  }),
  bare("GET", "v1/nodejs/info", async () => described("javascript")),
];

async function stateless(
  call: AioCall,
  input: Pick<shape.Value<typeof codeInput>, "language" | "code" | "cwd" | "timeout">,
): Promise<object> {
  return await runOnce(call, input, { cwd: input.cwd, timeoutMs: inMs(input.timeout) });
}

function inMs(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1000;
}

async function inKernel(
  call: AioCall,
  id: string,
  text: string,
  { cwd, seconds: time }: { readonly cwd: string | undefined; readonly seconds: number | undefined },
): Promise<CellResult> {
  const kernel = await kernelFor(call, id, cwd);
  try {
    return await kernel.run(text, { timeoutMs: inMs(time) });
  } finally {
    if (kernel.isOver) call.place.kernels.forget(id);
  }
}

async function kernelFor({ place, sandbox }: AioCall, id: string, cwd: string | undefined): Promise<Kernel> {
  return place.kernels.find(id) ?? (await place.kernels.open(id, () => Kernel.open(sandbox, workingDirectory(cwd))));
}

function kernelInfo({ lastUsedAt, isBusy, workingDirectory: cwd }: Kernel): object {
  return { kernel_name: KERNEL_NAME, last_used: lastUsedAt.toISOString(), status: isBusy ? "busy" : "idle", cwd };
}

function expectPython(name: string | undefined): void {
  if (name === undefined || /^python/.test(name)) return;
  throw new Refusal(`there is no kernel ${JSON.stringify(name)}`, { hint: `there is ${KERNEL_NAME}` });
}

function noState(): Refusal {
  return new Refusal("JavaScript is run without a state here", {
    hint: "leave stateful out, and keep what is to stay in files",
  });
}

function described(language: "python" | "javascript"): object {
  return {
    language,
    description: `the ${language === "python" ? "python3" : "node"} of the sandbox`,
    runtime_version: null,
    default_timeout: 30,
    max_timeout: MAX_SECONDS,
    details: { stateful: language === "python", working_directory: WORKSPACE },
  };
}

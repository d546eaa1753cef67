import { Worker } from "node:worker_threads";

type Stripped = { readonly code: string } | { readonly problem: string };

const TIME_LIMIT_MS = 10_000;

// Code made for it breaks the parser, and it stays broken for the whole thread: for Node's own loading of modules too.
const THREAD = `
const { stripTypeScriptTypes } = require("node:module");
const { parentPort, workerData } = require("node:worker_threads");
try {
  parentPort.postMessage({ code: stripTypeScriptTypes(workerData, { mode: "strip" }) });
} catch (error) {
  const isAboutCode = /TYPESCRIPT_SYNTAX$/.test(error.code);
  parentPort.postMessage({ problem: isAboutCode ? error.message : "this cannot be parsed" });
}`;

/** TypeScript without its types, each character where it was; or what is wrong with it. In a thread of its own. */
export async function stripTypes(code: string, signal?: AbortSignal): Promise<Stripped> {
  signal?.throwIfAborted();
  const worker = new Worker(THREAD, {
    eval: true,
    workerData: code,
    env: {},
    execArgv: ["--no-warnings"],
    resourceLimits: { maxOldGenerationSizeMb: 256 },
  });
  const { promise, reject, resolve } = Promise.withResolvers<Stripped>();
  const abort = (): void => reject(signal?.reason);
  signal?.addEventListener("abort", abort, { once: true });
  worker.once("message", resolve);
  worker.once("error", () => resolve({ problem: "this cannot be parsed" }));
  worker.once("exit", () => resolve({ problem: "this cannot be parsed" }));
  const timer = setTimeout(() => resolve({ problem: "this takes too long to parse" }), TIME_LIMIT_MS);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
    await worker.terminate();
  }
}

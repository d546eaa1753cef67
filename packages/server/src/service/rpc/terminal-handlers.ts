import type { TerminalInput, TerminalInput_Open, TerminalSize } from "@agentfense/protocol/sandbox";
import type { Sandboxes, TerminalHandle } from "../../runtime/sandboxes/api.ts";
import { chunked } from "./chunks.ts";
import type { SandboxHandlers } from "./handlers.ts";
import { invalid, required } from "./messages/fields.ts";
import { unread } from "./upload-stream.ts";

const DEFAULT_SIZE = { columns: 80, rows: 24 };
/** The kernel's window size has 16 bits for each. */
const LARGEST_SIDE = 65_535;

export function terminalHandlers(sandboxes: Sandboxes) {
  return {
    async *openTerminal(requests, { caller, signal }) {
      const inputs = requests[Symbol.asyncIterator]();
      const { sandboxId, argv, env, workdir, size } = await readOpen(inputs);
      const request = { argv, env, workdir, size: sizeOf(size), signal };
      const terminal = await sandboxes.openTerminal(caller, sandboxId, request);
      const input = startInput(unread(inputs), terminal);
      try {
        for await (const data of chunked(terminal.output)) yield { data };
        const { exitCode } = await terminal.exit;
        if (input.fault === undefined) yield { exitCode };
      } catch (error) {
        if (input.fault === undefined) throw error;
      } finally {
        await terminal.close();
      }
      // What the client did wrong is the answer, however the terminal took its end.
      if (input.fault !== undefined) throw input.fault.error;
    },
  } satisfies SandboxHandlers;
}

async function readOpen(inputs: AsyncIterator<TerminalInput>): Promise<TerminalInput_Open> {
  const first = await inputs.next();
  if (first.done === true) throw invalid("no open received");
  const { input } = first.value;
  if (input.case !== "open") throw invalid("open must be sent first");
  required(input.value.sandboxId, "sandbox_id", "in open");
  return input.value;
}

interface InputState {
  /** The stream of inputs went wrong, and the terminal was closed for it. */
  fault: { readonly error: unknown } | undefined;
}

/** Types what arrives into the terminal, beside the output. An end of the input is no end of the terminal. */
function startInput(inputs: AsyncIterable<TerminalInput>, terminal: TerminalHandle): InputState {
  const state: InputState = { fault: undefined };
  let ended = false;
  const end = () => {
    ended = true;
  };
  terminal.exit.then(end, end);
  const pump = async () => {
    for await (const { input } of inputs) {
      if (input.case === "open") throw invalid("open already received");
      if (input.case === "data") await terminal.write(input.value);
      if (input.case === "resize") await terminal.resize(sizeOf(input.value));
    }
  };
  pump().catch(async (error: unknown) => {
    // Typing into a terminal that just ended fails, and is no fault of anybody.
    if (ended) return;
    state.fault = { error };
    // Its end shows in the output and the exit, which the loop above waits for.
    await terminal.close().catch(() => {});
  });
  return state;
}

export function sizeOf(size: TerminalSize | undefined): { columns: number; rows: number } {
  const { columns, rows } = size ?? DEFAULT_SIZE;
  if (columns > LARGEST_SIDE || rows > LARGEST_SIDE)
    throw invalid(`a terminal has at most ${LARGEST_SIDE} columns and rows`);
  return { columns: columns === 0 ? DEFAULT_SIZE.columns : columns, rows: rows === 0 ? DEFAULT_SIZE.rows : rows };
}

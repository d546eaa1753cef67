import { setTimeout as delay } from "node:timers/promises";
import type { TerminalCommand, TerminalProcess, TerminalSize } from "../backend/backend.ts";
import type { ProcessHome } from "./container.ts";
import { type Engine, isStatus } from "./engine.ts";
import type { Exec } from "./exec.ts";
import { ContainerProcess } from "./process.ts";
import { TERMINAL_SCRIPT } from "./scripts.ts";

const RESIZE_ATTEMPTS = 50;
const RESIZE_PAUSE_MS = 20;

/** A command on a terminal the engine made. Both outputs are one stream. */
export async function openContainerTerminal(
  home: ProcessHome,
  { argv, env, workdir, size }: TerminalCommand,
  signal: AbortSignal | undefined,
): Promise<TerminalProcess> {
  let resize: (size: TerminalSize) => Promise<void> = async () => {};
  const prepareTerminal = async (exec: Exec) => {
    resize = (newSize) => resizeExec(home.engine, exec.id, newSize);
    await resize(size);
  };
  const command = { script: TERMINAL_SCRIPT, argv, env, workdir, stdin: true };
  const process = await ContainerProcess.start(home, command, { signal, prepareTerminal });
  return {
    input: process.stdin!,
    output: process.stderr,
    exit: process.exit,
    resize: async (newSize) => {
      if (!process.isOver) await resize(newSize);
    },
    signal: (signalNumber) => process.signal(signalNumber),
    kill: () => process.kill(),
  };
}

/** The engine refuses for a moment after it said that the process runs. */
async function resizeExec(engine: Engine, execId: string, size: TerminalSize): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await engine.post(`/exec/${execId}/resize`, { query: { h: String(size.rows), w: String(size.columns) } });
      return;
    } catch (error) {
      if (isStatus(error, 404, 409)) return; // it has ended
      if (!isStatus(error, 500) || attempt === RESIZE_ATTEMPTS) throw error;
      await delay(RESIZE_PAUSE_MS);
    }
  }
}

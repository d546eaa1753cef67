import { type Process, ProcessSchema } from "@agentfense/protocol/sandbox";
import { print } from "../output.ts";
import { printTable } from "../table/table.ts";
import { jsonOf, printJson, showTime } from "./show.ts";
import { PROCESS_KINDS, PROCESS_STATES, wordFor } from "./words.ts";

/** A tag begins with a letter. */
export function whichProcess(which: string): { readonly number: number } | { readonly tag: string } {
  return /^[0-9]{1,9}$/.test(which) ? { number: Number(which) } : { tag: which };
}

export async function showProcess(process: Process, json: boolean): Promise<void> {
  if (json) return printJson(jsonOf(ProcessSchema, process));
  await print(`${process.number}\n`);
}

export async function showProcesses(processes: readonly Process[], json: boolean): Promise<void> {
  if (json) return printJson(processes.map((process) => jsonOf(ProcessSchema, process)));
  await printTable(
    ["NUMBER", "TAG", "KIND", "STATE", "STARTED", "ENDED", "COMMAND"],
    processes.map((process) => [
      String(process.number),
      process.tag,
      wordFor(PROCESS_KINDS, process.kind),
      showState(process),
      showTime(process.startedAt),
      showTime(process.endedAt),
      process.argv.length > 0 ? process.argv.join(" ") : process.command,
    ]),
    { right: ["NUMBER"] },
  );
}

function showState({ state, exitCode, signal, timedOut, outOfMemory }: Process): string {
  if (exitCode === undefined) return wordFor(PROCESS_STATES, state);
  const why = timedOut ? "time was up" : outOfMemory ? "out of memory" : signal;
  return `exit ${exitCode}${why === "" ? "" : ` (${why})`}`;
}

import { createInterface, type Interface } from "node:readline/promises";
import { type Change, diffChanges, discardChanges, foldChanges } from "@agentfense/server/isolation";
import { paintDiff } from "../changes/colours.ts";
import { explainRefusal } from "../changes/kept-delta.ts";
import { print, warn } from "../output.ts";
import { paintFor, printable } from "../terminal.ts";
import { counted, KIND_LETTERS, shownPath } from "../wording.ts";
import { changesOf, listForPeople, reportApplied, type Settlement, writeBack } from "./changes.ts";
import type { SandboxRequest } from "./sandbox-request.ts";

/**
 * Shows a person at the terminal what a delta holds, and does with it what he says. Whatever ends the questions early
 * (the end of the input, Ctrl-C) keeps the changes.
 */
export async function reviewChanges(request: SandboxRequest, delta: string, signal: AbortSignal): Promise<Settlement> {
  const changes = await changesOf(request, delta, signal);
  if (changes.length === 0) {
    warn("no changes");
    return { changes };
  }
  listForPeople(request, changes);
  using person = new TerminalUser(signal);
  for (;;) {
    const choice = await person.choose(
      "apply all (a), choose (c), diff (d), keep for later (k) or discard (x)?",
      "acdkx",
    );
    if (choice === "d") await showDiff(request, delta);
    else if (choice === "a") return report(request, await writeBack(request, delta, { changes, signal }));
    else if (choice === "c") {
      const paths = await choosePaths(request, delta, changes, person);
      if (paths === undefined) continue;
      return report(request, await writeBack(request, delta, { changes, paths, signal }));
    } else if (choice === "x") {
      if ((await person.choose(`throw away ${counted(changes.length, "change")}, for good (y/n)?`, "yn")) !== "y")
        continue;
      const { failed } = await discardChanges({ delta }).catch(explainRefusal);
      for (const { path, reason } of failed) warn(`not discarded: ${printable(path)}: ${reason}`);
      return { changes: failed.length === 0 ? [] : changes };
    } else return { changes };
  }
}

function report(request: SandboxRequest, settlement: Settlement): Settlement {
  if (settlement.problem !== undefined) warn(`nothing was written back: ${settlement.problem}`);
  else reportApplied(request, settlement.applied ?? []);
  return settlement;
}

/** One question a change, or a folded directory; undefined when all are to be asked about again. */
async function choosePaths(
  request: SandboxRequest,
  delta: string,
  changes: readonly Change[],
  person: TerminalUser,
): Promise<readonly string[] | undefined> {
  const chosen: string[] = [];
  for (const change of foldChanges(changes)) {
    const name = change.folded ? printable(change.path) : shownPath(change);
    for (;;) {
      const choice = await person.choose(
        `${change.folded ? "I" : KIND_LETTERS[change.kind]} ${name}: apply (y), leave (n), diff (d), the rest too (a), stop here (q)?`,
        "yndaq",
      );
      if (choice === "d") {
        await showDiff(request, delta, [change.path]);
        continue;
      }
      if (choice === undefined) return undefined;
      if (choice === "q") return chosen.length === 0 ? undefined : chosen;
      if (choice === "y" || choice === "a") chosen.push(change.path);
      if (choice === "a") return [...chosen, ...restAfter(changes, change)];
      break;
    }
  }
  return chosen.length === 0 ? undefined : chosen;
}

function restAfter(changes: readonly Change[], { path }: { readonly path: string }): readonly string[] {
  const folded = foldChanges(changes);
  return folded.slice(folded.findIndex((change) => change.path === path) + 1).map((change) => change.path);
}

async function showDiff({ directory, rules }: SandboxRequest, delta: string, paths?: readonly string[]): Promise<void> {
  const paint = paintFor(process.stdout, process.env);
  const spec = { delta, lowers: [directory], rules, tellsAll: true, ignores: paths === undefined };
  for await (const { text, ignoredIn } of diffChanges({ ...spec, ...(paths && { paths }) })) {
    if (ignoredIn === undefined) await print(paintDiff(text, paint));
  }
}

/** Who sits at the terminal. */
class TerminalUser implements Disposable {
  readonly #lines: Interface;
  readonly #signal: AbortSignal;

  constructor(signal: AbortSignal) {
    // The terminal's own line editing does: Node's would write over what stands there, and take Ctrl-C for itself.
    this.#lines = createInterface({ input: process.stdin, output: process.stderr, terminal: false });
    this.#signal = signal;
  }

  /** One of the letters; undefined when nobody answers any more. Whatever else is typed is asked about again. */
  async choose(question: string, letters: string): Promise<string | undefined> {
    for (;;) {
      const answer = await this.#ask(`agentfense: ${question} `);
      if (answer === undefined) return undefined;
      const letter = answer.trim().toLowerCase()[0];
      if (letter !== undefined && letters.includes(letter)) return letter;
    }
  }

  async #ask(question: string): Promise<string | undefined> {
    const ended = new Promise<undefined>((resolve) => {
      this.#lines.once("close", () => resolve(undefined));
    });
    try {
      return await Promise.race([this.#lines.question(question, { signal: this.#signal }), ended]);
    } catch {
      return undefined; // Ctrl-C, or a signal
    }
  }

  [Symbol.dispose](): void {
    this.#lines.close();
  }
}

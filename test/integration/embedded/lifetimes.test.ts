import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { aWhile, eventually } from "../../support/eventually.ts";
import { leftovers } from "../../support/leftovers.ts";

const PROGRAM = join(import.meta.dirname, "embedding-program.ts");
/** For what the kernel and our helpers do after the program's end; far more than they take. */

interface Embedding {
  readonly child: ChildProcess;
  readonly directory: string;
  /** What the program has for temporary files. */
  readonly temporary: string;
  readonly stateDirectory: string;
  /** The name of its instance of the isolation layer. */
  readonly instance: string;
  /** Tells it to come to its end. */
  goOn(): void;
}

function environment(TMPDIR: string) {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  return { PATH, NODE_COMPILE_CACHE, TMPDIR };
}

/** A program with a sandbox, a session and two commands. */
async function start(ending: string): Promise<Embedding> {
  const base = mkdtempSync(join(tmpdir(), "agentfense-embedding-"));
  onTestFinished(() => rmSync(base, { recursive: true, force: true }));
  const directory = mkdtempSync(join(base, "project-"));
  const temporary = mkdtempSync(join(base, "temporary-"));
  writeFileSync(join(directory, "a"), "1\n");
  const child = spawn(process.execPath, [PROGRAM, directory, ending], {
    env: environment(temporary),
    stdio: ["pipe", "pipe", ending === "throws" ? "ignore" : "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [sandboxId] = (await once(createInterface(child.stdout), "line")) as [string];
  const uid = process.geteuid?.() ?? 0;
  const [own = ""] = globSync(`agentfense-${uid}-*`, { cwd: temporary });
  const stateDirectory = uid === 0 ? "/run/agentfense" : join(temporary, own);
  const [instance = ""] = globSync(`*/${sandboxId}`, { cwd: stateDirectory }).map((path) => path.split("/")[0]);
  return { child, directory, temporary, stateDirectory, instance, goOn: () => child.stdin?.write("\n") };
}

/** Processes that name the instance: boxes, launcher, watchdog. */
function processesOf(instance: string): string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "latin1").includes(instance);
    } catch {
      return false; // it ended while we looked
    }
  });
}

function remains({ stateDirectory, instance }: Embedding): object {
  const { mounts, controlGroups, processes } = leftovers(join(stateDirectory, instance), [instance]);
  return { mounts, controlGroups, processes: [...processes, ...processesOf(instance)] };
}

const NOTHING = { mounts: [], controlGroups: [], processes: [] };

/** Control groups of a killed program are left for the next one, which finds them empty. */
async function expectNothing(embedding: Embedding, except: { readonly controlGroups?: true } = {}): Promise<void> {
  const found = (): object => {
    const all = remains(embedding);
    return except.controlGroups ? { ...all, controlGroups: [] } : all;
  };
  await eventually(() => expect(found()).toEqual(NOTHING));
}

async function exitOf(child: ChildProcess): Promise<number | string> {
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  return child.exitCode ?? child.signalCode ?? "";
}

function homes({ temporary }: Embedding): string[] {
  return readdirSync(temporary).filter((name) => name.startsWith("agentfense-engine-"));
}

test("a program that forgets its sandboxes ends by itself and leaves nothing, its temporary files included", async () => {
  const embedding = await start("forgets");
  expect(embedding.instance).not.toBe("");
  expect(remains(embedding)).not.toEqual(NOTHING);
  expect(homes(embedding)).toHaveLength(1);
  embedding.goOn();
  expect(await exitOf(embedding.child)).toBe(0);
  await expectNothing(embedding);
  expect(homes(embedding)).toEqual([]);
  expect(readdirSync(embedding.directory)).toEqual(["a"]);
});

test.each([
  ["exits", 7],
  ["throws", 1],
] as const)("a program that %s leaves no process and no mount", async (ending, status) => {
  const embedding = await start(ending);
  embedding.goOn();
  expect(await exitOf(embedding.child)).toBe(status);
  await expectNothing(embedding, { controlGroups: true });
  expect(readdirSync(embedding.directory)).toEqual(["a"]);
});

test("a program that is killed leaves no process and no mount; the next one removes its files", async () => {
  const embedding = await start("waits");
  embedding.goOn();
  await aWhile(100);
  embedding.child.kill("SIGKILL");
  expect(await exitOf(embedding.child)).toBe("SIGKILL");
  await expectNothing(embedding, { controlGroups: true });
  expect(homes(embedding)).toHaveLength(1);

  const next = spawn(process.execPath, [PROGRAM, embedding.directory, "forgets"], {
    env: environment(embedding.temporary),
    stdio: ["pipe", "ignore", "inherit"],
  });
  next.stdin.write("\n");
  expect(await exitOf(next)).toBe(0);
  expect(homes(embedding)).toEqual([]);
  await expectNothing(embedding);
  expect(readdirSync(embedding.stateDirectory)).not.toContain(embedding.instance);
});

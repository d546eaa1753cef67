import type { ViewEntry } from "../../files/guarded-view.ts";
import { joined, nameOf, parentOf } from "../../files/paths.ts";
import { each, type Program, type ProgramRun, parseOptions, pathOf, print } from "../program.ts";

interface Named {
  readonly name: string;
  readonly entry: ViewEntry;
}

/** One name a line, as without a terminal. */
export const ls: Program = async (run) => {
  const { flags, operands } = parseOptions(run.args, { letters: "aA1Rldh" });
  const paths = operands.length === 0 ? ["."] : operands;
  const plain: Named[] = [];
  const directories: { name: string; path: string }[] = [];
  const cannotAccess = (path: string, reason: string) => `cannot access '${path}': ${reason}`;
  const isFine = await each(run, paths, cannotAccess, (name) => {
    const path = pathOf(run, name);
    const entry = run.files.stat(path, { follow: !flags.has("l") });
    if (entry.kind === "directory" && !flags.has("d")) directories.push({ name, path });
    else plain.push({ name, entry });
  });
  await printEntries(run, flags, plain);
  const isTitled = paths.length > 1 || flags.has("R");
  for (const [at, { name, path }] of directories.entries()) {
    await listDirectory(run, flags, path, isTitled ? { name, isFirst: at === 0 && plain.length === 0 } : undefined);
  }
  return isFine ? 0 : 2;
};

async function listDirectory(
  run: ProgramRun,
  flags: ReadonlySet<string>,
  path: string,
  title: { readonly name: string; readonly isFirst: boolean } | undefined,
): Promise<void> {
  if (title !== undefined) await print(run, `${title.isFirst ? "" : "\n"}${title.name}:\n`);
  const own = run.files.list(path).map((entry) => ({ name: nameOf(entry.path), entry }));
  const shown = own.filter(({ name }) => !name.startsWith(".") || flags.has("a") || flags.has("A"));
  const around = [
    { name: ".", entry: run.files.stat(path) },
    { name: "..", entry: run.files.stat(parentOf(path)) },
  ];
  if (flags.has("l")) await print(run, "total 0\n");
  await printEntries(run, flags, flags.has("a") ? [...around, ...shown] : shown);
  if (!flags.has("R") || title === undefined) return;
  for (const { name, entry } of shown) {
    if (entry.kind !== "directory") continue;
    await listDirectory(run, flags, joined(path, name), { name: `${title.name}/${name}`, isFirst: false });
  }
}

async function printEntries(run: ProgramRun, flags: ReadonlySet<string>, entries: readonly Named[]): Promise<void> {
  const lines = entries.map(({ name, entry }) => `${flags.has("l") ? longLine(name, entry) : name}\n`);
  await print(run, lines.join(""));
}

const TYPES = { file: "-", directory: "d", symlink: "l" } as const;

function longLine(name: string, { kind, mode, size, target, modifiedAtMs }: ViewEntry): string {
  const bits = [6, 3, 0].map((shift) => {
    const three = (mode >> shift) & 7;
    return `${three & 4 ? "r" : "-"}${three & 2 ? "w" : "-"}${three & 1 ? "x" : "-"}`;
  });
  const time = new Date(modifiedAtMs).toISOString().slice(0, 16).replace("T", " ");
  const shown = kind === "symlink" ? `${name} -> ${target}` : name;
  return `${TYPES[kind]}${bits.join("")} 1 agent agent ${String(size).padStart(5)} ${time} ${shown}`;
}

import { FileFault } from "../../files/file-fault.ts";
import { joined, nameOf } from "../../files/paths.ts";
import { Complaint, complain, each, type Program, type ProgramRun, parseOptions, pathOf } from "../program.ts";

/** What makes and removes files. */
export const FILE_PROGRAMS = {
  async mkdir(run) {
    const { flags, operands } = parseOptions(run.args, { letters: "p" });
    requireOperand(operands);
    const cannotCreate = (path: string, reason: string) => `cannot create directory ‘${path}’: ${reason}`;
    const recursive = flags.has("p");
    let isFine = true;
    for (const path of operands) {
      // With those on the way, each by its own name: the first that cannot be made is the one that is told.
      const names = recursive
        ? [...path.matchAll(/[^/](?=\/|$)/g)].map(({ index }) => path.slice(0, index + 1))
        : [path];
      for (const name of names) {
        const make = () => run.files.makeDirectory(pathOf(run, name), { recursive });
        if (await each(run, [name], cannotCreate, make)) continue;
        isFine = false;
        break;
      }
    }
    return isFine ? 0 : 1;
  },

  async rmdir(run) {
    requireOperand(run.args);
    const failed = (path: string, reason: string) => `failed to remove '${path}': ${reason}`;
    const isFine = await each(run, run.args, failed, (path) => {
      const at = pathOf(run, path);
      if (run.files.stat(at, { follow: false }).kind !== "directory") throw new FileFault("ENOTDIR");
      run.files.remove(at);
    });
    return isFine ? 0 : 1;
  },

  async rm(run) {
    const { flags, operands } = parseOptions(run.args, { letters: "rRf" });
    if (!flags.has("f")) requireOperand(operands);
    const recursive = flags.has("r") || flags.has("R");
    let isFine = true;
    for (const path of operands) isFine = (await removeTree(run, pathOf(run, path), path, recursive, flags)) && isFine;
    return isFine ? 0 : 1;
  },

  async touch(run) {
    const { operands } = parseOptions(run.args, { letters: "amc" });
    requireOperand(operands);
    const cannotTouch = (path: string, reason: string) => `cannot touch '${path}': ${reason}`;
    const isFine = await each(run, operands, cannotTouch, (path) => {
      const at = pathOf(run, path);
      if (!run.files.isDirectory(at)) run.files.write(at, new Uint8Array(), { append: true });
    });
    return isFine ? 0 : 1;
  },

  async cp(run) {
    const { flags, operands } = parseOptions(run.args, { letters: "rRafp" });
    const recursive = ["r", "R", "a"].some((letter) => flags.has(letter));
    return await toDestination(run, operands, async (source, target, name) => {
      if (!recursive && run.files.stat(source).kind === "directory") {
        await complain(run, `-r not specified; omitting directory '${name}'`);
        return false;
      }
      return await copyTree(run, source, target, name);
    });
  },

  async mv(run) {
    const { operands } = parseOptions(run.args, { letters: "f" });
    return await toDestination(run, operands, async (source, target, name, targetName) => {
      try {
        run.files.move(source, target);
        return true;
      } catch (error) {
        if (!(error instanceof FileFault)) throw error;
        // Directories of the codebase, and other file systems: copied, then removed.
        if (error.errno === "EXDEV") {
          return (await copyTree(run, source, target, name)) && (await removeTree(run, source, name, true, new Set()));
        }
        await complain(run, `cannot move '${name}' to '${targetName}': ${error.message}`);
        return false;
      }
    });
  },
} as const satisfies Record<string, Program>;

function requireOperand(operands: readonly string[]): void {
  if (operands.length === 0) throw new Complaint("missing operand");
}

/** What is in a directory goes before it; what cannot go is told, and the rest goes all the same. */
async function removeTree(
  run: ProgramRun,
  path: string,
  name: string,
  recursive: boolean,
  flags: ReadonlySet<string>,
): Promise<boolean> {
  let isFine = true;
  const cannotRemove = (_path: string, reason: string) => `cannot remove '${name}': ${reason}`;
  const isRemoved = await each(run, [path], cannotRemove, async () => {
    try {
      const isDirectory = run.files.stat(path, { follow: false }).kind === "directory";
      if (isDirectory && !recursive) throw new FileFault("EISDIR");
      const entries = isDirectory ? run.files.list(path) : [];
      for (const entry of entries) {
        const below = `${name}/${nameOf(entry.path)}`;
        isFine = (await removeTree(run, entry.path, below, recursive, flags)) && isFine;
      }
      if (isFine) run.files.remove(path);
    } catch (error) {
      if (!(flags.has("f") && error instanceof FileFault && error.errno === "ENOENT")) throw error;
    }
  });
  return isRemoved && isFine;
}

/** Into the last operand if that is a directory, else onto it. */
async function toDestination(
  run: ProgramRun,
  operands: readonly string[],
  work: (source: string, target: string, name: string, targetName: string) => Promise<boolean>,
): Promise<number> {
  const destination = operands.at(-1);
  const names = operands.slice(0, -1);
  if (destination === undefined) throw new Complaint("missing file operand");
  if (names.length === 0) throw new Complaint(`missing destination file operand after '${destination}'`);
  const to = pathOf(run, destination);
  const isInto = run.files.isDirectory(to);
  if (names.length > 1 && !isInto) throw new Complaint(`target '${destination}': No such file or directory`);
  let isFine = true;
  const cannotStat = (name: string, reason: string) => `cannot stat '${name}': ${reason}`;
  const areThere = await each(run, names, cannotStat, async (name) => {
    const source = pathOf(run, name);
    run.files.stat(source, { follow: false });
    const target = isInto ? joined(to, nameOf(source)) : to;
    const targetName = isInto ? `${destination.replace(/\/$/, "")}/${nameOf(source)}` : destination;
    isFine = (await work(source, target, name, targetName)) && isFine;
  });
  return areThere && isFine ? 0 : 1;
}

async function copyTree(run: ProgramRun, source: string, target: string, name: string): Promise<boolean> {
  const { files } = run;
  const entry = files.stat(source);
  if (entry.kind !== "directory") {
    const cannotOpen = (_: string, reason: string) => `cannot open '${name}' for reading: ${reason}`;
    const cannotCreate = (_: string, reason: string) =>
      `cannot create regular file '${shortly(run, target)}': ${reason}`;
    let content: Uint8Array | undefined;
    await each(run, [source], cannotOpen, () => {
      content = files.read(source);
    });
    const found = content;
    if (found === undefined) return false;
    return await each(run, [target], cannotCreate, () => files.write(target, found));
  }
  const cannotMake = (_: string, reason: string) => `cannot create directory '${shortly(run, target)}': ${reason}`;
  if (!(await each(run, [target], cannotMake, () => files.makeDirectory(target, { recursive: true })))) return false;
  let isFine = true;
  for (const { path } of files.list(source)) {
    const below = nameOf(path);
    isFine = (await copyTree(run, path, joined(target, below), `${name}/${below}`)) && isFine;
  }
  return isFine;
}

/** As it would be typed. */
function shortly({ state }: ProgramRun, path: string): string {
  return path.startsWith(`${state.cwd}/`) ? path.slice(state.cwd.length + 1) : path;
}

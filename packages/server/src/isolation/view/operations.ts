import { Errno, syscalls } from "@agentfense/fuse";
import { closing, onlyRegular } from "../filesystem/descriptors.ts";
import { readDirectory } from "../filesystem/directory-reader.ts";
import { utf8Of } from "../filesystem/names.ts";
import type { NewAttributes, ViewStat } from "./api.ts";
import { attributesAt, setAttributes } from "./attributes.ts";
import { markTree } from "./marking.ts";
import { viewPath } from "./path.ts";
import { atPath, type MountedView, type ViewPlace } from "./resolution.ts";

const { AT_REMOVEDIR, FileType, Open, Stat } = syscalls;

// What the view's thread does, one row per request. Each answers with a value or a negated errno; calls that take long are
// generators, which give others their turn at each step.

interface At extends MountedView {
  readonly names: readonly string[];
}

interface Walked {
  readonly names: readonly string[];
  readonly stat: ViewStat;
}

const MAX_LISTED = 100_000;
const LIST_FULL = -Errno.E2BIG;
const NEW_DIRECTORY = 0o755;
const NEW_FILE = 0o644;

export const OPERATIONS = {
  /** A descriptor to read from. */
  openToRead: (at: At): number =>
    atPath(at, at.names, { followLast: true }, (place) => notRegular(place) ?? openRegular(place, Open.RDONLY)),

  openToWrite: (
    at: At & {
      readonly append: boolean;
      readonly mode: number | undefined;
      readonly attributes: NewAttributes | undefined;
    },
  ): number =>
    atPath(at, at.names, { followLast: true }, (place) => {
      const wrong = place.stat === undefined ? undefined : notRegular(place);
      if (wrong !== undefined) return wrong;
      const how = at.append ? Open.APPEND : Open.TRUNC;
      const fd = openRegular(place, Open.WRONLY | Open.CREAT | how, at.mode ?? NEW_FILE);
      if (fd >= 0 && at.mode !== undefined) syscalls.fchmod(fd, at.mode);
      if (fd < 0 || at.attributes === undefined) return fd;
      const code = setAttributes(fd, at.attributes);
      if (code < 0) syscalls.close(fd);
      return code < 0 ? code : fd;
    }),

  read: ({ fd, offset, length }: { readonly fd: number; readonly offset: number; readonly length: number }) => {
    const chunk = new Uint8Array(length);
    const filled = syscalls.pread(fd, chunk, length, offset);
    return filled < 0 ? filled : chunk.subarray(0, filled);
  },

  write: ({ fd, data }: { readonly fd: number; readonly data: Uint8Array }): number => {
    for (let done = 0; done < data.length; ) {
      const written = syscalls.write(fd, data.subarray(done), data.length - done);
      if (written < 0 && -written !== Errno.EINTR) return written;
      done += Math.max(0, written);
    }
    return data.length;
  },

  close: ({ fd }: { readonly fd: number }): number => syscalls.close(fd),

  stat: (at: At & { readonly attributes?: boolean }): ViewStat | number =>
    atPath(at, at.names, { followLast: false }, (place) =>
      place.stat === undefined ? -Errno.ENOENT : describe(place, at.names, at.attributes),
    ),

  *list(at: At & { readonly recursive: boolean; readonly attributes?: boolean }): Generator<void, ViewStat[] | number> {
    const first = entriesOf(at, at.names, { followLast: true });
    if (typeof first === "number") return first;
    const listed: ViewStat[] = [];
    const queue: Walked[] = first;
    for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
      listed.push(next.stat);
      if (listed.length > MAX_LISTED) return LIST_FULL;
      if (!at.recursive || next.stat.kind !== "directory") continue;
      yield;
      const below = entriesOf(at, next.names, { followLast: false });
      // Gone meanwhile, or shut: then it shows nothing.
      if (typeof below !== "number") queue.push(...below);
    }
    return listed.sort((a, b) => (a.path < b.path ? -1 : 1));
  },

  makeDirectory: (at: At & { readonly recursive: boolean }): ViewStat | number => {
    const depths = at.recursive ? at.names.map((_, index) => index + 1) : [at.names.length];
    for (const depth of depths) {
      const code = atPath(at, at.names.slice(0, depth), { followLast: at.recursive }, (place) => {
        if (place.stat === undefined) return syscalls.mkdirat(place.directory, place.name, NEW_DIRECTORY);
        return at.recursive && place.stat.type === FileType.DIRECTORY ? 0 : -Errno.EEXIST;
      });
      if (code < 0) return code;
    }
    return OPERATIONS.stat(at);
  },

  *remove(at: At & { readonly recursive: boolean }): Generator<void, number> {
    if (at.names.length === 0) return -Errno.EBUSY;
    const queue: (readonly string[])[] = [at.names];
    for (let names = queue.at(-1); names !== undefined; names = queue.at(-1)) {
      const code = removeOne({ ...at, names });
      if (code === -Errno.ENOTEMPTY && at.recursive) {
        const below = entriesOf(at, names, { followLast: false });
        if (typeof below === "number") return below;
        // What is left is not ours to see: nothing more can be done.
        if (below.length === 0) return code;
        queue.push(...below.map((entry) => entry.names));
      } else {
        if (code < 0 && !(code === -Errno.ENOENT && queue.length > 1)) return code;
        queue.pop();
      }
      yield;
    }
    return 0;
  },

  move: (at: At & { readonly to: readonly string[] }): ViewStat | number => {
    if (at.names.length === 0 || at.to.length === 0) return -Errno.EBUSY;
    const code = atPath(at, at.names, { followLast: false }, (from) =>
      atPath(at, at.to, { followLast: false }, (to) =>
        syscalls.renameat2(from.directory, from.name, to.directory, to.name),
      ),
    );
    return code < 0 ? code : OPERATIONS.stat({ ...at, names: at.to });
  },

  mark: markTree,

  /** Marks that the kernel took away itself are no error. */
  unmark: ({ inotify, marks }: { readonly inotify: number; readonly marks: readonly number[] }): number => {
    for (const mark of marks) syscalls.inotifyRemoveWatch(inotify, mark);
    return 0;
  },
} as const;

export type OperationName = keyof typeof OPERATIONS;

function notRegular({ stat }: ViewPlace): number | undefined {
  if (stat === undefined) return -Errno.ENOENT;
  if (stat.type === FileType.REGULAR) return undefined;
  return stat.type === FileType.DIRECTORY ? -Errno.EISDIR : -Errno.EINVAL;
}

// Checked before and after: what became a fifo in between must neither block nor be written to.
function openRegular({ directory, name }: ViewPlace, flags: number, mode = 0): number {
  return onlyRegular(syscalls.openat(directory, name, flags | Open.NONBLOCK, mode), Errno.EINVAL);
}

function removeOne(at: At): number {
  return atPath(at, at.names, { followLast: false }, ({ directory, name, stat }) => {
    if (stat === undefined) return -Errno.ENOENT;
    return syscalls.unlinkat(directory, name, stat.type === FileType.DIRECTORY ? AT_REMOVEDIR : 0);
  });
}

function entriesOf(
  at: At & { readonly attributes?: boolean },
  names: readonly string[],
  options: { followLast: boolean },
): Walked[] | number {
  return atPath(at, names, options, (place) => {
    if (place.stat === undefined) return -Errno.ENOENT;
    const directory = syscalls.openat(place.directory, place.name, Open.RDONLY | Open.DIRECTORY);
    if (directory < 0) return directory;
    using _open = closing(directory);
    const found: string[] = [];
    const code = readDirectory(directory, (name) => found.push(name));
    if (code < 0) return code;
    const entries: Walked[] = [];
    for (const name of found) {
      const text = utf8Of(name);
      if (text === undefined) continue;
      const stat = new Stat();
      if (syscalls.statat(directory, name, stat) < 0) continue;
      const path = [...names, text];
      entries.push({ names: path, stat: describe({ directory, name, stat }, path, at.attributes) });
    }
    return entries;
  });
}

const KINDS: Readonly<Record<number, ViewStat["kind"]>> = {
  [FileType.REGULAR]: "file",
  [FileType.DIRECTORY]: "directory",
  [FileType.SYMLINK]: "symlink",
};

function describe(
  { directory, name, stat = new Stat() }: Omit<ViewPlace, "way">,
  names: readonly string[],
  withAttributes = false,
): ViewStat {
  const kind = KINDS[stat.type] ?? "other";
  return {
    path: viewPath(names),
    kind,
    size: kind === "directory" ? 0 : stat.size,
    mode: stat.mode & 0o7777,
    target: kind === "symlink" ? linkTarget(directory, name) : "",
    modifiedAtMs: stat.mtime * 1000 + Math.floor(stat.mtimeNs / 1_000_000),
    ...(withAttributes ? { attributes: attributesAt(directory, name) } : {}),
  };
}

function linkTarget(directory: number, name: string): string {
  const bytes = Buffer.alloc(4096);
  const length = syscalls.readlinkat(directory, name, bytes);
  return length < 0 ? "" : bytes.toString("utf8", 0, length);
}

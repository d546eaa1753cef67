import { Errno, syscalls } from "@agentfense/fuse";
import { namesIn } from "@agentfense/permission";
import { bytesOf } from "../filesystem/names.ts";

const { FileType, Open, Stat } = syscalls;

/** As many as the kernel follows. */
const MAX_LINKS = 40;

export interface MountedView {
  readonly mountPoint: string;
  /** A directory of the host's that the mount is in. */
  readonly outside: string;
  /** Where the workspace is inside: an absolute link that begins with it stays within. */
  readonly target: string;
}

/** A name in a directory; what has no name of its own is "." in itself. */
export interface ViewPlace {
  readonly directory: number;
  readonly name: string;
  /** The names from the root to the directory, links resolved. */
  readonly way: readonly string[];
  /** What stands there; undefined when nothing does. */
  readonly stat: syscalls.Stat | undefined;
}

/**
 * Runs with the place a path leads to, held by descriptors, or returns a negated errno. Links are followed here, name by
 * name: no lookup of the kernel's ever starts outside the workspace's root or leaves it.
 */
export function atPath<T>(
  view: MountedView,
  names: readonly string[],
  options: { followLast: boolean },
  run: (place: ViewPlace) => T | number,
): T | number {
  const root = openRoot(view);
  if (root < 0) return root;
  const walk = new Walk(root, view.target);
  try {
    const place = walk.to(names, options.followLast);
    return typeof place === "number" ? place : run(place);
  } finally {
    walk.close();
  }
}

/** The mount's root. A mount point that nothing is mounted on is the host's directory, and is refused. */
function openRoot({ mountPoint, outside: around }: MountedView): number {
  const root = syscalls.open(bytesOf(mountPoint), Open.PATH | Open.DIRECTORY);
  if (root < 0) return root === -Errno.ENOENT ? -Errno.ENOTCONN : root;
  const [inside, outside] = [new Stat(), new Stat()];
  const above = syscalls.open(bytesOf(around), Open.PATH | Open.DIRECTORY);
  const known = above >= 0 && syscalls.fstat(root, inside) === 0 && syscalls.fstat(above, outside) === 0;
  if (above >= 0) syscalls.close(above);
  const isMounted = known && (inside.devMajor !== outside.devMajor || inside.devMinor !== outside.devMinor);
  if (isMounted) return root;
  syscalls.close(root);
  return -Errno.ENOTCONN;
}

class Walk {
  /** The directories from the root to where the walk is. */
  readonly #directories: number[];
  /** The names of those below the root. */
  readonly #way: string[] = [];
  readonly #target: string;

  constructor(root: number, target: string) {
    this.#directories = [root];
    this.#target = target;
  }

  to(names: readonly string[], followLast: boolean): ViewPlace | number {
    const left = names.map(bytesOf);
    for (let links = 0; ; ) {
      const name = left.shift();
      if (name === undefined) return this.#here(".");
      if (name === "..") {
        if (this.#directories.length === 1) return -Errno.EXDEV;
        this.#leave();
        continue;
      }
      const isLast = left.length === 0;
      const place = this.#here(name);
      if (typeof place === "number") return place;
      const { stat } = place;
      if (stat?.type === FileType.SYMLINK && (!isLast || followLast)) {
        links += 1;
        if (links > MAX_LINKS) return -Errno.ELOOP;
        const way = this.#followed(name);
        if (typeof way === "number") return way;
        left.unshift(...way);
        continue;
      }
      if (isLast) return place;
      if (stat === undefined) return -Errno.ENOENT;
      const next = syscalls.openat(this.#last, name, Open.PATH | Open.DIRECTORY);
      if (next < 0) return next;
      this.#directories.push(next);
      this.#way.push(name);
    }
  }

  close(): void {
    for (const fd of this.#directories) syscalls.close(fd);
  }

  #leave(): void {
    syscalls.close(this.#directories.pop()!);
    this.#way.pop();
  }

  get #last(): number {
    return this.#directories.at(-1)!;
  }

  #here(name: string): ViewPlace | number {
    const stat = new Stat();
    const code = syscalls.statat(this.#last, name, stat);
    if (code < 0 && -code !== Errno.ENOENT) return code;
    return { directory: this.#last, name, way: [...this.#way], stat: code < 0 ? undefined : stat };
  }

  /** The names a link leads along, from here; an absolute one from the root, if it leads into the workspace. */
  #followed(name: string): string[] | number {
    const bytes = Buffer.alloc(4096);
    const length = syscalls.readlinkat(this.#last, name, bytes);
    if (length < 0) return length;
    let way = bytes.toString("latin1", 0, length);
    if (way.startsWith("/")) {
      const target = bytesOf(this.#target);
      if (way !== target && !way.startsWith(`${target}/`)) return -Errno.EXDEV;
      way = way.slice(target.length);
      while (this.#directories.length > 1) this.#leave();
    }
    return namesIn(way);
  }
}

import { Attributes, syscalls } from "@agentfense/fuse";

const { FileType } = syscalls;
const SET_UID = 0o4000;
const SET_GID = 0o2000;
const GROUP_EXECUTE = 0o010;

/** What every entry has, whatever its kind. Names are byte strings throughout. */
export class Inode {
  readonly attributes = new Attributes();
  readonly xattrs = new Map<string, Buffer>();
  /** The id the kernel knows it by at present; 0 while it knows none. */
  nodeId = 0;

  constructor(ino: number, mode: number, owner: { readonly uid: number; readonly gid: number }) {
    this.attributes.ino = ino;
    this.attributes.mode = mode;
    this.attributes.uid = owner.uid;
    this.attributes.gid = owner.gid;
    const { seconds, nanoseconds } = now();
    this.setTime("atime", seconds, nanoseconds);
    this.setTime("mtime", seconds, nanoseconds);
    this.setTime("ctime", seconds, nanoseconds);
  }

  get type(): number {
    return this.attributes.mode & FileType.MASK;
  }

  setTime(which: "atime" | "mtime" | "ctime", seconds: number, nanoseconds: number): void {
    this.attributes[which] = seconds;
    this.attributes[`${which}Ns`] = nanoseconds;
  }

  /** The content changed (mtime and ctime), or only something about it (ctime). */
  touch(what: "content" | "metadata"): void {
    const { seconds, nanoseconds } = now();
    if (what === "content") this.setTime("mtime", seconds, nanoseconds);
    this.setTime("ctime", seconds, nanoseconds);
  }

  /** A change of content or owner takes the set-id bits away: we negotiated that the kernel leaves this to us. */
  dropPrivileges(): void {
    if (this.type !== FileType.REGULAR) return;
    const { mode } = this.attributes;
    this.attributes.mode = mode & ~SET_UID & ((mode & GROUP_EXECUTE) !== 0 ? ~SET_GID : ~0);
  }
}

export class Directory extends Inode {
  readonly entries = new Map<string, Inode>();
  parent: Directory = this;
}

export class Link extends Inode {
  readonly target: string;

  constructor(ino: number, target: string, owner: { readonly uid: number; readonly gid: number }) {
    super(ino, FileType.SYMLINK | 0o777, owner);
    this.target = target;
    this.attributes.size = target.length;
  }
}

/** A regular file. `content` may be longer than the file; what is behind the file's size is always zero. */
export class File extends Inode {
  content = Buffer.alloc(0);

  get size(): number {
    return this.attributes.size;
  }

  resize(size: number): void {
    if (size < this.size) this.content.fill(0, size, this.size);
    else if (size > this.content.length) {
      const larger = Buffer.alloc(Math.max(size, this.content.length * 2));
      this.content.copy(larger);
      this.content = larger;
    }
    this.attributes.size = size;
    this.attributes.blocks = Math.ceil(size / 512);
  }
}

function now(): { seconds: number; nanoseconds: number } {
  const milliseconds = Date.now();
  const seconds = Math.floor(milliseconds / 1000);
  return { seconds, nanoseconds: (milliseconds - seconds * 1000) * 1_000_000 };
}

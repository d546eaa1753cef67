import type { CallName } from "../posix/caller.ts";
import { LONG_NAME, NAMES } from "./lower-tree.ts";
import type { Random } from "./random.ts";

/** A path relative to the root of the tree, so that one step can be taken in two trees. */
export interface InTree {
  readonly path: string;
}

/** A descriptor kept open across steps, by the number of its slot. */
export interface InSlot {
  readonly slot: number;
}

export type Argument = InTree | InSlot | string | number;

/** One system call as data. `opens` keeps the descriptor it returns. */
export interface Step {
  readonly name: CallName;
  readonly args: readonly Argument[];
  readonly opens?: number;
}

/** Slots 0 to 5 stay open across steps; the last one belongs to a single operation. */
const KEPT_SLOTS = 6;
const TRANSIENT = KEPT_SLOTS;

const OPERATIONS = {
  create: 10,
  writeFile: 10,
  append: 8,
  truncate: 4,
  readFile: 6,
  mkdir: 9,
  rmdir: 7,
  unlink: 9,
  rename: 14,
  renameNoReplace: 4,
  renameExchange: 5,
  link: 7,
  symlink: 5,
  readlink: 2,
  fifo: 1,
  list: 6,
  stat: 8,
  lstat: 6,
  chmod: 4,
  chown: 2,
  utimens: 4,
  setxattr: 4,
  getxattr: 2,
  listxattr: 1,
  removexattr: 2,
  keepOpen: 8,
  readSlot: 6,
  writeSlot: 8,
  truncateSlot: 3,
  statSlot: 4,
  chmodSlot: 1,
  allocateSlot: 3,
  copySlot: 2,
  syncSlot: 1,
  closeSlot: 3,
};

/** Ways to find out what is there that change nothing, or next to nothing. */
const LOOKS = {
  resolveCached: 30,
  resolve: 14,
  access: 10,
  handle: 6,
  statfs: 2,
  listEntries: 14,
  watch: 6,
  events: 10,
  tmpfile: 5,
  linkSlot: 4,
  linkTarget: 3,
  socket: 2,
  lstatOdd: 16,
  renameOdd: 12,
  makeOdd: 6,
  removeOdd: 6,
};

interface SourceOptions {
  /** Names that operations make up paths from. */
  readonly names?: readonly string[];
  /** Look around as somebody does who wants to know what is hidden, with odd paths and rare calls. */
  readonly curious?: boolean;
}

/** Makes up operations. It remembers which paths succeeded lately, so that most operations find something. */
export class OperationSource {
  readonly #random: Random;
  readonly #known: string[];
  readonly #names: readonly string[];
  readonly #curious: boolean;

  constructor(random: Random, existing: readonly string[], options: SourceOptions = {}) {
    this.#random = random;
    this.#known = [...existing];
    this.#names = options.names ?? NAMES;
    this.#curious = options.curious ?? false;
  }

  /** The next operation, as the system calls it consists of. */
  next(): readonly Step[] {
    const random = this.#random;
    const path = () => this.#path();
    if (this.#curious && random.chance(45)) {
      return CURIOUS_MAKERS[random.weighted(LOOKS)](random, path, () => this.#oddPath());
    }
    return MAKERS[random.weighted(OPERATIONS)](random, path);
  }

  /** Tells which paths an operation that succeeded named. */
  succeeded(step: Step): void {
    for (const argument of step.args) {
      if (typeof argument === "object" && "path" in argument && argument.path !== "") this.#known.push(argument.path);
    }
    if (this.#known.length > 200) this.#known.splice(0, 100);
  }

  #path(): InTree {
    const random = this.#random;
    if (this.#known.length > 0 && random.chance(65)) {
      const known = random.pick(this.#known);
      return { path: random.chance(25) ? `${known}/${random.pick(this.#names)}` : known };
    }
    const path = Array.from({ length: random.between(1, 3) }, () => random.pick(this.#names)).join("/");
    return { path: random.chance(3) ? `${path}/` : path };
  }

  /** Another way to write a path, or to go on from one that may not be a directory, or may not be there. */
  #oddPath(): InTree {
    const random = this.#random;
    const { path } = this.#path();
    const other = this.#path().path;
    const name = random.pick(this.#names);
    return staying(
      random.pick([
        `${path}/`,
        `${path}//`,
        `${path}/.`,
        `${path}/..`,
        `${path}/../${name}`,
        `${path}/../${other}`,
        `${path}/${name}/..`,
        `${path}/${name}/../${name}`,
        `./${path}`,
        `${path}/${LONG_NAME}`,
        `${path}/${LONG_NAME}+`,
        `${path}/.wh.${name}`,
        `.wh.${path}`,
        `${path}/${other}`,
      ]),
    );
  }
}

/** The path, without the ".." that would lead above the top. No link of these trees leads upwards. */
function staying(path: string): InTree {
  let depth = 0;
  const parts = path.split("/").filter((part) => {
    if (part === ".." && depth === 0) return false;
    depth += part === ".." ? -1 : part === "" || part === "." ? 0 : 1;
    return true;
  });
  return { path: parts.join("/") };
}

type Maker = (random: Random, path: () => InTree) => readonly Step[];

const MODES = [0o600, 0o644, 0o755, 0o700, 0o444, 0o777, 0o1777];
const XATTRS = ["user.a", "user.b", "user.note"];
/** Moments of 2001, with nanoseconds that must survive. */
const times = (random: Random) =>
  random.pick(["now", "omit", "1000000000000000001", "1009843199999999999", `10000${random.below(10)}0000123456789`]);
const kept = (random: Random): InSlot => ({ slot: random.below(KEPT_SLOTS) });
const transient: InSlot = { slot: TRANSIENT };
const content = (random: Random) => random.text(random.pick([0, 1, 10, 500, 4096, 5000, 20_000]));
const offset = (random: Random) => random.pick([0, 0, 1, 100, 4096, 10_000, 300_000]);

/** O_NONBLOCK keeps the open of a FIFO from waiting for its other end. */
function within(path: InTree, flags: string, steps: readonly Step[]): readonly Step[] {
  return [
    { name: "open", args: [path, `${flags}|O_NONBLOCK`, 0o644], opens: TRANSIENT },
    ...steps,
    { name: "close", args: [transient] },
  ];
}

const MAKERS: Record<keyof typeof OPERATIONS, Maker> = {
  create: (random, path) => within(path(), random.pick(["O_WRONLY|O_CREAT|O_EXCL", "O_RDWR|O_CREAT"]), []),
  writeFile: (random, path) =>
    within(path(), random.pick(["O_WRONLY|O_CREAT", "O_WRONLY|O_CREAT|O_TRUNC", "O_RDWR"]), [
      { name: "pwrite", args: [transient, content(random), offset(random)] },
    ]),
  append: (random, path) =>
    within(path(), "O_WRONLY|O_APPEND", [{ name: "write", args: [transient, content(random)] }]),
  truncate: (random, path) => [{ name: "truncate", args: [path(), offset(random)] }],
  readFile: (_random, path) => within(path(), "O_RDONLY", [{ name: "pread", args: [transient, 400_000, 0] }]),
  mkdir: (random, path) => [{ name: "mkdir", args: [path(), random.pick(MODES)] }],
  rmdir: (_random, path) => [{ name: "rmdir", args: [path()] }],
  unlink: (_random, path) => [{ name: "unlink", args: [path()] }],
  rename: (_random, path) => [{ name: "rename", args: [path(), path()] }],
  renameNoReplace: (_random, path) => [{ name: "rename2", args: [path(), path(), "NOREPLACE"] }],
  renameExchange: (_random, path) => [{ name: "rename2", args: [path(), path(), "EXCHANGE"] }],
  link: (_random, path) => [{ name: "link", args: [path(), path()] }],
  symlink: (random, path) => [
    { name: "symlink", args: [random.pick(["a", "b/c", "d", "nowhere", "a/b/c/d"]), path()] },
  ],
  readlink: (_random, path) => [{ name: "readlink", args: [path()] }],
  fifo: (_random, path) => [{ name: "mkfifo", args: [path(), 0o640] }],
  list: (_random, path) => [{ name: "listdir", args: [path()] }],
  stat: (_random, path) => [{ name: "stat", args: [path()] }],
  lstat: (_random, path) => [{ name: "lstat", args: [path()] }],
  chmod: (random, path) => [{ name: "chmod", args: [path(), random.pick(MODES)] }],
  chown: (random, path) => [{ name: "lchown", args: [path(), random.pick([0, 1000]), random.pick([0, 1000])] }],
  utimens: (random, path) => {
    const target = path();
    return [
      { name: "utimens", args: [target, times(random), times(random), 0] },
      { name: "lstat", args: [target] },
    ];
  },
  setxattr: (random, path) => [
    { name: "setxattr", args: [path(), random.pick(XATTRS), random.text(random.pick([0, 5, 300]))] },
  ],
  getxattr: (random, path) => [{ name: "getxattr", args: [path(), random.pick(XATTRS)] }],
  listxattr: (_random, path) => [{ name: "listxattr", args: [path()] }],
  removexattr: (random, path) => [{ name: "removexattr", args: [path(), random.pick(XATTRS)] }],
  keepOpen: (random, path) => {
    const slot = kept(random);
    const flags = random.pick([
      "O_RDONLY",
      "O_RDWR",
      "O_RDWR|O_CREAT",
      "O_RDWR|O_APPEND",
      "O_WRONLY|O_TRUNC",
      "O_RDONLY|O_DIRECTORY",
      "O_RDONLY|O_NOFOLLOW",
    ]);
    return [
      { name: "close", args: [slot] },
      { name: "open", args: [path(), `${flags}|O_NONBLOCK`, 0o600], opens: slot.slot },
    ];
  },
  readSlot: (random) => [{ name: "pread", args: [kept(random), 50_000, offset(random)] }],
  writeSlot: (random) => [{ name: "pwrite", args: [kept(random), content(random), offset(random)] }],
  truncateSlot: (random) => [{ name: "ftruncate", args: [kept(random), offset(random)] }],
  statSlot: (random) => [{ name: "fstat", args: [kept(random)] }],
  chmodSlot: (random) => [{ name: "fchmod", args: [kept(random), random.pick(MODES)] }],
  allocateSlot: (random) => [
    {
      name: "fallocate",
      args: [
        kept(random),
        random.pick(["", "KEEP_SIZE", "PUNCH_HOLE|KEEP_SIZE", "ZERO_RANGE"]),
        random.pick([0, 4096, 10_000]),
        random.pick([1, 4096, 30_000]),
      ],
    },
  ],
  copySlot: (random) => [
    { name: "copyFileRange", args: [kept(random), kept(random), 5000, offset(random), offset(random)] },
  ],
  syncSlot: (random) => [{ name: "fsync", args: [kept(random)] }],
  closeSlot: (random) => [{ name: "close", args: [kept(random)] }],
};

type CuriousMaker = (random: Random, path: () => InTree, oddPath: () => InTree) => readonly Step[];

const TOP: InTree = { path: "" };
const FLAGS = ["O_PATH", "O_PATH|O_NOFOLLOW", "O_PATH|O_DIRECTORY", "O_RDONLY|O_NONBLOCK", "O_RDWR|O_NONBLOCK"];
const RESOLUTIONS = ["BENEATH", "NO_SYMLINKS", "IN_ROOT", "NO_XDEV", "BENEATH|NO_SYMLINKS", "NO_MAGICLINKS"];
const AT_HANDLE_FID = 0x200;
const AT_SYMLINK_FOLLOW = 0x400;
const S_IFSOCK = 0o140000;
const either = (random: Random, path: () => InTree, oddPath: () => InTree) => (random.chance(60) ? path() : oddPath());

/** What the kernel remembers of a path, asked before and after something that may change its memory. */
function cached(random: Random, path: InTree, between: readonly Step[]): readonly Step[] {
  const ask: Step = { name: "resolve", args: [TOP, path.path, random.pick(FLAGS), "CACHED"] };
  return [ask, ...between, ask];
}

const CURIOUS_MAKERS: Record<keyof typeof LOOKS, CuriousMaker> = {
  resolveCached: (random, path, oddPath) => {
    const asked = either(random, path, oddPath);
    const parent = { path: asked.path.includes("/") ? asked.path.replace(/\/[^/]*$/, "") : "" };
    return cached(
      random,
      asked,
      random.pick<readonly Step[]>([
        [],
        [{ name: "lstat", args: [asked] }],
        [{ name: "listEntries", args: [parent, 4096] }],
        [{ name: "mkdir", args: [asked, 0o755] }],
        [{ name: "unlink", args: [asked] }],
        [{ name: "rmdir", args: [asked] }],
        [{ name: "rename", args: [asked, path()] }],
        [{ name: "rename", args: [path(), asked] }],
        [{ name: "rename2", args: [path(), asked, "EXCHANGE"] }],
        [{ name: "link", args: [path(), asked] }],
        [{ name: "chmod", args: [parent, random.pick(MODES)] }],
      ]),
    );
  },
  resolve: (random, path, oddPath) => [
    {
      name: "resolve",
      args: [TOP, either(random, path, oddPath).path, random.pick(FLAGS), random.pick(RESOLUTIONS)],
    },
  ],
  access: (random, path, oddPath) => [
    { name: "access", args: [either(random, path, oddPath), random.pick([0, 1, 2, 4, 6, 7])] },
  ],
  handle: (random, path, oddPath) => [
    { name: "handle", args: [either(random, path, oddPath), random.pick([0, AT_HANDLE_FID, AT_SYMLINK_FOLLOW])] },
  ],
  statfs: (_random, path) => [{ name: "statfs", args: [path()] }],
  listEntries: (random, path) => [{ name: "listEntries", args: [path(), random.pick([280, 600, 4096, 32_768])] }],
  watch: (random, path, oddPath) => [{ name: "watch", args: [either(random, path, oddPath)] }],
  events: () => [{ name: "events", args: [] }],
  tmpfile: (random, path) => [
    { name: "open", args: [path(), random.pick(["O_TMPFILE|O_RDWR", "O_TMPFILE|O_WRONLY"]), 0o600], opens: 0 },
  ],
  linkSlot: (random, path) => [{ name: "linkDescriptor", args: [kept(random), path()] }],
  linkTarget: (_random, path, oddPath) => [{ name: "link", args: [oddPath(), path(), 1] }],
  socket: (random, path) => [{ name: "mknod", args: [path(), random.pick([S_IFSOCK, 0]) | 0o644, 0, 0] }],
  lstatOdd: (_random, _path, oddPath) => [{ name: "lstat", args: [oddPath()] }],
  renameOdd: (random, path, oddPath) => {
    const [source, target] = random.chance(50) ? [oddPath(), path()] : [path(), oddPath()];
    return random.chance(70)
      ? [{ name: "rename", args: [source, target] }]
      : [{ name: "rename2", args: [source, target, random.pick(["NOREPLACE", "EXCHANGE", "WHITEOUT"])] }];
  },
  makeOdd: (random, _path, oddPath) =>
    random.chance(50)
      ? [{ name: "mkdir", args: [oddPath(), 0o755] }]
      : within(
          oddPath(),
          random.pick(["O_WRONLY|O_CREAT|O_EXCL", "O_RDWR|O_CREAT", "O_RDONLY|O_CREAT|O_DIRECTORY"]),
          [],
        ),
  removeOdd: (random, _path, oddPath) => [{ name: random.pick(["unlink", "rmdir"]), args: [oddPath()] }],
};

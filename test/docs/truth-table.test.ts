import type { Rule } from "@agentfense/permission";
import { expect, test } from "vitest";
import { LEVELS, OPERATIONS, type OperationId, type TableLevel } from "../../scripts/docs/truth-table.ts";
import { describeAttack } from "../support/arena.ts";
import { O, OK } from "../support/constants.ts";
import type { Call, Probe } from "../support/probe.ts";
import { file, link, type Tree } from "../support/tree.ts";

/** A path in the operation's own directory. */
type At = (name: string) => string;

/** The call whose result the table states. `level` is how the names of that level begin. */
const PERFORM: Readonly<Record<Exclude<OperationId, "list">, (at: At, level: TableLevel) => Call>> = {
  stat: (at, level) => ["fstatat", at(`${level}.txt`)],
  readDirectory: (at, level) => ["list", at(`${level}.dir`)],
  enter: (at, level) => ["tryChdir", at(`${level}.dir`)],
  readLink: (at, level) => ["readlinkat", at(`${level}.link`)],
  open: (at, level) => ["tryOpen", at(`${level}.txt`), O.RDONLY],
  mayRead: (at, level) => ["faccessat", at(`${level}.txt`), OK.R],
  execute: (at, level) => ["run", at(`${level}.sh`), []],
  getAttribute: (at, level) => ["getxattr", at(`${level}.txt`), "user.absent"],
  openToWrite: (at, level) => ["tryOpen", at(`${level}.txt`), O.WRONLY],
  mayWrite: (at, level) => ["faccessat", at(`${level}.txt`), OK.W],
  truncate: (at, level) => ["truncate", at(`${level}.txt`), 0],
  changeMode: (at, level) => ["fchmodat", at(`${level}.txt`), 0o600],
  changeTimes: (at, level) => ["utimensat", at(`${level}.txt`), "now"],
  setAttribute: (at, level) => ["setxattr", at(`${level}.txt`), "user.new", "value"],
  remove: (at, level) => ["unlinkat", at(`${level}.txt`)],
  removeDirectory: (at, level) => ["rmdir", at(`${level}.empty`)],
  moveAway: (at, level) => ["renameat2", at(`${level}.txt`), at("moved")],
  linkFrom: (at, level) => ["linkat", at(`${level}.txt`), at("linked")],
  moveDirectory: (at, level) => ["renameat2", at(`${level}.dir`), at("moved")],
  create: (at, level) => ["tryOpen", at(`${level}.new`), O.WRONLY | O.CREAT],
  makeDirectory: (at, level) => ["mkdirat", at(`${level}.new`)],
  makeLink: (at, level) => ["symlinkat", "anywhere", at(`${level}.new`)],
  makePipe: (at, level) => ["mknodat", at(`${level}.new`), 0o010644],
  linkTo: (at, level) => ["linkat", at(`own-${level}`), at(`${level}.new`)],
  moveHere: (at, level) => ["renameat2", at(`own-${level}`), at(`${level}.new`)],
  replace: (at, level) => ["renameat2", at(`own-${level}`), at(`${level}.txt`)],
};

const TEXT = "#!/bin/sh\n";

const RULES: readonly Rule[] = [
  { pattern: "**/*", permission: "write" },
  ...LEVELS.map((level) => ({ pattern: `**/${level}.*/**`, permission: level, priority: 1 })),
];

function entriesOf(level: TableLevel): Tree {
  return {
    [`${level}.txt`]: TEXT,
    [`${level}.sh`]: file({ content: TEXT, mode: 0o755 }),
    [`${level}.link`]: link("anywhere"),
    [`${level}.dir`]: { inside: TEXT },
    [`${level}.empty`]: {},
    [`own-${level}`]: TEXT,
  };
}

/** A directory for each operation, so that none meets what another left. */
const CODEBASE: Tree = Object.fromEntries(
  Object.keys(OPERATIONS).map((id) => [id, Object.assign({}, ...LEVELS.map(entriesOf)) as Tree]),
);

async function outcome(probe: Probe, id: OperationId, at: At, level: TableLevel): Promise<string> {
  if (id === "list") return (await probe.names(at("."))).includes(`${level}.txt`) ? "ok" : "absent";
  const [errno] = await probe.errnos([PERFORM[id](at, level)]);
  // The attribute is not there, but its absence may be known.
  return errno === "OK" || (id === "getAttribute" && errno === "ENODATA") ? "ok" : errno!;
}

describeAttack("the truth table of docs/permissions.md", (arena) => {
  test("every level answers every operation as the table says", async () => {
    const workspace = await arena.open({ lower: CODEBASE, rules: RULES });
    const ids = Object.keys(OPERATIONS) as OperationId[];
    const found: Record<string, Record<string, string>> = {};
    for (const id of ids) {
      const row: Record<string, string> = {};
      for (const level of LEVELS) {
        row[level] = await outcome(arena.probe, id, (name) => workspace.at(`/${id}/${name}`), level);
      }
      found[id] = row;
    }
    expect(found).toEqual(Object.fromEntries(ids.map((id) => [id, OPERATIONS[id].results])));
  });
});

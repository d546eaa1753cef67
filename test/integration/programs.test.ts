import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Caller, type Listing, startCaller } from "../conformance/posix/caller.ts";
import { EVERYTHING_WRITABLE } from "../conformance/posix/mounted.ts";
import { file, link, type Tree } from "../support/tree.ts";
import { openWorkspace, type TestWorkspace } from "../support/workspace.ts";
import { sh, shSync } from "./program.ts";

const CODEBASE: Tree = {
  "c-program": {
    Makefile:
      "OBJS = main.o one.o two.o three.o\nCFLAGS = -O0\nprogram: $(OBJS)\n\t$(CC) -o $@ $(OBJS)\nclean:\n\trm -f $(OBJS) program\n",
    "main.c":
      '#include <stdio.h>\nint one(void), two(void), three(void);\nint main(void) { printf("%d\\n", one() + two() + three()); return 0; }\n',
    "one.c": "int one(void) { return 1; }\n",
    "two.c": "int two(void) { return 20; }\n",
    "three.c": "int three(void) { return 300; }\n",
  },
  "python-package": {
    "__init__.py": "",
    "one.py": "VALUE = 1\n",
    sub: { "__init__.py": "", "two.py": "from ..one import VALUE\nRESULT = VALUE + 1\n" },
  },
  "node-modules": {
    "main.js": 'const left = require("left"); console.log(left("x", 3), require("./lib/right.json").value);\n',
    lib: { "right.json": '{ "value": 42 }' },
    node_modules: {
      left: {
        "package.json": '{ "name": "left", "main": "index.js" }',
        "index.js": 'module.exports = (text, width) => text.padStart(width, "-");\n',
      },
    },
  },
  tree: {
    "README.md": file({ content: "# read me\n", mtime: 1_234_567_890 }),
    bin: { tool: file({ content: "#!/bin/sh\necho tool\n", mode: 0o755, mtime: 1_200_000_000 }) },
    deep: { er: { still: { file: "deep down", link: link("../../../README.md") } } },
    many: Object.fromEntries(
      Array.from({ length: 200 }, (_, index) => [`file${index}`, `content ${index}\n`.repeat(index)]),
    ),
    empty: {},
  },
  document: file({ content: "first draft\n", mode: 0o640 }),
  log: "",
};

/**
 * Real programs at work. Each scenario runs on the mount and in a plain copy of the same codebase, and both must come to
 * the same result.
 */
const SCENARIOS: Record<string, (at: string, fs: Caller) => Promise<unknown>> = {
  "git init, add, commit, branch, merge, gc, checkout and status": async (at) => {
    const log = await sh(
      `${at}/tree`,
      `
      git init -q -b main . && git add -A && git commit -q -m "the codebase"
      git checkout -q -b feature && echo more >> README.md && git rm -q many/file7 && git mv bin/tool bin/renamed && git commit -q -am "a feature"
      git checkout -q main && echo other > other && git add other && git commit -q -m "meanwhile"
      git merge -q --no-edit feature && git gc -q --prune=now && git fsck --strict 2>/dev/null
      git stash list; git status --porcelain; git log --format=%H; git checkout -q HEAD~1; git checkout -q main; git diff --stat feature`,
    );
    await sh(`${at}/tree`, "rm -rf .git && git -C / version >/dev/null");
    return log;
  },
  "git clone of a repository of the codebase, by hard links": async (at) =>
    sh(
      at,
      `
      git clone -q repository clone 2>&1; cd clone; git log --format=%H; git status --porcelain; echo new > new; git add new; git commit -q -m new
      git push -q origin HEAD:refs/heads/pushed 2>&1; git -C ../repository branch --list; git -C ../repository fsck 2>/dev/null`,
    ),
  "git status of a repository of the codebase is clean and stays so": async (at) =>
    sh(
      at,
      "cd checkout; git status --porcelain; git diff --stat; touch one; git status --porcelain; git log --oneline | wc -l",
    ),
  "SQLite in WAL mode with two writers": (at) => twoWriters(at, "wal"),
  "SQLite with a rollback journal and two writers": (at) => twoWriters(at, "delete"),
  "npm ci from a tarball": async (at) =>
    sh(
      at,
      `
      export HOME=$PWD/npm-home npm_config_update_notifier=false; mkdir "$HOME"
      cd npm-project && npm ci --offline --no-audit --no-fund --ignore-scripts >/dev/null
      node -e 'console.log(require("dependency"))'; find node_modules -type f | sort; ls -l node_modules/.bin | wc -l; npm ls --offline >/dev/null`,
    ),
  "tar out and in again": async (at, fs) => {
    await sh(at, "tar -cf archive.tar tree && mkdir untarred && tar -xpf archive.tar -C untarred");
    return withoutTimesOfDirectories(await fs.listing(`${at}/untarred`, "0"));
  },
  "rsync -a within the mount": async (at, fs) => {
    await sh(at, 'rsync -a tree/ synced/ && test -z "$(rsync -aci --delete tree/ synced/)"');
    return fs.listing(`${at}/synced`, "1700000000000000000");
  },
  "cp -a keeps everything": async (at, fs) => {
    await sh(at, "cp -a tree copied && diff -r tree copied");
    expect(await fs.listing(`${at}/copied`, "1700000000000000000")).toEqual(
      await fs.listing(`${at}/tree`, "1700000000000000000"),
    );
  },
  "mv of a directory of the codebase, and back": async (at, fs) => {
    await sh(
      at,
      "mv tree/deep moved && test ! -e tree/deep && mv moved/er renamed && mv renamed moved/er && mv moved tree/deep",
    );
    return fs.listing(`${at}/tree/deep`, "1700000000000000000");
  },
  "make -j4 with gcc, twice": async (at) =>
    sh(
      `${at}/c-program`,
      "make -s -j4 && ./program && make -q && touch one.c && ! make -q && make -s -j4 && make -s clean && ls",
    ),
  "python: compileall, import, venv": async (at) =>
    sh(
      at,
      `
      python3 -m compileall -q python-package && find python-package -name '*.pyc' | wc -l
      python3 -c 'import importlib; print(importlib.import_module("python-package.sub.two").RESULT)'
      python3 -m venv --without-pip venv && venv/bin/python -c 'import sys; print(sys.prefix.endswith("/venv"))'`,
    ),
  "node: require of files, packages and JSON": (at) => sh(`${at}/node-modules`, "node main.js"),
  "an editor that saves by rename, with backup and swap file": async (at, fs) => {
    await sh(
      at,
      `
      python3 - <<'END'
import os, shutil
for draft in range(20):
    shutil.copy2("document", "document~")
    fd = os.open(".document.swp", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(fd, b"swap"); os.fsync(fd)
    with open("document.new", "w") as new:
        new.write(f"draft {draft}\\n" * draft); new.flush(); os.fsync(new.fileno())
    shutil.copymode("document", "document.new")
    os.rename("document.new", "document")
    directory = os.open(".", os.O_RDONLY); os.fsync(directory); os.close(directory)
    os.close(fd); os.unlink(".document.swp")
END`,
    );
    const { document, "document~": backup } = await fs.listing(at);
    return { document, backup };
  },
  "8 shells that append to one file": async (at) => {
    await sh(at, 'for p in 1 2 3 4 5 6 7 8; do (for n in $(seq 100); do echo "$p $n" >> log; done) & done; wait');
    return sh(at, "sort log | uniq -d; wc -l < log; cut -d' ' -f1 log | sort | uniq -c");
  },
  "find, grep and wc see the same": (at) =>
    sh(at, "find tree -type f | sort; grep -rc content tree | sort; wc -c $(find tree -type f | sort)"),
  "rm -rf of everything": async (at, fs) => {
    await sh(at, "rm -rf ./* ./.[!.]*");
    return fs.listdir(at);
  },
};

describe("real programs work on the mount as in a plain directory", () => {
  let workspace: TestWorkspace | undefined;
  let fs: Caller | undefined;
  let plain = "";

  beforeAll(async () => {
    workspace = await openWorkspace({ lower: { 0: CODEBASE }, rules: EVERYTHING_WRITABLE });
    const lower = workspace.lower;
    workspace.onHost(prepareOnHost);
    await workspace.remount();
    fs = await startCaller();
    plain = mkdtempSync(join(tmpdir(), "agentfense-plain-"));
    await sh(plain, `cp -a "${lower}" codebase`);
  });

  afterAll(async () => {
    await fs?.[Symbol.asyncDispose]();
    await workspace?.[Symbol.asyncDispose]();
    rmSync(plain, { recursive: true, force: true });
  });

  for (const [index, [title, scenario]] of Object.entries(SCENARIOS).entries()) {
    test(title, async () => {
      if (workspace === undefined || fs === undefined) throw new Error("not mounted");
      const expected = await scenario(join(plain, "codebase", String(index)), fs);
      expect(await scenario(join(workspace.mountPoint, String(index)), fs)).toEqual(expected);
    });
  }
});

/** Repositories and a tarball, made by the programs that make such things; then a copy of all for each scenario. */
function prepareOnHost(lower: string): void {
  shSync(
    `${lower}/0`,
    `
    git init -q -b main checkout && cd checkout && for n in one two three; do echo $n > $n; git add $n; git commit -q -m $n; done
    cd .. && git clone -q --bare checkout repository && git -C repository config receive.autogc false
    mkdir -p packed/package/bin npm-project
    echo '{ "name": "dependency", "version": "1.0.0", "main": "index.js", "bin": { "dep": "bin/dep.js" } }' > packed/package/package.json
    echo 'module.exports = "from the tarball";' > packed/package/index.js
    printf '#!/usr/bin/env node\n' > packed/package/bin/dep.js
    tar -C packed -czf npm-project/dependency-1.0.0.tgz package && rm -r packed
    cd npm-project
    echo '{ "name": "project", "version": "1.0.0", "dependencies": { "dependency": "file:dependency-1.0.0.tgz" } }' > package.json
    HOME=$PWD/home npm install --package-lock-only --offline --no-audit --no-fund >/dev/null; rm -rf home
    cd ../..; for n in $(seq ${Object.keys(SCENARIOS).length - 1}); do cp -a 0 $n; done`,
    { env: { npm_config_update_notifier: "false" } },
  );
}

async function twoWriters(at: string, journal: "wal" | "delete"): Promise<string> {
  const script = `
import sqlite3, sys
db = sqlite3.connect("${journal}.db", timeout=30, isolation_level=None)
for n in range(100):
    db.execute("begin immediate")
    db.execute("insert into t values (?, ?)", (sys.argv[1], n))
    db.execute("commit")`;
  return sh(
    at,
    `
    python3 -c 'import sqlite3; db = sqlite3.connect("${journal}.db"); print(db.execute("pragma journal_mode=${journal}").fetchone()); db.execute("create table t (who, n)")'
    cat > writer.py <<'END'
${script}
END
    python3 writer.py a & first=$!; python3 writer.py b & second=$!; wait $first; wait $second
    python3 -c 'import sqlite3; db = sqlite3.connect("${journal}.db"); print(db.execute("select who, count(*), sum(n) from t group by who").fetchall(), db.execute("pragma integrity_check").fetchall())'
    rm writer.py; ls ${journal}.db*`,
  );
}

/** tar sets the times of directories last; they are compared for files only where programs differ in that. */
function withoutTimesOfDirectories(listing: Listing): unknown {
  return Object.fromEntries(
    Object.entries(listing).map(([path, { mtime, ...entry }]) => [
      path,
      entry.type === "directory" ? entry : { ...entry, mtime },
    ]),
  );
}

import { describe, expect, test } from "vitest";
import { type Opened, openMock } from "./support.ts";

/** A command, and what it comes to. */
interface Row {
  readonly command: string;
  readonly stdout?: string;
  readonly stderr?: string;
  readonly exitCode?: number;
}

const ROWS: Readonly<Record<string, readonly Row[]>> = {
  "words, quotes and variables": [
    { command: "echo a  'b  c' \"d $HOME\" e\\ f", stdout: "a b  c d /home/agent e f\n" },
    { command: "echo '$HOME' \"\\$HOME\" $NOTHING end", stdout: "$HOME $HOME end\n" },
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the shell's
    { command: "X='a b'; echo $X \"${X}c\"", stdout: "a b a bc\n" },
    { command: "X=1 env | grep X=; echo [$X]", stdout: "X=1\n[]\n" },
    { command: "Y=2; export X=1 Y; env | grep ^[XY]= | sort", stdout: "X=1\nY=2\n" },
    { command: "false; echo $?; true; echo $?", stdout: "1\n0\n" },
    { command: "echo one # two\n# three\necho four", stdout: "one\nfour\n" },
    { command: "echo -n a; printf '%s=%d%%\\n' x 7 y 8", stdout: "ax=7%\ny=8%\n" },
  ],
  lists: [
    { command: "true && echo yes || echo no", stdout: "yes\n" },
    { command: "false && echo yes || echo no", stdout: "no\n" },
    { command: "echo a; exit 3; echo b", stdout: "a\n", exitCode: 3 },
    { command: "bash -c 'echo in; exit 4'; echo $?", stdout: "in\n4\n" },
    { command: "echo a &&", stderr: "/bin/bash: line 1: syntax error: unexpected end of file\n", exitCode: 2 },
    { command: "; echo a", stdout: "a\n" },
    {
      command: "echo a | | cat",
      stderr: "/bin/bash: line 1: syntax error near unexpected token `|'\n",
      exitCode: 2,
    },
    {
      command: "echo 'a",
      stderr: "/bin/bash: line 1: unexpected EOF while looking for matching `''\n",
      exitCode: 2,
    },
  ],
  "pipes and redirections": [
    { command: "seq 5 | sort -r | head -n 2", stdout: "5\n4\n" },
    { command: "yes | head -n 2; yes no | head -n 1", stdout: "y\ny\nno\n" },
    { command: "cd out | true; pwd", stdout: "/workspace\n" },
    { command: "echo a > out/x; echo b >> out/x; cat < out/x", stdout: "a\nb\n" },
    { command: "cat nope 2> out/errors; cat out/errors", stdout: "cat: nope: No such file or directory\n" },
    { command: "cat nope 2>&1 | wc -l; cat nope > /dev/null 2>&1", stdout: "1\n", exitCode: 1 },
    { command: "echo a | tee out/x | cat; cat out/x", stdout: "a\na\n" },
    { command: "echo a | tee src/x", stdout: "a\n", stderr: "tee: src/x: Permission denied\n", exitCode: 1 },
    { command: "echo a > src/a.ts", stderr: "/bin/bash: line 1: src/a.ts: Permission denied\n", exitCode: 1 },
    { command: "echo a > /ro", stderr: "/bin/bash: line 1: /ro: Permission denied\n", exitCode: 1 },
    { command: "cat < nope", stderr: "/bin/bash: line 1: nope: No such file or directory\n", exitCode: 1 },
    { command: "\necho a > out/no/x", stderr: "/bin/bash: line 2: out/no/x: No such file or directory\n", exitCode: 1 },
  ],
  looking: [
    {
      command: "pwd; cd src; pwd; cd ..; pwd; cd /workspace/out; pwd",
      stdout: "/workspace\n/workspace/src\n/workspace\n/workspace/out\n",
    },
    { command: "ls; ls secrets", stdout: "docs\nout\nsecrets\nsrc\npublic.key\n" },
    { command: "ls -1 src/a.ts out", stdout: "src/a.ts\n\nout:\nold.txt\n" },
    { command: "touch out/.hidden; ls out; ls -A out", stdout: "old.txt\n.hidden\nold.txt\n" },
    { command: "ls -a docs", stdout: ".\n..\nplan.md\n" },
    { command: "ls -R src", stdout: "src:\na.ts\n" },
    {
      command: "ls -l docs src | grep -c '^-'; ls -l docs | grep plan.md | head -n 1 | grep -c '^----------'",
      stdout: "2\n1\n",
    },
    { command: "head -n 1 src/a.ts; tail -n 1 src/a.ts; wc -l src/a.ts", stdout: "one\nthree\n3 src/a.ts\n" },
    { command: "head -1 < src/a.ts; tail -n 0 src/a.ts", stdout: "one\n" },
    { command: "printf '2 b\\n10 a\\n2 b\\n' | sort -n -u", stdout: "2 b\n10 a\n" },
    { command: "seq 2 4; seq 1 2 5", stdout: "2\n3\n4\n1\n3\n5\n" },
  ],
  "patterns for files": [
    {
      command: "echo *; echo src/*.ts '*' \"*\" \\* no*thing",
      stdout: "docs out secrets src\nsrc/a.ts * * * no*thing\n",
    },
    { command: "cat s*/p*.key /workspace/[os]?t/*", stdout: "public\nold\n" },
    {
      command: "cd out; touch .hidden 'a[1]' b1; echo *; echo .h* a[1] 'a['*; X='b*'; echo $X \"$X\"",
      stdout: "a[1] b1 old.txt\n.hidden a[1] a[1]\nb1 b*\n",
    },
    { command: "echo secrets/private*; ls [!s]*", stdout: "secrets/private*\ndocs:\nplan.md\n\nout:\nold.txt\n" },
  ],
  grep: [
    { command: "grep t src/a.ts", stdout: "two\nthree\n" },
    { command: "grep -n '^t' src/a.ts; grep -c t src/a.ts; grep -v t src/a.ts", stdout: "2:two\n3:three\n2\none\n" },
    { command: "grep -rn o src out", stdout: "src/a.ts:1:one\nsrc/a.ts:2:two\nout/old.txt:1:old\n" },
    {
      command: "grep -rl p .",
      stdout: "./secrets/public.key\n",
      stderr: "grep: ./docs/plan.md: Permission denied\n",
      exitCode: 2,
    },
    { command: "cd src; grep -r one", stdout: "a.ts:one\n" },
    { command: "grep -E 'one|two' src/a.ts; grep -F 'o.e' src/a.ts; grep -i ONE src/a.ts", stdout: "one\ntwo\none\n" },
    { command: "grep nothing src/a.ts", exitCode: 1 },
    { command: "grep -q one src/a.ts" },
    { command: "grep a src", stderr: "grep: src: Is a directory\n", exitCode: 2 },
  ],
  conditions: [
    { command: "test -e src && test -d src && [ -f src/a.ts ] && echo yes", stdout: "yes\n" },
    { command: "[ -e secrets/private.key ] || echo hidden", stdout: "hidden\n" },
    { command: "[ ! -f src ] && [ a = a ] && [ 2 -lt 10 ] && [ -n x ] && echo yes", stdout: "yes\n" },
    { command: "[ -f a", stderr: "/bin/bash: line 1: [: missing `]'\n", exitCode: 2 },
  ],
  changing: [
    {
      command: "mkdir -p out/a/b; touch out/a/b/c; cp -r out/a out/d; ls -R out/d",
      stdout: "out/d:\nb\n\nout/d/b:\nc\n",
    },
    { command: "mv out/old.txt out/new.txt; ls out; cat out/new.txt", stdout: "new.txt\nold\n" },
    { command: "cp src/a.ts out; mv out/a.ts out/b.ts; cat out/b.ts | head -n 1", stdout: "one\n" },
    { command: "rm -r out; ls; mkdir out; ls out", stdout: "docs\nsecrets\nsrc\n" },
    { command: "rm -f nope out/nope; rm out/old.txt; ls out" },
    { command: "rmdir out", stderr: "rmdir: failed to remove 'out': Directory not empty\n", exitCode: 1 },
    { command: "echo x > /tmp/t && mv /tmp/t out/t && cat out/t", stdout: "x\n" },
  ],
};

const COMPLAINTS: readonly Row[] = [
  { command: "nosuch --x", stderr: "/bin/bash: line 1: nosuch: command not found\n", exitCode: 127 },
  { command: "./run.sh", stderr: "/bin/bash: line 1: ./run.sh: No such file or directory\n", exitCode: 127 },
  { command: "cat secrets/private.key", stderr: "cat: secrets/private.key: No such file or directory\n", exitCode: 1 },
  { command: "cat docs/plan.md", stderr: "cat: docs/plan.md: Permission denied\n", exitCode: 1 },
  { command: "cat src", stderr: "cat: src: Is a directory\n", exitCode: 1 },
  { command: "ls nope", stderr: "ls: cannot access 'nope': No such file or directory\n", exitCode: 2 },
  { command: "mkdir src", stderr: "mkdir: cannot create directory ‘src’: File exists\n", exitCode: 1 },
  { command: "mkdir -p q/r", stderr: "mkdir: cannot create directory ‘q’: Permission denied\n", exitCode: 1 },
  { command: "rm nope", stderr: "rm: cannot remove 'nope': No such file or directory\n", exitCode: 1 },
  { command: "rm src", stderr: "rm: cannot remove 'src': Is a directory\n", exitCode: 1 },
  { command: "rm -rf src", stderr: "rm: cannot remove 'src/a.ts': Permission denied\n", exitCode: 1 },
  { command: "touch src/x", stderr: "touch: cannot touch 'src/x': Permission denied\n", exitCode: 1 },
  { command: "cp nope b", stderr: "cp: cannot stat 'nope': No such file or directory\n", exitCode: 1 },
  {
    command: "cp src/a.ts src/b.ts",
    stderr: "cp: cannot create regular file 'src/b.ts': Permission denied\n",
    exitCode: 1,
  },
  {
    command: "cp docs/plan.md out",
    stderr: "cp: cannot open 'docs/plan.md' for reading: Permission denied\n",
    exitCode: 1,
  },
  { command: "cp src z", stderr: "cp: -r not specified; omitting directory 'src'\n", exitCode: 1 },
  { command: "mv src/a.ts q", stderr: "mv: cannot move 'src/a.ts' to 'q': Permission denied\n", exitCode: 1 },
  { command: "cd nope", stderr: "/bin/bash: line 1: cd: nope: No such file or directory\n", exitCode: 1 },
  {
    command: "head -n 1 nope",
    stderr: "head: cannot open 'nope' for reading: No such file or directory\n",
    exitCode: 1,
  },
  { command: "wc -l nope", stderr: "wc: nope: No such file or directory\n", exitCode: 1 },
  { command: "sort nope", stderr: "sort: cannot read: nope: No such file or directory\n", exitCode: 2 },
  { command: "sleep x", stderr: "sleep: invalid time interval ‘x’\n", exitCode: 1 },
];

async function outcome({ client, id }: Opened, command: string): Promise<Required<Row>> {
  const { stdout, stderr, exitCode } = await client.exec(id, command);
  return { command, stdout, stderr, exitCode };
}

function whole({ command, stdout = "", stderr = "", exitCode = 0 }: Row): Required<Row> {
  return { command, stdout, stderr, exitCode };
}

for (const [title, rows] of Object.entries(ROWS)) {
  describe(title, () => {
    for (const row of rows) {
      test(row.command, async () => {
        await using mock = await openMock();
        expect(await outcome(mock, row.command)).toEqual(whole(row));
      });
    }
  });
}

test("complaints are worded as in a real sandbox", async () => {
  await using mock = await openMock();
  for (const row of COMPLAINTS) expect(await outcome(mock, row.command)).toEqual(whole(row));
});

test.each(["echo $(date)", "echo `date`", "sleep 1 & echo", "(cd src)", "cat << E\na\nE", "if true; then echo; fi"])(
  "%s is refused rather than guessed",
  async (command) => {
    await using mock = await openMock();
    const { exitCode, stdout, stderr } = await outcome(mock, command);
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
    expect(stderr).toContain("answer the command with onCommand");
  },
);

test("a program with arguments is run without a shell", async () => {
  await using mock = await openMock();
  const { stdout } = await mock.client.exec(mock.id, ["echo", "$HOME", "a;b", ">x"]);
  expect(stdout).toBe("$HOME a;b >x\n");
});

test("bytes that are no text go through unchanged", async () => {
  await using mock = await openMock({ permissions: [{ pattern: "**/*", permission: "write" }] });
  const bytes = Uint8Array.of(0, 255, 10, 128, 10);
  expect([...(await mock.client.exec(mock.id, "printf 'a\\377\\0b'")).stdoutBytes]).toEqual([97, 255, 0, 98]);
  await mock.client.writeFile(mock.id, "b", bytes);
  const { stdoutBytes } = await mock.client.exec(mock.id, "cat b | head -n 1; tail -n 1 b; sort b > c; cat c");
  expect(Buffer.from(stdoutBytes)).toEqual(Buffer.from([0, 255, 10, 128, 10, 0, 255, 10, 128, 10]));
});

test("what is written to /tmp is gone after a restart", async () => {
  await using mock = await openMock();
  expect((await outcome(mock, "echo a > /tmp/x; cat /tmp/x")).stdout).toBe("a\n");
  await mock.client.stopSandbox(mock.id);
  await mock.client.startSandbox(mock.id);
  expect((await outcome(mock, "ls /tmp")).stdout).toBe("");
});

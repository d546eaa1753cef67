import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { errorCode, openSession, place, shells } from "./fixture.ts";

describe.each(shells)("a session with $title", (shell) => {
  const { kind } = shell;

  test("tells the two outputs and the exit code apart", async () => {
    await using session = await openSession(shell);
    expect(await session.run("echo out; echo err >&2; (exit 7)")).toEqual({ out: "out\n", err: "err\n", code: 7 });
  });

  test("keeps the directory, variables, functions, aliases, options, umask and limits", async () => {
    await using session = await openSession(shell);
    await session.run("cd /usr/bin; own=1; export shared=2; greet() { echo hello $1; }; alias shout='echo HEY'");
    await session.run("umask 027; ulimit -n 100; set -f");
    expect(await session.out('pwd; echo "$own"; sh -c \'echo "$shared"\'; greet you')).toBe(
      "/usr/bin\n1\n2\nhello you\n",
    );
    expect(await session.out("shout\numask; ulimit -n\necho *")).toMatch(/^HEY\n0?027\n100\n\*?/);
    expect(await session.out(`unset own; unset -f greet; unalias shout; echo \${own-gone}`)).toBe("gone\n");
    expect((await session.run("greet")).code).toBe(127);
  });

  test("keeps the positional parameters", async () => {
    await using session = await openSession(shell);
    await session.run("set -- one 'two  words' \"it's\" '$x'");
    expect(await session.out('printf "<%s>" "$@"')).toBe("<one><two  words><it's><$x>");
    await session.run("shift 3");
    expect(await session.out('echo "$# $1"; set --')).toBe("1 $x\n");
    expect(await session.out("echo $#")).toBe("0\n");
  });

  test("shows the last exit status to the next command", async () => {
    await using session = await openSession(shell);
    await session.run("false");
    expect(await session.run("echo $?")).toEqual({ out: "1\n", err: "", code: 0 });
    expect(await session.out("echo $?")).toBe("0\n");
    await session.run("(exit 42)");
    expect((await session.run("")).code).toBe(42);
    await session.run("(exit 3)");
    expect(await session.out("# nothing\necho $?; type __agentfense_last >/dev/null 2>&1 || echo clean")).toBe(
      "3\nclean\n",
    );
  });

  test.each([
    ["several lines", "a=1\nb=2\necho $((a + b))", "3\n"],
    ["a here-document", "cat <<EOF\none 'two' \"three\"\nEOF\necho after", "one 'two' \"three\"\nafter\n"],
    ["a comment at the end", "echo x # comment", "x\n"],
    ["a continued line", "echo a \\\n  b", "a b\n"],
    ["a backslash at the end", "echo a\\", kindly(kind, { bash: "a\\\n", dash: "a\\\n", zsh: "a\n" })],
    ["quotes of all kinds", `echo 'a' "b" 'it'\\''s'`, "a b it's\n"],
    ["letters beyond ASCII", "echo grüße 日本 🙂", "grüße 日本 🙂\n"],
    ["the protocol's own words", "echo agentfense-status 1 0 s", "agentfense-status 1 0 s\n"],
    ["trailing newlines", "echo x\n\n\n", "x\n"],
    ["carriage returns", "printf 'a\r\nb' | od -An -c | tr -d ' \\n'", "a\\r\\nb"],
    ["no final newline in the output", "printf abc", "abc"],
    ["nothing", "", ""],
    ["only a comment", "# nothing", ""],
  ])("runs %s", async (_what, command, out) => {
    await using session = await openSession(shell);
    const result = await session.run(command);
    expect({ out: result.out, err: result.err }).toEqual({ out, err: "" });
    expect(await session.out("echo next")).toBe("next\n");
  });

  test.each([
    "echo 'unbalanced",
    'echo "unbalanced',
    "if true",
    "done",
    "echo )",
    "for",
    "{ echo",
    "echo $(",
    "case x in",
  ])("%j is a failure of the command, not of the session", async (command) => {
    await using session = await openSession(shell);
    await session.run("kept=1");
    const result = await session.run(command);
    expect(result.out).toBe("");
    expect(result.err).not.toBe("");
    expect(result.code).toBeGreaterThan(0);
    expect(await session.run("echo $kept")).toEqual({ out: "1\n", err: "", code: 0 });
  });

  test.each([
    "return 5",
    "break",
    "continue",
    "shift 99",
    "exit 1 2 3",
    "cd /nowhere",
    ". /nowhere",
    "echo $((1/0))",
    "nosuch",
    "unset 1x",
    "trap x NOSIG",
    "wait 1",
  ])("%j leaves the session alive", async (command) => {
    await using session = await openSession(shell);
    await session.run(command, 1_000);
    // bash and dash differ in what ends a script; where one of these does, it is said.
    if (session.session.closed === undefined) expect(await session.out("echo next")).toBe("next\n");
    else expect([command, session.session.closed.reason]).toEqual(["exit 1 2 3", "exited"]);
  });

  test("a megabyte of command is one command", async () => {
    await using session = await openSession(shell);
    const word = `it'sé${"x".repeat(1024 * 1024)}`;
    const result = await session.run(`word="${word}"\necho \${#word}\nprintf %s "$word" | tail -c 3`, 20_000);
    expect(result).toEqual({ out: expect.stringMatching(/^104858\d\nxxx$/), err: "", code: 0 });
  });

  test("a command with a NUL byte is refused, and a timeout that is none", async () => {
    await using session = await openSession(shell);
    expect(await errorCode(session.session.exec({ command: "echo \0" }))).toBe("INVALID_ARGUMENT");
    for (const timeoutMs of [0, -5, Number.NaN]) {
      expect(await errorCode(session.session.exec({ command: ":", timeoutMs }))).toBe("INVALID_ARGUMENT");
    }
  });

  test("programs see 0, 1 and 2 only, in the background too", async () => {
    await using session = await openSession(shell);
    const strangers = await session.out("ls /proc/self/fd"); // what the test runner itself leaves open
    const inherited = new Set(
      strangers
        .trim()
        .split("\n")
        .filter((fd) => Number(fd) > 200),
    );
    const own = (text: string) =>
      text
        .trim()
        .split("\n")
        .filter((fd) => !inherited.has(fd));
    // ls itself opens one more: the directory, as 3.
    expect(own(await session.out("ls /proc/self/fd"))).toEqual(["0", "1", "2", "3"]);
    expect(own(await session.out("{ ls /proc/self/fd; } & wait"))).toEqual(["0", "1", "2", "3"]);
    expect(own(await session.out("echo x | ls /proc/self/fd"))).toEqual(["0", "1", "2", "3"]);
    expect(own(await session.out("echo $(ls /proc/self/fd) | tr ' ' '\\n'"))).toEqual(["0", "1", "2", "3"]);
    expect(own(await session.out("sh -c 'ls /proc/self/fd'"))).toEqual(["0", "1", "2", "3"]);
    expect(own(await session.out("exec ls /proc/self/fd"))).toEqual(["0", "1", "2", "3"]);
  });

  test("nothing that reads standard input swallows the next command", async () => {
    await using session = await openSession(shell);
    const readers = [
      "cat",
      "read x",
      "head -c 10",
      "sh",
      "xargs echo",
      "sleep 0 & cat; wait",
      "sh -c 'cat; sleep 0.01; cat'",
    ];
    for (const reader of readers) {
      const both = Promise.all([session.run(reader), session.out("echo next")]);
      expect((await both)[1]).toBe("next\n");
    }
  });

  test("redirections of the shell itself last", async () => {
    await using session = await openSession(shell);
    const file = join(place, `log-${shell.title}`);
    await session.run(`exec 5>&1 6>&2 >'${file}' 2>&1`);
    expect(await session.run("echo hidden; nosuch")).toEqual({ out: "", err: "", code: 127 });
    await session.run("exec >&5 2>&6 5>&- 6>&-");
    expect(await session.out(`grep -c . '${file}'`)).toBe("2\n");
  });

  test("a closed output stays closed and costs nothing else", async () => {
    await using session = await openSession(shell);
    await session.run("exec 1>&-");
    expect((await session.run("echo lost")).out).toBe("");
    expect(await session.run("echo kept >&2")).toEqual({ out: "", err: "kept\n", code: 0 });
    await session.run("exec 2>&-");
    expect(await session.run("exit 4")).toEqual({ out: "", err: "", code: 4 });
  });

  test("tracing shows the commands and nothing of the protocol", async () => {
    await using session = await openSession(shell);
    await session.run("false");
    const first = await session.run("set -x; echo one");
    const second = await session.run("echo two; false");
    const third = await session.run("echo $?");
    for (const { err } of [first, second, third]) expect(err).not.toMatch(/agentfense|printf|eval '/);
    expect([first.err, second.err, third.err]).toEqual([
      expect.stringMatching(/echo one\n$/),
      expect.stringMatching(/^\S+ echo two\n\S+ false\n$/),
      expect.stringMatching(/^\S+ echo 1\n$/),
    ]);
    await session.run("set +x; set -v");
    expect((await session.run("echo v")).err).not.toContain("agentfense");
    await session.run("set +v");
    expect(await session.run("echo off")).toEqual({ out: "off\n", err: "", code: 0 });
  });

  test("background jobs live on, are listed and can be waited for", async () => {
    await using session = await openSession(shell);
    await session.run("sleep 0.3 & sleep 1000 & job=$!");
    expect(await session.out("jobs")).toMatch(/running/i);
    expect(await session.out("kill -0 $job && echo alive")).toBe("alive\n");
    expect(await session.out(`kill $job; wait $job; echo $?`)).toBe("143\n");
    expect(await session.run("wait; echo done")).toEqual({ out: "done\n", err: expect.any(String), code: 0 });
  });

  test("an activated environment stays active, and its prompt is never printed", async () => {
    await using session = await openSession(shell);
    writeFileSync(
      join(place, "activate"),
      `VIRTUAL_ENV=/venv; export VIRTUAL_ENV; PATH="/venv/bin:$PATH"; PS1="(venv) \${PS1-}"; export PS1\n`,
    );
    expect(await session.run(`. '${place}/activate'`)).toEqual({ out: "", err: "", code: 0 });
    expect(await session.run(`echo "$VIRTUAL_ENV \${PATH%%:*}"`)).toEqual({
      out: "/venv /venv/bin\n",
      err: "",
      code: 0,
    });
  });

  test("reads no start-up files and writes no history", async () => {
    const home = join(place, `home-${shell.title}`);
    await using made = await openSession(shell);
    const files = [".bashrc", ".bash_profile", ".profile", ".zshrc", ".zshenv", ".zprofile", "env"];
    await made.run(`mkdir -p '${home}'; for f in ${files.join(" ")}; do echo 'echo read' >'${home}'/$f; done`);
    await using session = await openSession(shell, {
      request: { env: { HOME: home, ZDOTDIR: home, ENV: `${home}/env`, BASH_ENV: `${home}/env` } },
    });
    expect(await session.run("echo clean")).toEqual({ out: "clean\n", err: "", code: 0 });
    await session.session.close();
    expect([".bash_history", ".zsh_history", ".history"].filter((name) => existsSync(join(home, name)))).toEqual([]);
  });

  test("traps run, and the one at the end too", async () => {
    await using session = await openSession(shell);
    await session.run("trap 'echo usr1' USR1; trap 'echo bye' EXIT");
    expect(await session.out("kill -USR1 $$; :")).toBe("usr1\n");
    expect(await session.run("exit 3")).toEqual({ out: "bye\n", err: "", code: 3 });
  });

  test("`set -u` fails at unset variables", async () => {
    await using session = await openSession(shell);
    await session.run("set -u");
    const result = await session.run("echo $nothing_like_this; echo not reached");
    expect(result).toEqual({ out: "", err: expect.stringContaining("nothing_like_this"), code: expect.any(Number) });
    expect(result.code).toBeGreaterThan(0);
    // A script in bash ends there, the others can be kept.
    expect(session.session.closed?.reason).toBe(kind === "bash" ? "exited" : undefined);
  });
});

/** The value for this kind of shell. */
function kindly<T>(kind: "bash" | "dash" | "zsh", values: Record<"bash" | "dash" | "zsh", T>): T {
  return values[kind];
}

import { afterAll, beforeAll, expect, test } from "vitest";
import { exec, makeCodebase, makeSandbox, makeSession, sessionExec } from "../../../support/belongings.ts";
import { GrpcClient, type Message } from "../../../support/grpc-client.ts";
import { TestServer } from "../../../support/server.ts";

let server: TestServer;
let client: GrpcClient;
let sandbox: string;
let codebase: string;

beforeAll(async () => {
  server = await TestServer.start();
  client = new GrpcClient(server.grpc);
  codebase = await makeCodebase(client, { "a.txt": "a" }, "owner");
  sandbox = await makeSandbox(client, codebase);
});
afterAll(async () => {
  client?.[Symbol.dispose]();
  await server?.[Symbol.asyncDispose]();
});

test("API-36 commands of several clients in one session take turns, and no output is mixed", async () => {
  using second = new GrpcClient(server.grpc);
  const session = await makeSession(client, sandbox);
  await sessionExec(client, session, "count=0");
  const line = (letter: string, index: number): string =>
    `count=$((count+1)); for i in 1 2 3 4 5; do echo ${letter}${index}; echo ${letter}${index} >&2; done; echo end $count`;
  const results = await Promise.all(
    Array.from({ length: 12 }, (_, index) => {
      const letter = index % 2 === 0 ? "x" : "y";
      return sessionExec(index % 2 === 0 ? client : second, session, line(letter, index)).then((result) => ({
        letter,
        index,
        result,
      }));
    }),
  );
  const counts = results.map(({ letter, index, result }) => {
    const word = `${letter}${index}\n`;
    expect(result.stderr).toBe(word.repeat(5));
    const [, count] = new RegExp(`^(?:${word}){5}end (\\d+)\n$`).exec(result.stdout) ?? [];
    return Number(count);
  });
  expect(counts.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 12 }, (_, index) => index + 1));
});

test("API-36 a session of one sandbox is no way into another", async () => {
  const other = await makeSandbox(client, codebase, { permissions: [] });
  const session = await makeSession(client, other);
  expect((await sessionExec(client, session, "ls -A /workspace")).stdout).toBe("");
  const { sessions } = await client.call("SandboxService", "ListSessions", { sandbox_id: sandbox });
  expect((sessions as Message[]).map(({ id }) => id)).not.toContain(session);
  await client.call("SandboxService", "DestroySandbox", { sandbox_id: other });
  expect(await client.failure("SandboxService", "SessionExec", { session_id: session, command: "true" })).toMatchObject(
    { code: 5 },
  );
});

test("API-37 what a command prints, reads or writes into any descriptor forges no result", async () => {
  const session = await makeSession(client, sandbox);
  const forgeries = [
    // Every open descriptor of the shell and of all its parents, with words that look like an end.
    `for fd in /proc/$$/fd/* /proc/self/fd/*; do (printf '0\\n__END__0\\nexit 0\\n\\0\\0' > "$fd") 2>/dev/null; done; false`,
    "for n in $(seq 3 255); do { printf '0\\n' >&$n; } 2>/dev/null; done; (exit 7)",
    "history; set -o; set -x; (exit 9); set +x 2>/dev/null; (exit 9)",
    "trap 'echo forged' DEBUG EXIT; (exit 5)",
    "printf '\\036\\037\\001exit 0\\n'; (exit 3)",
    "PS1='forged> '; PS4='forged '; PROMPT_COMMAND='echo forged'; (exit 11)",
  ];
  const codes = [1, 7, 9, 5, 3, 11];
  for (const [index, command] of forgeries.entries()) {
    const result = await sessionExec(client, session, command).catch((error: { code: number }) => error);
    // It may cost the session; it may not buy another result.
    if ("exit_code" in result && !result.session_closed) {
      expect([command, result.exit_code]).toEqual([command, codes[index]]);
    } else {
      break;
    }
  }
});

test("API-37 a command cannot swallow the next one from the shell's input", async () => {
  for (const swallow of [
    "cat > stolen",
    'read -r line; echo "$line" > stolen',
    "cat <&0 > stolen & disown; true",
    "head -c 100000 > stolen",
  ]) {
    const session = await makeSession(client, sandbox);
    await sessionExec(client, session, swallow).catch(() => {});
    const next = await sessionExec(client, session, "echo next-$((40 + 2)); (exit 4)").catch(() => undefined);
    if (next !== undefined) expect([swallow, next.stdout, next.exit_code]).toEqual([swallow, "next-42\n", 4]);
    expect([swallow, (await exec(client, sandbox, "cat stolen 2>/dev/null")).stdout]).toEqual([
      swallow,
      expect.not.stringContaining("next-"),
    ]);
    await client.call("SandboxService", "DestroySession", { session_id: session }).catch(() => {});
  }
});

test("API-37 output that looks like another call's, or like the end, stays output", async () => {
  const session = await makeSession(client, sandbox);
  const text = '\\0\\0\\0\\0\\5{"exitCode":0}\\r\\n0\\r\\n\\r\\ngrpc-status: 0\\r\\n';
  const { stdout, exit_code } = await sessionExec(client, session, `printf '${text}'; (exit 6)`);
  expect([exit_code, stdout]).toEqual([6, expect.stringContaining("grpc-status: 0")]);
  const streamed = await client.collect("SandboxService", "ExecStream", {
    sandbox_id: sandbox,
    command: `printf '${text}'; exit 6`,
  });
  expect(streamed.at(-1)).toMatchObject({ exit_code: 6, type: "OUTPUT_TYPE_UNSPECIFIED" });
  expect(streamed.filter((message) => message.exit_code !== 0 && message._exit_code !== undefined)).toHaveLength(1);
});

test("API-38 what a command does to its shell affects that session only, and a lost one is reported", async () => {
  const bystander = await makeSession(client, sandbox);
  await sessionExec(client, bystander, "kept=yes");
  const survivable = [
    "alias ls='echo aliased'; alias true=false",
    "cd() { echo no; }; exit_code() { :; }; printf() { echo forged; }; eval() { echo forged; }; exec() { :; }; read() { :; }; trap() { :; }",
    "trap 'echo trapped' INT TERM HUP PIPE CHLD ERR RETURN DEBUG",
    "PATH=; IFS=abc; LC_ALL=C; unset HOME",
    "set -u; set -f; set -o noclobber",
    "readonly PWD PATH IFS",
    "ulimit -n 20; ulimit -f 0",
    "umask 777",
    "set -e; set -o pipefail; false",
    "exec 1>&- 2>&-",
    "exec 0<&-",
    "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- 10>&- 11>&- 12>&-",
    "kill -STOP $$ & sleep 0.1; kill -CONT $$",
    "stty raw 2>/dev/null; set -o vi 2>/dev/null",
    "kill $$",
    "kill -9 $$",
    "exit 3",
    "exec true",
    "exec sh -c 'exit 4'",
    "logout; return 2",
  ];
  for (const command of survivable) {
    const session = await makeSession(client, sandbox);
    const request = { session_id: session, command, timeout: { seconds: "5", nanos: 0 } };
    const first = await client.outcome("SandboxService", "SessionExec", [request]);
    expect([command, [0, 4, 9].includes(first.code), first.code]).toEqual([command, true, first.code]);
    const next = await client.outcome("SandboxService", "SessionExec", [
      { session_id: session, command: "echo still here; (exit 5)", timeout: { seconds: "5", nanos: 0 } },
    ]);
    const { status } = (await client.call("SandboxService", "GetSession", { session_id: session })) as {
      status: string;
    };
    if (status === "SESSION_STATUS_CLOSED") expect([command, next.code]).toEqual([command, 9]);
    else expect([command, next.code === 0 || next.code === 4]).toEqual([command, true]);
    if (first.messages[0]?.session_closed === true)
      expect([command, status]).toEqual([command, "SESSION_STATUS_CLOSED"]);
    expect([command, (await sessionExec(client, bystander, "echo $kept")).stdout]).toEqual([command, "yes\n"]);
    await client.call("SandboxService", "DestroySession", { session_id: session }).catch(() => {});
  }
  expect((await exec(client, sandbox, "echo $kept; type ls cd | grep -c alias")).stdout).toBe("\n0\n");
  const { events } = await client.call("EventService", "ListEvents", { types: ["session_closed"], page_size: 1000 });
  expect((events as Message[]).length).toBeGreaterThanOrEqual(4);
});

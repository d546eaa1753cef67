import { Sandbox } from "agentfense";

await using sandbox = await Sandbox.fromLocal("./project");

// #region session
await using session = await sandbox.session({ env: { STAGE: "test" } });
await session.exec("cd src; greet() { echo hello $1; }");
const result = await session.exec("pwd; greet $STAGE");
console.log(result.stdout); // /workspace/src, hello test
// #endregion

// #region timeout
const stuck = await session.exec("sleep 60", { timeoutMs: 500 });
console.log(stuck.timedOut); // the command is interrupted; the session goes on
console.log((await session.exec("pwd")).stdout);
// #endregion

// #region pause
await session.exec("sleep 600 & counter=5");
await sandbox.pause();
console.log(sandbox.status, (await sandbox.files.readdir("/src")).length > 0);
await sandbox.resume();
console.log((await session.exec("echo $counter; jobs -r | wc -l")).stdout);
// #endregion

// #region process
const server = await sandbox.spawn("echo listening; read line; echo got $line", { tag: "server", stdin: true });
// Later, or in another program: by its number or its tag.
const found = await sandbox.process("server");
const output = await found.attach(); // its last output, then what comes
await found.write("hello\n");
for await (const event of output) {
  if (event.kind === "exit") console.log("exit code", event.end.exitCode);
  else process.stdout.write(event.data); // listening, got hello
}
console.log((await sandbox.processes()).map(({ info }) => `${info.tag || info.command}: ${info.state}`));
await server.wait();
// #endregion

// #region code
const first = await sandbox.runCode("import os\nsources = os.listdir('src')\nprint('looked')\nlen(sources) > 0");
console.log(first.stdout, first.text); // looked, True
const second = await sandbox.runCode("sources.missing"); // the names of the first are still there
console.log(second.error?.name, second.executionCount);
// #endregion

// #region context
await using context = await sandbox.createCodeContext({ language: "javascript" });
await context.run("let sum = 0");
const late = await context.run("while (true) sum += 1", { timeoutMs: 200 });
console.log(late.timedOut, (await context.run("sum > 0")).text); // interrupted; its names stay
// #endregion

// #region terminal
await using terminal = await sandbox.terminal({ columns: 80, rows: 24 });
await terminal.write("stty size; exit 7\n");
let screen = "";
for await (const text of terminal.output.pipeThrough(new TextDecoderStream())) screen += text;
console.log(screen.includes("24 80"), (await terminal.exit).exitCode);
// #endregion

import { CommandExecutionError, Sandbox } from "agentfense";

await using sandbox = await Sandbox.fromLocal("./project");

// #region result
const result = await sandbox.run("ls src; ls nothing");
console.log(result.exitCode, result.success); // 2 false: an exit code is a result, not an exception
console.log(result.stdout, result.stderr, result.durationMs > 0);
console.log(result.signal, result.timedOut, result.truncated, result.outOfMemory);
// #endregion

// #region check
try {
  await sandbox.run("exit 3", { check: true });
} catch (error) {
  if (!(error instanceof CommandExecutionError)) throw error;
  console.log(error.code, error.result.exitCode); // COMMAND_FAILED 3
}
// #endregion

// #region options
const greeting = await sandbox.run('echo "$GREETING from $PWD"; cat', {
  env: { GREETING: "hello" },
  workdir: "src", // relative to /workspace, or absolute
  stdin: "what cat reads\n",
  timeoutMs: 10_000, // 60,000 unless given
});
console.log(greeting.stdout);
// #endregion

// #region words
const found = await sandbox.run(["grep", "-rl", "carrier; rm -rf *", "."]); // no shell looks at it
console.log(found.exitCode);
// #endregion

// #region timeout
const slow = await sandbox.run("echo begun; sleep 60", { timeoutMs: 2_000 });
console.log(slow.timedOut, slow.stdout); // true, and what it printed until then
// #endregion

// #region abort
const leaving = new AbortController();
const waiting = sandbox.run("sleep 60", { signal: leaving.signal });
leaving.abort();
await waiting.catch((error: Error) => console.log(error.name)); // AbortError; the command is dead
// #endregion

// #region callbacks
await sandbox.run("echo one; echo two; echo three >&2", {
  onStdout: (text) => void process.stdout.write(text),
  onStderr: (text) => void process.stderr.write(text),
});
// #endregion

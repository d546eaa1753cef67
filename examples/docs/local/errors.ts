import { Sandbox, SandboxError, SandboxNotRunningError } from "agentfense";

await using sandbox = await Sandbox.fromLocal("./project");

// #region errors
await sandbox.stop();
try {
  await sandbox.run("true");
} catch (error) {
  if (!(error instanceof SandboxError)) throw error;
  console.log(error instanceof SandboxNotRunningError, error.code, error.retryable, error.hint !== undefined);
}
await sandbox.start();
// #endregion

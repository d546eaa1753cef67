// Prints how long the first sandbox of this process took, from the call to the end, without the loading of modules.

import { closeEngine, Sandbox } from "agentfense";

const [directory = "."] = process.argv.slice(2);
const startedAtMs = performance.now();
{
  await using sandbox = await Sandbox.fromLocal(directory, { preset: "full-access" });
  await sandbox.run("true", { check: true });
}
process.stdout.write(String(performance.now() - startedAtMs));
await closeEngine();

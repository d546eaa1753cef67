// What somebody writes who has no server: node embedded.js DIRECTORY

import { Sandbox } from "agentfense";

await using sandbox = await Sandbox.fromLocal(process.argv[2]!, { preset: "agent-safe" });
const { exitCode, stdout } = await sandbox.run("cat notes.txt; mkdir output; echo done > output/result.txt");
const changes = await sandbox.changes().toArray();

console.log(JSON.stringify({ exitCode, stdout, changed: changes.map(({ path }) => path) }));

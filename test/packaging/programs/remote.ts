// What somebody writes who has a server elsewhere: node remote.js ENDPOINT

import { Sandbox, SandboxClient } from "@agentfense/sdk";

const endpoint = process.argv[2]!;

await using client = new SandboxClient({ endpoint });
const { version } = await client.getServerInfo();

await using sandbox = await Sandbox.create({ endpoint, preset: "full-access" });
await sandbox.files.writeFile("greeting.txt", "hello\n");
const { exitCode, stdout } = await sandbox.run("cat greeting.txt");

console.log(JSON.stringify({ version, exitCode, stdout }));

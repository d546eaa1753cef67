import { Sandbox } from "@agentfense/sdk";

const options = { preset: "full-access", sync: "manual", expiresInMs: 600_000, labels: { team: "parcels" } } as const;
await using sandbox = await Sandbox.create(options);
await sandbox.files.mkdir("src");
await sandbox.files.writeFile("src/sum.py", "print(sum(range(10)))\n");
const { stdout } = await sandbox.run("python3 src/sum.py && ls src");
console.log(stdout);
console.log((await sandbox.changes().toArray()).map(({ path }) => path)); // what E2B cannot tell

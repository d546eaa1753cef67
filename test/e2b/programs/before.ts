import { Sandbox } from "e2b";

const sandbox = await Sandbox.create("base", { timeoutMs: 600_000, metadata: { team: "parcels" } });
await sandbox.files.write("src/sum.py", "print(sum(range(10)))\n");
const { stdout } = await sandbox.commands.run("python3 src/sum.py && ls src");
console.log(stdout);
await sandbox.kill();

import { Sandbox } from "agentfense";

await using sandbox = await Sandbox.fromLocal("./project", { permissions: [{ pattern: "**", permission: "write" }] });

// #region branches
await sandbox.run("echo base > plan.md");
const base = await sandbox.snapshot("base");
const attempts = await sandbox.fork({ count: 2 });
await Promise.all(attempts.map((attempt, n) => attempt.run(`echo attempt ${n} >> plan.md`)));
for (const attempt of attempts) console.log((await attempt.files.readFile("/plan.md", "utf8")).trim().split("\n"));
await attempts[1]!.apply({ paths: ["/plan.md"] }); // the one that is wanted; the others go
for (const attempt of attempts) await attempt.destroy();
await sandbox.restore(base.id);
console.log((await sandbox.snapshots()).map(({ label }) => label));
// #endregion

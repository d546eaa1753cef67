import { FileNotFoundError, PermissionDeniedError, Sandbox } from "agentfense";

await using sandbox = await Sandbox.fromLocal("./project");

// #region files
const { files } = sandbox;
await files.mkdir("/output", { recursive: true });
await files.writeFile("/output/notes.md", "# Notes\n", { mode: 0o600 });
await files.appendFile("output/notes.md", "- one\n"); // "/x", "x" and "/workspace/x" are the same
console.log(await files.readFile("/output/notes.md", "utf8"));
console.log(await files.readdir("/"));
for (const entry of await files.readdir("/src", { withFileTypes: true })) console.log(entry.name, entry.isFile());
const stat = await files.stat("/output/notes.md");
console.log(stat.size, stat.permission, stat.isDirectory());
await files.rename("/output/notes.md", "/output/old.md");
await files.rm("/output/old.md");
// #endregion

// #region rules
await files.readFile("/.env", "utf8").catch((error: Error) => {
  console.log(error instanceof FileNotFoundError); // hidden is nonexistent
});
await files.writeFile("/src/tracker.js", "").catch((error: Error) => {
  console.log(error instanceof PermissionDeniedError); // agent-safe lets it be read
});
// #endregion

// #region watch
await using busy = await sandbox.exec("n=0; while sleep 0.1; do n=$((n+1)); mkdir output/part-$n; done");
for await (const { eventType, filename } of files.watch("/output")) {
  console.log(eventType, filename.startsWith("part-")); // "rename": a name came or went; else "change"
  break;
}
await busy.kill();
// #endregion

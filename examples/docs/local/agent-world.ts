// #region start
import { Sandbox } from "agentfense";
import { sandboxWorld } from "agentfense/agent";

await using sandbox = await Sandbox.fromLocal("./project", { preset: "development" });
const world = sandboxWorld(sandbox);

for (const { name } of world.tools()) console.log(name);
console.log((await world.execute("search", { pattern: "TODO" })).text);
await world.execute("write_file", { path: "notes/todo.md", content: "- decide who wins\n" });
console.log((await world.execute("shell", { command: "cat notes/todo.md" })).text);
const { text, isError } = await world.execute("read_file", { path: ".env" });
console.log(isError, text);
// #endregion

import { applyChanges } from "@agentfense/server/isolation";

// Applies a delta, for the test that kills it. Arguments: the delta, the codebase.
const [delta = "", lower = ""] = process.argv.slice(2);
process.stdout.write("begin\n");
await applyChanges({ delta, lower, rules: [{ pattern: "**/*", permission: "write" }] });

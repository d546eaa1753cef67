import { mergeDeltas } from "@agentfense/server/isolation";

// Merges deltas, for the test that kills it. Arguments: the directory, the deltas.
const [into = "", ...deltas] = process.argv.slice(2);
process.stdout.write("begin\n");
await mergeDeltas({
  deltas: deltas.map((delta) => ({
    name: delta.slice(-1),
    delta,
    lower: into,
    rules: [{ pattern: "**/*", permission: "write" }],
  })),
  into,
  intoName: "into",
  favour: "ours",
});

import { extendPreset, listPresets, registerPreset, Sandbox } from "agentfense";

// #region presets
console.log(listPresets().map(({ name }) => name));

const reviewer = extendPreset({
  base: "agent-safe",
  additions: [{ pattern: "/docs/**", permission: "write" }], // competes: secrets stay hidden
  overrides: [{ pattern: "/config/**", permission: "view" }], // wins over everything
});
registerPreset("reviewer", reviewer, "agent-safe, with docs to write");
// #endregion

// #region rules
await using sandbox = await Sandbox.fromLocal("./project", {
  preset: "reviewer",
  permissions: [{ pattern: "/secrets/signing.pub", permission: "read", priority: 200 }],
});
console.log((await sandbox.run("ls secrets; cat config/carriers.json; echo more >> docs/carriers.md")).stderr);
// #endregion

// #region explain
const answer = await sandbox.permissions.explain("/secrets/signing.key");
console.log(answer.permission, answer.deciding?.rule.pattern, answer.losing.length);
console.log(answer.text);
// #endregion

// #region update
await sandbox.permissions.update({ preset: "read-only" }); // in force at once, in running commands too
console.log((await sandbox.permissions.get()).map(({ pattern, permission }) => `${pattern} ${permission}`));
console.log((await sandbox.run("cat .env | wc -l")).stdout);
// #endregion

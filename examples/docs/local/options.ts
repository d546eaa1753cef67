import { Sandbox } from "agentfense";

// #region options
await using sandbox = await Sandbox.fromLocal("./project", {
  preset: "read-only",
  runtime: "bwrap", // or "docker", with `image`
  network: "none", // or { allow: ["pypi.org"] }, "private", "host"
  resources: { memoryBytes: 512 * 1024 ** 2, pidsLimit: 100, diskBytes: 100 * 1024 ** 2 },
  env: { CI: "1" },
  labels: { team: "parcels" },
});
console.log((await sandbox.run("echo $CI")).stdout, sandbox.status, sandbox.info.labels);
// #endregion

// #region secrets
await using careful = await Sandbox.fromLocal("./project", {
  preset: "agent-safe",
  secrets: {
    CARRIER_TOKEN: { command: "sed -n s/^CARRIER_TOKEN=//p project/.env", hosts: ["api.example.com"], in: "bearer" },
  },
});
console.log((await careful.run("printenv CARRIER_TOKEN | wc -c")).stdout); // a placeholder, as long as the value
// #endregion

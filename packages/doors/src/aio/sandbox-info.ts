import type { Sandbox } from "@agentfense/sdk";
import { WORKSPACE } from "./paths.ts";
import { bare, type Route } from "./route.ts";

/** The version of the API that is spoken here: clients ask for it to know what there is. */
const API_VERSION = "1.9.4";

const UTILITIES = [
  { category: "shell", tools: ["shell", "bash"] },
  { category: "file", tools: ["read", "write", "replace", "search", "find", "grep", "glob", "list", "watch"] },
  { category: "code", tools: ["python", "javascript"] },
];

export const SANDBOX_ROUTES: readonly Route[] = [
  bare("GET", "v1/sandbox", async ({ sandbox }) => Response.json(described(sandbox))),
];

function described({ info }: Sandbox): object {
  return {
    success: true,
    message: `sandbox ${info.id} is ${info.status}`,
    data: null,
    hint: info.status === "running" ? null : "it takes no commands until it is started",
    home_dir: WORKSPACE,
    workspace: WORKSPACE,
    version: API_VERSION,
    detail: {
      system: {
        os: "Linux",
        os_version: info.runtime,
        arch: process.arch,
        user: "agent",
        home_dir: WORKSPACE,
        workspace: WORKSPACE,
        timezone: "UTC",
        occupied_ports: [],
      },
      runtime: { python: [{ ver: null, bin: "python3", alias: [] }], nodejs: [{ ver: null, bin: "node", alias: [] }] },
      utils: UTILITIES.map(({ category, tools }) => ({
        category,
        tools: tools.map((name) => ({ name, description: `/v1/${category}/${name}` })),
      })),
    },
  };
}

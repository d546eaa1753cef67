import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { isOpenAddress } from "./address.ts";

/** The values that depend on others, and on who runs the server, as far as nobody gave them. */
export function derivedDefaults(
  given: (name: string) => unknown,
  environment: Readonly<Record<string, string | undefined>>,
): ReadonlyMap<string, unknown> {
  const state = stateDirectory(environment);
  const runtimes = [given("runtime.type") ?? "bwrap", given("runtime.fallback") ?? ""];
  return new Map<string, unknown>([
    ["storage.codebase_path", join(state, "codebases")],
    ["storage.mount_path", join(state, "mounts")],
    ["storage.db_path", join(state, "metadata.db")],
    ["runtime.types", [...new Set(runtimes.filter((runtime) => runtime !== ""))]],
    ["auth.keys", listensBeyondLoopback(given) && given("server.allow_open") !== true ? "required" : "off"],
  ]);
}

/** One of the addresses that serve the API is open to other machines, or cannot be understood. */
function listensBeyondLoopback(given: (name: string) => unknown): boolean {
  return ["server.grpc_addr", "server.http_addr"].some((name) => {
    const text = given(name);
    if (text === undefined || text === "") return false;
    return typeof text !== "string" || isOpenAddress(text);
  });
}

function stateDirectory(environment: Readonly<Record<string, string | undefined>>): string {
  if (process.geteuid?.() === 0) return "/var/lib/agentfense";
  // A relative one is to be ignored, says the XDG specification.
  const { XDG_STATE_HOME: given = "" } = environment;
  return join(isAbsolute(given) ? given : join(homedir(), ".local/state"), "agentfense");
}

import { isIP } from "node:net";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { isLoopback, parseAddress } from "../http/address.ts";
import type { ServerConfig } from "./schema.ts";
import type { TemplateSettings } from "./templates.ts";
import { isAddress } from "./values.ts";

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
  return ["server.grpc_addr", "server.http_addr", "e2b.addr"].some((name) => {
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

/** What is wrong with values that are each right by themselves; every sentence names the keys. */
export function contradictions({ server, auth, limits, storage, runtime, sandbox, e2b }: ServerConfig): string[] {
  const { tls } = server;
  const isLimited = runtime.max_timeout !== 0;
  const listened = { "server.grpc_addr": server.grpc_addr, "server.http_addr": server.http_addr, "e2b.addr": e2b.addr };
  const open = Object.entries(listened).filter(([, address]) => address !== "" && isOpenAddress(address));
  const addresses = open.map(([name, address]) => `${name} (${address})`).join(" and ");
  const strange = server.allowed_origins.find((origin) => originOf(origin) !== origin);
  const checks: readonly (readonly [isWrong: boolean, problem: string])[] = [
    [
      open.length > 0 && auth.keys !== "required" && !server.allow_open,
      `${addresses} is open to other machines while auth.keys is off; require keys, listen on 127.0.0.1, or set server.allow_open: true`,
    ],
    [(tls.cert_file === "") !== (tls.key_file === ""), "server.tls.cert_file and server.tls.key_file go together"],
    [
      tls.client_ca_file !== "" && tls.cert_file === "",
      "server.tls.client_ca_file needs server.tls.cert_file and server.tls.key_file",
    ],
    [
      storage.database_password_file !== "" && storage.database === "",
      "storage.database_password_file needs storage.database",
    ],
    [storage.database_lease < 1000, "storage.database_lease must be 1s or more"],
    [!runtime.types.includes(runtime.type), `runtime.type is ${runtime.type}, which runtime.types does not have`],
    [
      runtime.fallback !== "" && !runtime.types.includes(runtime.fallback),
      `runtime.fallback is ${runtime.fallback}, which runtime.types does not have`,
    ],
    [
      isLimited && runtime.default_timeout > runtime.max_timeout,
      "runtime.default_timeout is more than runtime.max_timeout",
    ],
    [
      isLimited && runtime.default_timeout === 0,
      "runtime.default_timeout must be more than 0 where runtime.max_timeout is a limit",
    ],
    [sandbox.cleanup_interval === 0, "sandbox.cleanup_interval must be more than 0"],
    [
      limits.max_message_size < 65_536 || limits.max_body_size < 1024,
      "limits.max_message_size must be 64KiB or more, limits.max_body_size 1KiB or more",
    ],
    [
      limits.requests_per_second > 0 && limits.request_burst === 0,
      "limits.request_burst must be 1 or more while limits.requests_per_second is set",
    ],
    [e2b.addr !== "" && !e2b.enabled, "e2b.addr is given while e2b.enabled is false"],
    ...Object.entries(e2b.templates).flatMap(([name, each]) => templateChecks(`e2b.templates.${name}`, each, runtime)),
    [
      strange !== undefined,
      `server.allowed_origins: expected origins such as https://console.example.org, not ${JSON.stringify(strange)}`,
    ],
  ];
  return checks.filter(([isWrong]) => isWrong).map(([, problem]) => problem);
}

/** What no sandbox could be made of. */
function templateChecks(
  at: string,
  { network, runtime: named }: TemplateSettings,
  { type, networks, types, fallback }: ServerConfig["runtime"],
): [isWrong: boolean, problem: string][] {
  const runtime = named ?? type;
  const mode = typeof network === "object" ? "filtered" : (network ?? "none");
  return [
    [!types.includes(runtime) && fallback === "", `${at}.runtime is ${runtime}, which runtime.types does not have`],
    [
      mode !== "none" && runtime === "bwrap" && !networks.includes(mode),
      `${at}.network is ${mode}, which runtime.networks does not have`,
    ],
    [
      typeof network === "object" && (network.allow ?? []).length + (network.presets ?? []).length === 0,
      `${at}.network has a list without hosts: for no network say none`,
    ],
  ];
}

function originOf(text: string): string | undefined {
  return URL.canParse(text) ? new URL(text).origin : undefined;
}

/** Other machines can connect. A name other than localhost could become any address, so it counts as open. */
function isOpenAddress(text: string): boolean {
  if (!isAddress(text)) return true;
  const address = parseAddress(text);
  if ("path" in address) return false;
  const { host } = address;
  if (host === undefined) return true;
  return isIP(host) === 0 ? host.toLowerCase() !== "localhost" : !isLoopback(host);
}

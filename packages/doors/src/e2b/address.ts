import type { IncomingHttpHeaders } from "node:http";
import type { Door } from "../door.ts";
import type { SandboxAccess } from "./access.ts";

/** E2B_API_URL and E2B_SANDBOX_URL end with this. */
const E2B_PREFIX = "/e2b/";
/** Clients make signed URLs without the prefix. */
export const SIGNED_PATH = "/files";
/** For what is served at a port of a sandbox. */
const TRAFFIC_HEADER = "e2b-traffic-access-token";

/** A key in the form that older clients of E2B ask for: `e2b_` and hexadecimal digits, which say the same. */
const E2B_KEY = /^e2b_([0-9a-f]{32})([0-9a-f]{64})$/;

/** "af_key_ID_SECRET" as an E2B client takes it; the key itself where it has another form. */
export function e2bFormOf(key: string): string {
  const [, id, secret] = /^af_key_([0-9a-f]{32})_([A-Za-z0-9_-]{43})$/.exec(key) ?? [];
  return secret === undefined ? key : `e2b_${id}${Buffer.from(secret, "base64url").toString("hex")}`;
}

/** The key that is meant by what a client sends. */
export function keyOf(given: string): string {
  const [, id, secret] = E2B_KEY.exec(given) ?? [];
  return secret === undefined ? given : `af_key_${id}_${Buffer.from(secret, "hex").toString("base64url")}`;
}

/** Where the doors are, in the order in which `e2bDoors` gives them. */
export function e2bPlaces(address: string | undefined): readonly Pick<Door, "prefix" | "address">[] {
  const alone = address === undefined ? [] : [{ prefix: "/", address }];
  return [{ prefix: E2B_PREFIX }, { prefix: SIGNED_PATH }, ...alone];
}

/** How a request's key is found by what clients send in its place, and what is said to those who have none. */
export function e2bEntrance(access: SandboxAccess): Required<Pick<Door, "keyIn" | "portKeyIn" | "refusal">> {
  return {
    refusal: statusAnswer,
    keyIn: (headers, target, method) => keyIn(access, headers, target, method),
    portKeyIn: (headers, sandboxId) => {
      const token = headers[TRAFFIC_HEADER];
      if (typeof token !== "string") return access.keyOfPublicPorts(sandboxId);
      const granted = access.read(token, "traffic");
      return granted?.sandboxId === sandboxId ? granted.key : undefined;
    },
  };
}

/** Where clients of E2B have their key: in a form of their own, or in a token of a sandbox, which their URLs are signed with too. */
function keyIn(
  access: SandboxAccess,
  headers: IncomingHttpHeaders,
  target: string,
  method: string,
): string | undefined {
  const { "x-api-key": key } = headers;
  if (typeof key === "string") return keyOf(key.trim()) || undefined;
  const { "x-access-token": inside, [TRAFFIC_HEADER]: traffic } = headers;
  if (typeof inside === "string") return access.read(inside)?.key || undefined;
  if (typeof traffic === "string") return access.read(traffic, "traffic")?.key || undefined;
  const at = target.indexOf("?");
  if (at === -1 || !/^\/(e2b\/)?files$/.test(target.slice(0, at).replaceAll(/\/+/g, "/"))) return undefined;
  return access.signerOf(new URLSearchParams(target.slice(at)), operationOf(method))?.key || undefined;
}

/** `code` is the status: clients go by it. Python's would try again by itself what took too long to be refused, and make a sandbox twice. */
export function statusAnswer(status: number, message: string, more: object = {}): Response {
  return Response.json({ code: status, message, ...more }, { status, headers: { "should-retry": "false" } });
}

/** What a request to `/files` does, as URLs are signed for. */
export function operationOf(method: string): "read" | "write" {
  return method === "POST" ? "write" : "read";
}

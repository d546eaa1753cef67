import type { StatusName } from "@agentfense/protocol";
import { plainAddress } from "./address.ts";
import { isPortHost, type PortTarget } from "./port-target.ts";

// A server on this machine is in reach of every web page the user looks at. A page can post forms and plain text anywhere,
// and with a DNS name that changes its address it can even read the answers. These rules tell such requests apart.

/** The parts of a request that the rules look at. */
export interface RequestFacts {
  readonly http2: boolean;
  readonly encrypted: boolean;
  readonly method: string;
  /** The Host header, or `:authority`. */
  readonly host: string | undefined;
  readonly origin: string | undefined;
  readonly contentType: string | undefined;
  readonly hasBody: boolean;
  /**
   * What it is for: the contract; a door besides gRPC and REST, some of which take forms; a port of a sandbox, by its path or by a
   * host name of its own.
   */
  readonly place: "api" | "door" | PortTarget["form"];
  /** The address of ours that the client connected to. */
  readonly localAddress: string | undefined;
}

export interface RequestPolicy {
  /** Names besides those of the loopback interface and the address connected to; lower case, without ports. */
  readonly allowedHosts: ReadonlySet<string>;
  /** "https://console.example.org" */
  readonly allowedOrigins: ReadonlySet<string>;
}

export interface Refusal {
  readonly httpStatus: number;
  readonly status: StatusName;
  readonly message: string;
  /** A caller with a valid key may pass all the same: no foreign page has one. */
  readonly keyHelps: boolean;
}

/** Why this request is not served; undefined when it is. */
export function refusalOf(facts: RequestFacts, policy: RequestPolicy): Refusal | undefined {
  return checkForm(facts) ?? checkHost(facts, policy) ?? checkOrigin(facts, policy) ?? checkContentType(facts);
}

/** A page of an allowed origin may read the answer. */
export function mayShare(facts: RequestFacts, policy: RequestPolicy): boolean {
  return facts.origin !== undefined && policy.allowedOrigins.has(facts.origin);
}

function checkForm({ host }: RequestFacts): Refusal | undefined {
  if (host !== undefined && nameOf(host) !== undefined) return undefined;
  return refusal(400, "INVALID_ARGUMENT", "the request names no valid host");
}

function checkHost(facts: RequestFacts, policy: RequestPolicy): Refusal | undefined {
  if (facts.place === "host") return undefined;
  // Pages of sandboxes have such names: nothing but ports is there, whoever asks.
  if (isPortHost(facts.host)) {
    return refusal(
      403,
      "PERMISSION_DENIED",
      "this host name is one of ports of sandboxes, of which none is served here",
    );
  }
  // Browsers speak HTTP/2 only under TLS, and there the certificate already ties the name to us.
  if (facts.http2 || facts.encrypted || isOurHost(facts, policy)) return undefined;
  const message = "the Host header names a host that this server does not answer for; add it to allowed_hosts";
  return { ...refusal(403, "PERMISSION_DENIED", message), keyHelps: true };
}

function checkOrigin(facts: RequestFacts, policy: RequestPolicy): Refusal | undefined {
  if (facts.origin === undefined || mayShare(facts, policy) || isOurOrigin(facts, policy)) return undefined;
  return refusal(403, "PERMISSION_DENIED", "requests from this Origin are not allowed; add it to allowed_origins");
}

const LOCAL_NAMES: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "::1"]);

function isOurHost({ host = "", localAddress = "" }: RequestFacts, policy: RequestPolicy): boolean {
  const name = nameOf(host);
  if (name === undefined) return false;
  return LOCAL_NAMES.has(name) || name === plainAddress(localAddress) || policy.allowedHosts.has(name);
}

function isOurOrigin(facts: RequestFacts, policy: RequestPolicy): boolean {
  const { origin = "", host = "", encrypted, place } = facts;
  const same = `${encrypted ? "https" : "http"}://${host.toLowerCase()}`;
  return originOf(origin) === originOf(same) && (encrypted || place === "host" || isOurHost(facts, policy));
}

/** "null", and whatever else is no address of a page, equals nothing. */
function originOf(text: string): string | symbol {
  return URL.canParse(text) ? new URL(text).origin : Symbol(text);
}

const CHANGING = new Set(["POST", "PUT", "PATCH", "DELETE"]);

/** None of these can be sent by a page without the browser asking us first. */
const CONTENT_TYPES =
  /^application\/(?:json|x-ndjson|octet-stream|x-tar|proto|x-protobuf|grpc(?:[+-][a-z+-]+)?|connect\+[a-z]+)\s*(?:;|$)/i;

const FORM = /^multipart\/form-data\s*;/i;

function checkContentType({ method, hasBody, contentType = "", place, origin }: RequestFacts): Refusal | undefined {
  if (place === "path" || place === "host") return undefined; // programs take what they like, and foreign origins were refused
  if (!CHANGING.has(method) || !hasBody || CONTENT_TYPES.test(contentType)) return undefined;
  // Browsers name the origin of every form they post: this is none of theirs.
  if (place === "door" && origin === undefined && FORM.test(contentType)) return undefined;
  // Browsers ask before any PUT, whatever it carries, and `curl -T` names no type.
  if (method === "PUT" && contentType === "") return undefined;
  const message = "the body needs a Content-Type of application/json (or of the protocol in use)";
  return refusal(415, "INVALID_ARGUMENT", message);
}

function refusal(httpStatus: number, status: StatusName, message: string): Refusal {
  return { httpStatus, status, message, keyHelps: false };
}

/** The name in "name:port", lower case; of "[::1]:80" it is "::1". */
function nameOf(host: string): string | undefined {
  const match = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?$/i.exec(host);
  const name = match?.[1] ?? match?.[2];
  // The rest of the way builds addresses from it.
  return name !== undefined && URL.canParse(`http://${host}`) ? name.toLowerCase() : undefined;
}

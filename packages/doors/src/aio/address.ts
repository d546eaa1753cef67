import type { IncomingHttpHeaders } from "node:http";

/** Each sandbox is below, by its id. */
export const AIO_PREFIX = "/aio/";

/** Where clients of AIO servers put their key. */
export function aioKeyIn(headers: IncomingHttpHeaders, target: string): string | undefined {
  const { "x-aio-api-key": header } = headers;
  if (typeof header === "string" && header !== "") return header;
  const at = target.indexOf("?");
  const key = at === -1 ? null : new URLSearchParams(target.slice(at)).get("api_key");
  return key === null || key === "" ? undefined : key;
}

import { invalid } from "../backend/isolation-error.ts";

// The grammar of references: [host[:port]/]name[/name…][:tag][@digest], all of it in characters that are harmless in a URL.
const HOST = String.raw`(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*(?::[0-9]{1,5})?`;
const NAME = String.raw`[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*`;
const REFERENCE = new RegExp(
  `^(?:${HOST}/)?${NAME}(?:/${NAME})*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[a-f0-9]{64})?$`,
);
const LONGEST_REFERENCE = 512;

/** The name of an image, or INVALID_ARGUMENT; no daemon is asked. */
export function checkImageName(name: string): string {
  if (name.length <= LONGEST_REFERENCE && REFERENCE.test(name)) return name;
  const hint = "name[:tag], as in debian:bookworm-slim";
  throw invalid(`${JSON.stringify(name.slice(0, 80))} is not the name of an image`, hint);
}

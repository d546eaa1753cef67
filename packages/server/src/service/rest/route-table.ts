import { invalid } from "../rpc/messages/fields.ts";
import type { HttpMethod, Route, Segment } from "./routes.ts";

/** What the routes say about one path. */
export interface PathRoutes {
  /** Every method that some route has for this path. */
  readonly methods: ReadonlySet<HttpMethod>;
  /** The route of a method with the path's values, decoded; throws when the path is not validly encoded. */
  route(method: HttpMethod): { readonly route: Route; readonly values: ReadonlyMap<string, string> } | undefined;
}

const RANKS: Readonly<Record<Segment["kind"], string>> = { literal: "0", one: "1", rest: "2" };

/** All routes; where several fit, a word beats `{field}` and that beats `{field=**}`, from the left. */
export class RouteTable {
  readonly #routes: readonly Route[];

  constructor(routes: readonly Route[]) {
    const rank = ({ segments }: Route): string => segments.map(({ kind }) => RANKS[kind]).join("");
    this.#routes = routes.toSorted((one, other) => rank(one).localeCompare(rank(other)));
    const known = new Map<string, Route>();
    for (const route of routes) {
      const words = route.segments.map((segment) => (segment.kind === "literal" ? segment.text : `{${segment.kind}}`));
      const shape = `${route.httpMethod} ${words.join("/")}`;
      const other = known.get(shape);
      if (other !== undefined)
        throw new Error(`${shape}: ${route.template} and ${other.template} cannot be told apart`);
      known.set(shape, route);
    }
  }

  /** undefined: no route has this path, whatever the method. */
  find(path: string): PathRoutes | undefined {
    if (!path.startsWith("/")) return undefined;
    const raw = path.slice(1).split("/");
    const words = raw.map(decodeSegment);
    const routes = this.#routes.filter(({ segments }) => fits(segments, words));
    if (routes.length === 0) return undefined;
    return {
      methods: new Set(routes.map(({ httpMethod }) => httpMethod)),
      route(method) {
        const route = routes.find(({ httpMethod }) => httpMethod === method);
        return route === undefined ? undefined : { route, values: valuesOf(route.segments, words, raw) };
      },
    };
  }
}

function fits(segments: readonly Segment[], words: readonly (string | undefined)[]): boolean {
  const isOpen = segments.at(-1)?.kind === "rest";
  if (isOpen ? words.length < segments.length : words.length !== segments.length) return false;
  return segments.every((segment, index) => segment.kind !== "literal" || segment.text === words[index]);
}

function valuesOf(
  segments: readonly Segment[],
  words: readonly (string | undefined)[],
  raw: readonly string[],
): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  for (const [index, segment] of segments.entries()) {
    if (segment.kind === "literal") continue;
    const end = segment.kind === "rest" ? undefined : index + 1;
    const texts = words.slice(index, end);
    if (texts.includes(undefined)) throw invalid(`${segment.field} in the path is not percent-encoded UTF-8`);
    const value = texts.join("/");
    if (segment.kind === "rest" && hasEmptyName(raw.slice(index), value)) {
      throw invalid(`${segment.field} in the path has an empty name: two slashes in a row, or one at the end`);
    }
    values.set(segment.field, value);
  }
  return values;
}

/** undefined: not percent-encoded UTF-8. */
function decodeSegment(text: string): string | undefined {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/**
 * A path with two slashes in a row, or one at its end, written as such or encoded, is a mistake of whoever put it together, and
 * must not mean the path without them. No path at all, and an encoded slash in front, are for the method to judge.
 */
function hasEmptyName(texts: readonly string[], value: string): boolean {
  if (texts.length > 1 && texts[0] === "") return true;
  const names = value.replace(/^\//, "");
  return names !== "" && names.split("/").includes("");
}

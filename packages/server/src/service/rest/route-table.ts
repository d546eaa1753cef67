import { invalidArgument } from "./errors.ts";
import type { HttpMethod, Route } from "./routes.ts";
import type { Segment } from "./template.ts";

/** What the routes say about one path. */
export interface Place {
  /** Every method that some route has for this path. */
  readonly methods: ReadonlySet<HttpMethod>;
  /** The route of a method with the path's values, decoded; throws when the path is not validly encoded. */
  route(method: HttpMethod): { readonly route: Route; readonly values: ReadonlyMap<string, string> } | undefined;
}

interface Node {
  readonly literals: Map<string, Node>;
  one: Node | undefined;
  rest: Map<HttpMethod, Route> | undefined;
  readonly here: Map<HttpMethod, Route>;
}

/** All routes as a tree of segments, built once; where several fit, a word beats `{field}` and that beats `{field=**}`. */
export class RouteTable {
  readonly #root = newNode();

  constructor(routes: readonly Route[]) {
    for (const route of routes) {
      const methods = this.#leaf(route.segments);
      const other = methods.get(route.httpMethod);
      if (other !== undefined) {
        throw new Error(`${route.httpMethod} ${route.template} and ${other.template} cannot be told apart`);
      }
      methods.set(route.httpMethod, route);
    }
  }

  /** undefined: no route has this path, whatever the method. */
  find(path: string): Place | undefined {
    if (!path.startsWith("/")) {
      return undefined;
    }
    const raw = path.slice(1).split("/");
    const candidates = [...leaves(this.#root, raw, 0)];
    if (candidates.length === 0) {
      return undefined;
    }
    return {
      methods: new Set(candidates.flatMap((leaf) => [...leaf.keys()])),
      route(method) {
        const route = candidates.find((leaf) => leaf.has(method))?.get(method);
        return route === undefined ? undefined : { route, values: valuesOf(route.segments, raw) };
      },
    };
  }

  #leaf(segments: readonly Segment[]): Map<HttpMethod, Route> {
    let node = this.#root;
    for (const segment of segments) {
      if (segment.kind === "rest") {
        node.rest ??= new Map();
        return node.rest;
      }
      node = segment.kind === "one" ? anyChild(node) : literalChild(node, segment.text);
    }
    return node.here;
  }
}

function newNode(): Node {
  return { literals: new Map(), one: undefined, rest: undefined, here: new Map() };
}

function anyChild(node: Node): Node {
  node.one ??= newNode();
  return node.one;
}

function literalChild(node: Node, text: string): Node {
  const child = node.literals.get(text) ?? newNode();
  node.literals.set(text, child);
  return child;
}

/** The leaves that fit, the most specific first. Each step goes one segment down, and a node has at most two ways. */
function* leaves(node: Node, raw: readonly string[], index: number): Generator<ReadonlyMap<HttpMethod, Route>> {
  const segment = raw[index];
  if (segment === undefined) {
    if (node.here.size > 0) {
      yield node.here;
    }
    return;
  }
  const literal = node.literals.get(decodeSegment(segment) ?? "");
  if (literal !== undefined) {
    yield* leaves(literal, raw, index + 1);
  }
  if (node.one !== undefined) {
    yield* leaves(node.one, raw, index + 1);
  }
  if (node.rest !== undefined) {
    yield node.rest;
  }
}

function valuesOf(segments: readonly Segment[], raw: readonly string[]): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  segments.forEach((segment, index) => {
    if (segment.kind !== "literal") {
      const texts = segment.kind === "rest" ? raw.slice(index) : raw.slice(index, index + 1);
      const value = texts.map((text) => decodeSegment(text) ?? refuseEncoding(segment.field)).join("/");
      if (segment.kind === "rest" && hasEmptyName(texts, value)) refuseEmptyName(segment.field);
      values.set(segment.field, value);
    }
  });
  return values;
}

/** undefined: not percent-encoded UTF-8. */
function decodeSegment(text: string): string | undefined {
  if (!text.includes("%")) {
    return text;
  }
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

function refuseEmptyName(field: string): never {
  throw invalidArgument(`${field} in the path has an empty name: two slashes in a row, or one at the end`);
}

function refuseEncoding(field: string): never {
  throw invalidArgument(`${field} in the path is not percent-encoded UTF-8`);
}

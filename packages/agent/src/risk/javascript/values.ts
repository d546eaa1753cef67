import { DepthMemo } from "../depth-memo.ts";
import type { Rule } from "../findings.ts";
import { UNKNOWN, worstPath } from "../places.ts";
import type { SyntaxNode } from "../syntax/node.ts";
import { decodeBase64, decodeHex } from "../text-codes.ts";
import { type Binding, type Bindings, moduleName, nameOf } from "./bindings.ts";
import { DECODERS, NAME_RULES } from "./names.ts";

/** What an expression may stand for. */
export interface Reference {
  /** "fs:.readFile", "process.env"; "?" is an unknown value, "f()" what f returns, "function" a literal one. */
  readonly name: string;
  /** It is reached in a way that hides the name. */
  readonly isHidden: boolean;
}

const MAX_DEPTH = 40;
const MAX_REFERENCES = 12;
const MAX_TEXT = 8192;
/** How many nodes are looked at when it is asked what a value is made of; one of more is taken for the worst. */
const MAX_INGREDIENTS = 4000;
const FUNCTIONS = new Set([
  "arrow_function",
  "function_expression",
  "generator_function",
  "class",
  "class_declaration",
]);
const LITERALS = new Set(["array", "object", "string", "template_string", "number", "regex", "true", "false"]);
const GLOBAL_OBJECTS = new Set(["globalThis", "global", "window", "self"]);
/** Types and marks of TypeScript around an expression. */
const WRAPPINGS = new Set([
  "parenthesized_expression",
  "await_expression",
  "as_expression",
  "satisfies_expression",
  "non_null_expression",
]);

/** What expressions mean, as far as it can be told without running them. */
export class Values {
  readonly #bindings: Bindings;
  readonly #references = new DepthMemo<readonly Reference[]>();
  readonly #texts = new DepthMemo<string | undefined>();
  readonly #made = new Map<string, boolean>();
  readonly #working = new Set<string>();

  constructor(bindings: Bindings) {
    this.#bindings = bindings;
  }

  references(node: SyntaxNode, depth = 0): readonly Reference[] {
    if (depth > MAX_DEPTH) return [];
    if (WRAPPINGS.has(node.type)) return node.named[0] === undefined ? [] : this.references(node.named[0], depth + 1);
    if (FUNCTIONS.has(node.type)) return [{ name: "function", isHidden: false }];
    if (LITERALS.has(node.type)) return [{ name: "value", isHidden: false }];
    switch (node.type) {
      case "identifier":
      case "shorthand_property_identifier":
        return this.#referencesOfName(nameOf(node), depth);
      case "import":
        return [{ name: "import", isHidden: false }];
      case "meta_property":
        return node.text.startsWith("import") ? [{ name: "import.meta", isHidden: false }] : [];
      case "this":
        // Outside of classes, `this` can be the global object.
        return node.around("class_body") === undefined ? [{ name: "globalThis", isHidden: false }] : [];
      case "member_expression": {
        const property = node.part("property");
        return property === undefined ? [] : this.#members(node.part("object"), nameOf(property), false, depth);
      }
      case "subscript_expression": {
        const index = node.part("index");
        const text = index === undefined ? undefined : this.text(index, depth + 1);
        const isKnown = text !== undefined && !text.includes(UNKNOWN);
        return this.#members(node.part("object"), isKnown ? text : "[]", true, depth);
      }
      case "sequence_expression":
        return node.named.length === 0 ? [] : this.references(node.named.at(-1)!, depth + 1);
      case "assignment_expression":
        return this.references(node.part("right")!, depth + 1);
      case "ternary_expression":
      case "binary_expression":
        return distinct(
          node.named.flatMap((child) => this.references(child, depth + 1)).filter(({ name }) => name !== "value"),
        );
      case "call_expression":
      case "new_expression":
        return this.#referencesOfCall(node, depth);
      default:
        return [];
    }
  }

  #referencesOfName(name: string, depth: number): readonly Reference[] {
    const known = this.#references.find(name, depth);
    if (known !== undefined) return known.value;
    const key = `name ${name}`;
    if (this.#working.has(key)) return [];
    this.#working.add(key);
    const bindings = this.#bindings.names.get(name);
    const found = (bindings ?? []).flatMap((binding) => this.#referencesOfBinding(binding, depth));
    // A global that has a rule stays what it is, whoever else binds its name elsewhere.
    if (bindings === undefined || lookUp(name) !== undefined) found.push({ name, isHidden: false });
    this.#working.delete(key);
    return this.#references.keep(name, depth, distinct(found));
  }

  #referencesOfBinding(binding: Binding, depth: number): readonly Reference[] {
    if (binding.kind === "import") return [{ name: binding.qualified, isHidden: false }];
    if (binding.kind !== "value") return [];
    if (binding.member === undefined) return this.references(binding.value, depth + 1);
    return this.#members(binding.value, binding.member, false, depth);
  }

  #members(
    object: SyntaxNode | undefined,
    property: string,
    isBySubscript: boolean,
    depth: number,
  ): readonly Reference[] {
    const owners = object === undefined ? [] : this.references(object, depth + 1);
    if (owners.length === 0) return [{ name: `?.${property}`, isHidden: false }];
    return distinct(owners.map((owner) => member(owner, property, isBySubscript)));
  }

  #referencesOfCall(node: SyntaxNode, depth: number): readonly Reference[] {
    const callee = node.part("function") ?? node.part("constructor");
    const [first, second] = argumentsOf(node);
    if (callee === undefined) return [];
    return distinct(
      this.references(callee, depth + 1).flatMap((called): readonly Reference[] => {
        if (isLoader(called.name)) {
          const module = first === undefined ? undefined : this.text(first, depth + 1);
          if (module === undefined || module.includes(UNKNOWN)) return [];
          return [{ name: moduleName(module), isHidden: called.isHidden || first!.type !== "string" }];
        }
        if (called.name === "Reflect.get") {
          const property = second === undefined ? undefined : this.text(second, depth + 1);
          return property === undefined ? [] : this.#members(first, property, true, depth);
        }
        if (called.name === "util:.promisify") return first === undefined ? [] : this.references(first, depth + 1);
        const bound = /^(.*)\.bind$/.exec(called.name)?.[1];
        if (bound !== undefined) return [{ name: bound, isHidden: called.isHidden }];
        return [{ name: `${called.name}()`, isHidden: called.isHidden }];
      }),
    );
  }

  /** The text that an expression comes to, with UNKNOWN for parts; undefined if nothing of it is known. */
  text(node: SyntaxNode, depth = 0): string | undefined {
    const text = depth > MAX_DEPTH ? undefined : this.#text(node, depth);
    return text !== undefined && text.length > MAX_TEXT ? text.slice(0, MAX_TEXT) + UNKNOWN : text;
  }

  #text(node: SyntaxNode, depth: number): string | undefined {
    if (WRAPPINGS.has(node.type)) return node.named[0] === undefined ? undefined : this.text(node.named[0], depth + 1);
    switch (node.type) {
      case "string":
        return plainText(node.text.slice(1, -1));
      case "number":
        return node.text;
      case "template_string":
        return node.children
          .map((part) => {
            if (part.type === "template_substitution")
              return (part.named[0] && this.text(part.named[0], depth + 1)) ?? UNKNOWN;
            return part.isNamed ? plainText(part.text) : "";
          })
          .join("");
      case "identifier":
        return this.#textOfName(nameOf(node), depth);
      case "binary_expression": {
        if (node.part("operator")?.type !== "+") return undefined;
        const [a, b] = [this.text(node.part("left")!, depth + 1), this.text(node.part("right")!, depth + 1)];
        return a === undefined && b === undefined ? undefined : (a ?? UNKNOWN) + (b ?? UNKNOWN);
      }
      case "member_expression":
      case "subscript_expression":
        return this.references(node, depth + 1).some(({ name }) => name === "process.env.HOME") ? "~" : undefined;
      case "call_expression":
        return this.#textOfCall(node, depth);
      default:
        return undefined;
    }
  }

  #textOfName(name: string, depth: number): string | undefined {
    const known = this.#texts.find(name, depth);
    if (known !== undefined) return known.value;
    const key = `text ${name}`;
    if (this.#working.has(key)) return undefined;
    const bindings = this.#bindings.names.get(name) ?? [];
    const assigned = bindings.filter((binding) => binding.kind === "value" && binding.member === undefined);
    const added = bindings.filter((binding) => binding.kind === "changed" && binding.operator === "+=");
    this.#working.add(key);
    const [values, additions] = [assigned, added].map((some) =>
      some.map((binding) => ("value" in binding && binding.value ? this.text(binding.value, depth + 1) : undefined)),
    ) as [(string | undefined)[], (string | undefined)[]];
    this.#working.delete(key);
    const isAll = assigned.length + added.length === bindings.length;
    const isBuiltUp = isAll && values.length === 1 && values[0] !== undefined;
    const text = isBuiltUp ? [...values, ...additions].map((part) => part ?? UNKNOWN).join("") : worstPath(values);
    return this.#texts.keep(name, depth, text);
  }

  #textOfCall(node: SyntaxNode, depth: number): string | undefined {
    const callee = node.part("function")!;
    const given = argumentsOf(node);
    const texts = (): string[] => given.map((part) => this.text(part, depth + 1) ?? UNKNOWN);
    for (const { name } of this.references(callee, depth + 1)) {
      switch (name) {
        case "String.fromCharCode":
        case "String.fromCodePoint":
          return texts().map(characterOf).join("");
        case "atob":
          return mapKnown(texts()[0], decodeBase64);
        case "Buffer.from().toString":
        case "buffer:.Buffer.from().toString":
          return this.#textOfBuffer(callee.part("object")!, depth);
        case "os:.homedir":
          return "~";
        case "path:.join":
        case "path:.resolve":
          return texts().reduce((path, part) => (part.startsWith("/") || path === "" ? part : `${path}/${part}`), "");
        case "String":
          return texts()[0];
      }
    }
    return callee.type === "member_expression" ? this.#textOfMethod(callee, texts(), depth) : undefined;
  }

  #textOfBuffer(buffer: SyntaxNode, depth: number): string | undefined {
    const [text, encoding] = buffer.type === "call_expression" ? argumentsOf(buffer) : [];
    if (text === undefined) return undefined;
    const plain = this.text(text, depth + 1);
    switch (encoding === undefined ? "utf8" : this.text(encoding, depth + 1)) {
      case "base64":
      case "base64url":
        return mapKnown(plain, decodeBase64);
      case "hex":
        return mapKnown(plain, decodeHex);
      default:
        return plain;
    }
  }

  #textOfMethod(callee: SyntaxNode, given: readonly string[], depth: number): string | undefined {
    const object = callee.part("object")!;
    const method = nameOf(callee.part("property")!);
    if (method === "join") return this.#list(object, depth + 1)?.join(given[0] ?? ",");
    const text = this.text(object, depth + 1);
    if (text === undefined) return undefined;
    switch (method) {
      case "concat":
        return text + given.join("");
      case "toString":
      case "trim":
      case "valueOf":
        return text;
      case "toLowerCase":
        return text.toLowerCase();
      case "toUpperCase":
        return text.toUpperCase();
      case "replace":
      case "replaceAll": {
        const [from = "", to = ""] = given;
        const isKnown = from !== "" && !from.includes(UNKNOWN) && text.length * (to.length + 1) <= MAX_TEXT;
        return isKnown ? text.replaceAll(from, to) : undefined;
      }
      default:
        return undefined;
    }
  }

  /** ["a", "b"], "ab".split(""), and the same reversed. */
  #list(node: SyntaxNode, depth: number): readonly string[] | undefined {
    if (depth > MAX_DEPTH) return undefined;
    if (node.type === "array") return node.named.slice(0, 1024).map((item) => this.text(item, depth + 1) ?? UNKNOWN);
    if (node.type === "identifier") {
      const bindings = this.#bindings.names.get(nameOf(node)) ?? [];
      const binding = bindings.length === 1 ? bindings[0] : undefined;
      const isPlain = binding?.kind === "value" && binding.member === undefined;
      return isPlain ? this.#list(binding.value, depth + 1) : undefined;
    }
    const callee = node.type === "call_expression" ? node.part("function") : undefined;
    if (callee?.type !== "member_expression") return undefined;
    const object = callee.part("object")!;
    const method = nameOf(callee.part("property")!);
    if (method === "reverse" || method === "toReversed") return this.#list(object, depth + 1)?.toReversed();
    if (method !== "split") return undefined;
    const [separator] = argumentsOf(node);
    const at = separator === undefined ? undefined : this.text(separator, depth + 1);
    return at === undefined ? undefined : this.text(object, depth + 1)?.split(at);
  }

  /** The words of a list of arguments. */
  words(node: SyntaxNode | undefined): readonly string[] {
    return (node === undefined ? undefined : this.#list(node, 0)) ?? [];
  }

  /** Whether a value is made by a decoder, here or in the statements that made its parts. */
  isDecoded(node: SyntaxNode): boolean {
    return this.#isMadeBy(node, "decoded", (inner) => {
      if (inner.type !== "call_expression" && inner.type !== "new_expression") return isReversing(inner);
      const callee = inner.part("function") ?? inner.part("constructor");
      return callee !== undefined && this.references(callee).some(({ name }) => DECODERS.has(name));
    });
  }

  /** Whether a value comes over the network. */
  isRemote(node: SyntaxNode): boolean {
    return this.#isMadeBy(node, "remote", (inner) => {
      if (inner.type !== "call_expression") return false;
      return this.references(inner.part("function")!).some(({ name }) => lookUp(name)?.pattern === "network");
    });
  }

  #isMadeBy(node: SyntaxNode, what: string, test: (inner: SyntaxNode) => boolean): boolean {
    let ingredients = 0;
    for (const inner of node.all()) {
      if (++ingredients > MAX_INGREDIENTS) return true;
      if (test(inner)) return true;
      if (inner.type !== "identifier") continue;
      const key = `${what} ${nameOf(inner)}`;
      const known = this.#made.get(key);
      if (known === true) return true;
      if (known !== undefined || this.#working.size > MAX_DEPTH) continue;
      // False while it is worked out, so that circles end.
      this.#made.set(key, false);
      this.#working.add(key);
      const bindings = this.#bindings.names.get(nameOf(inner)) ?? [];
      const isMade = bindings.some(
        (binding) => "value" in binding && binding.value && this.#isMadeBy(binding.value, what, test),
      );
      this.#working.delete(key);
      this.#made.set(key, isMade);
      if (isMade) return true;
    }
    return false;
  }
}

/** The rule of the longest listed beginning of a qualified name. */
export function lookUp(name: string): Rule | undefined {
  let key = name.replaceAll("()", "");
  for (let cuts = 0; cuts < 12; cuts++) {
    if (Object.hasOwn(NAME_RULES, key)) return NAME_RULES[key];
    const dot = key.lastIndexOf(".");
    if (dot === -1) return undefined;
    key = key.slice(0, dot);
  }
  return undefined;
}

export function isLoader(name: string): boolean {
  return (
    name === "require" ||
    name === "import" ||
    name === "process.getBuiltinModule" ||
    name === "module:.createRequire()" ||
    /^(?:process\.mainModule|module|\?\.mainModule|.*\.mainModule)\.require$/.test(name) ||
    name === "module:._load"
  );
}

export function argumentsOf(call: SyntaxNode): readonly SyntaxNode[] {
  const list = call.part("arguments");
  if (list === undefined) return [];
  return list.type === "arguments" ? list.named : [list];
}

function member(owner: Reference, property: string, isBySubscript: boolean): Reference {
  if (GLOBAL_OBJECTS.has(owner.name)) {
    if (property === "[]") return { name: `${owner.name}[]`, isHidden: true };
    return { name: property, isHidden: owner.isHidden || isBySubscript };
  }
  if (property === "constructor") {
    const isFunction =
      owner.name === "function" || owner.name === "constructor" || /getPrototypeOf\(\)$/.test(owner.name);
    return isFunction ? { name: "Function", isHidden: true } : { name: "constructor", isHidden: owner.isHidden };
  }
  // The members of modules by default and of what is called indirectly are the thing itself.
  if (/^(?:call|apply)$/.test(property) || (property === "default" && owner.name.endsWith(":"))) return owner;
  const name = `${owner.name}.${property}`.slice(0, 256);
  // obj["key"] hides something only if the key is what makes it dangerous.
  const isHidden = owner.isHidden || (isBySubscript && lookUp(name) !== lookUp(owner.name));
  return { name, isHidden };
}

function distinct(references: readonly Reference[]): readonly Reference[] {
  const byName = new Map<string, Reference>();
  for (const reference of references) {
    const known = byName.get(reference.name);
    if (known === undefined || (!known.isHidden && reference.isHidden)) byName.set(reference.name, reference);
    if (byName.size >= MAX_REFERENCES) break;
  }
  return [...byName.values()];
}

function isReversing(node: SyntaxNode): boolean {
  return node.type === "property_identifier" && /^(?:reverse|toReversed|fromCharCode|fromCodePoint)$/.test(node.text);
}

function mapKnown(text: string | undefined, change: (text: string) => string | undefined): string | undefined {
  return text === undefined || text.includes(UNKNOWN) ? undefined : change(text);
}

function characterOf(text: string): string {
  const code = Number(text);
  return Number.isInteger(code) && code >= 0 && code <= 0x10ffff ? String.fromCodePoint(code) : UNKNOWN;
}

/** The escapes of a JavaScript string. */
function plainText(text: string): string {
  if (!text.includes("\\")) return text;
  return text.replace(
    /\\(?:x([0-9a-fA-F]{2})|u\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})|([0-7]{1,3})|(\n)|(.))/g,
    (_whole, hex, braced, plain, octal, newline, other) => {
      const code = hex ?? braced ?? plain;
      if (code !== undefined) return characterOf(String(Number.parseInt(code, 16)));
      if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8));
      if (newline !== undefined) return "";
      return ESCAPES[other] ?? other;
    },
  );
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f", v: "\v" };

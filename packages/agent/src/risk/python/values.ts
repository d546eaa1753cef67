import { DepthMemo } from "../depth-memo.ts";
import { UNKNOWN, worstPath } from "../places.ts";
import type { SyntaxNode } from "../syntax/node.ts";
import { decodeBase64, decodeHex, reverse, rot13 } from "../text-codes.ts";
import type { Bindings } from "./bindings.ts";
import { nameOf } from "./bindings.ts";
import { DECODERS, NAME_RULES } from "./names.ts";

/** What an expression may stand for. */
export interface Reference {
  /** "os.system"; "?" is an unknown value, "f()" what f returns. */
  readonly name: string;
  /** It is reached in a way that hides the name. */
  readonly isHidden: boolean;
}

const MAX_DEPTH = 40;
const MAX_REFERENCES = 12;
const MAX_TEXT = 8192;
/** How many nodes are looked at when it is asked what a value is made of; one of more is taken for the worst. */
const MAX_INGREDIENTS = 4000;

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

  /** The functions, modules and so on that an expression may be. */
  references(node: SyntaxNode, depth = 0): readonly Reference[] {
    if (depth > MAX_DEPTH) return [];
    switch (node.type) {
      case "identifier":
        return this.#referencesOfName(nameOf(node), depth);
      case "attribute":
        return this.#member(node.part("object"), nameOf(node.part("attribute")!), false, depth);
      case "subscript":
        return this.#referencesOfSubscript(node, depth);
      case "call":
        return this.#referencesOfCall(node, depth);
      case "parenthesized_expression":
      case "await":
        return node.named[0] === undefined ? [] : this.references(node.named[0], depth + 1);
      case "named_expression":
        return this.references(node.part("value")!, depth + 1);
      case "conditional_expression":
      case "boolean_operator":
        return node.named.flatMap((child) => this.references(child, depth + 1)).slice(0, MAX_REFERENCES);
      case "binary_operator": {
        const left = node.part("left");
        // Path("a") / "b" is a Path.
        const isPath = node.part("operator")?.type === "/" && left !== undefined;
        return isPath ? this.references(left, depth + 1).filter((known) => isPathValue(known.name)) : [];
      }
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
    const found: Reference[] = [];
    const bindings = this.#bindings.names.get(name);
    for (const binding of bindings ?? []) {
      if (binding.kind === "import") found.push({ name: binding.qualified, isHidden: false });
      else if (binding.kind === "value") found.push(...this.references(binding.value, depth + 1));
    }
    // A builtin that has a rule stays what it is, whoever else binds its name, elsewhere or later.
    const builtin = name === "__builtins__" ? "builtins" : `builtins.${name}`;
    if (bindings === undefined || NAME_RULES[builtin] !== undefined) found.push({ name: builtin, isHidden: false });
    if (bindings === undefined)
      for (const star of this.#bindings.stars) found.push({ name: `${star}.${name}`, isHidden: false });
    this.#working.delete(key);
    return this.#references.keep(name, depth, distinct(found));
  }

  #member(object: SyntaxNode | undefined, attribute: string, isHidden: boolean, depth: number): readonly Reference[] {
    const owners = object === undefined ? [] : this.references(object, depth + 1);
    if (owners.length === 0) return [{ name: `?.${attribute}`, isHidden }];
    return distinct(owners.map((owner) => member(owner, attribute, isHidden)));
  }

  #referencesOfSubscript(node: SyntaxNode, depth: number): readonly Reference[] {
    const value = node.part("value");
    const key = node.part("subscript");
    if (value === undefined || key === undefined) return [];
    const text = this.text(key, depth + 1);
    return distinct(
      this.references(value, depth + 1).flatMap((owner): Reference[] => {
        const name = owner.name.replace(/\.__dict__$/, "");
        if (text === undefined || text.includes(UNKNOWN)) return [{ name: `${name}[]`, isHidden: owner.isHidden }];
        if (name === "sys.modules") return [{ name: text, isHidden: true }];
        if (name === "os.environ" || name === "os.environb")
          return [{ name: `${name}.get()`, isHidden: owner.isHidden }];
        if (
          name.startsWith("builtins.globals()") ||
          name.startsWith("builtins.locals()") ||
          name === "builtins.vars()"
        ) {
          return this.#referencesOfName(text, depth + 1).map((found) => ({ ...found, isHidden: true }));
        }
        if (name.startsWith("dict of ")) return [member({ name: name.slice(8), isHidden: true }, text, true)];
        if (owner.name.endsWith(".__dict__") || name === "builtins")
          return [member(owner, text, true)].map(withoutDict);
        return [{ name: `${name}[]`, isHidden: owner.isHidden }];
      }),
    );
  }

  #referencesOfCall(node: SyntaxNode, depth: number): readonly Reference[] {
    const callee = node.part("function");
    const given = argumentsOf(node);
    if (callee === undefined) return [];
    return distinct(
      this.references(callee, depth + 1).flatMap((called): readonly Reference[] => {
        const [first, second] = given;
        switch (called.name) {
          case "builtins.__import__":
          case "importlib.import_module":
          case "importlib.__import__": {
            const module = first === undefined ? undefined : this.text(first, depth + 1);
            if (module === undefined || module.includes(UNKNOWN)) return [];
            return [{ name: module, isHidden: called.isHidden || first!.type !== "string" }];
          }
          case "builtins.getattr": {
            const attribute = second === undefined ? undefined : this.text(second, depth + 1);
            if (attribute === undefined || attribute.includes(UNKNOWN)) return [];
            return this.#member(first, attribute, true, depth);
          }
          case "builtins.vars":
            if (first === undefined) return [{ name: "builtins.vars()", isHidden: true }];
            return this.references(first, depth + 1).map((owner) => ({
              name: `dict of ${owner.name}`,
              isHidden: true,
            }));
          case "functools.partial":
            return first === undefined ? [] : this.references(first, depth + 1);
          case "operator.attrgetter()": {
            const attribute = this.#attrgetterText(callee, depth);
            return attribute === undefined ? [] : this.#member(first, attribute, true, depth);
          }
          default:
            return [{ name: `${called.name}()`, isHidden: called.isHidden }];
        }
      }),
    );
  }

  #attrgetterText(callee: SyntaxNode, depth: number): string | undefined {
    const call = callee.type === "call" ? callee : this.#onlyValue(callee);
    const first = call?.type === "call" ? argumentsOf(call)[0] : undefined;
    const text = first === undefined ? undefined : this.text(first, depth + 1);
    return text?.includes(UNKNOWN) ? undefined : text;
  }

  #onlyValue(node: SyntaxNode): SyntaxNode | undefined {
    const bindings = node.type === "identifier" ? this.#bindings.names.get(nameOf(node)) : undefined;
    const binding = bindings?.length === 1 ? bindings[0] : undefined;
    return binding?.kind === "value" ? binding.value : undefined;
  }

  /** The text that an expression comes to, with UNKNOWN for parts; undefined if nothing of it is known. */
  text(node: SyntaxNode, depth = 0): string | undefined {
    const text = depth > MAX_DEPTH ? undefined : this.#text(node, depth);
    return text !== undefined && text.length > MAX_TEXT ? text.slice(0, MAX_TEXT) + UNKNOWN : text;
  }

  #text(node: SyntaxNode, depth: number): string | undefined {
    switch (node.type) {
      case "string":
        return this.#textOfString(node, depth);
      case "concatenated_string":
        return node.named.map((part) => this.text(part, depth + 1) ?? UNKNOWN).join("");
      case "integer":
        return node.text;
      case "parenthesized_expression":
        return node.named.length === 1 ? this.text(node.named[0]!, depth + 1) : undefined;
      case "named_expression":
        return this.text(node.part("value")!, depth + 1);
      case "identifier":
        return this.#textOfName(nameOf(node), depth);
      case "binary_operator":
        return this.#textOfOperator(node, depth);
      case "subscript": {
        const key = node.part("subscript")?.text.replaceAll(" ", "");
        const value = node.part("value");
        if (value === undefined) return undefined;
        if (key === "::-1") return mapKnown(this.text(value, depth + 1), reverse);
        const isHome = this.references(node, depth + 1).some((known) => known.name === "os.environ.get()");
        return isHome && /^['"]HOME['"]$/.test(key ?? "") ? "~" : undefined;
      }
      case "call":
        return this.#textOfCall(node, depth);
      case "attribute":
        return this.references(node, depth + 1).some((known) => known.name === "sys.executable")
          ? "python3"
          : undefined;
      default:
        return undefined;
    }
  }

  #textOfString(node: SyntaxNode, depth: number): string {
    const isRaw = /r/i.test(node.children[0]?.text ?? "");
    let text = "";
    for (const part of node.children) {
      if (part.type === "interpolation") {
        const expression = part.part("expression");
        text += (expression === undefined ? undefined : this.text(expression, depth + 1)) ?? UNKNOWN;
      } else if (part.type === "string_content") {
        text += isRaw ? part.text : plainText(part.text);
      }
    }
    return text;
  }

  #textOfName(name: string, depth: number): string | undefined {
    const known = this.#texts.find(name, depth);
    if (known !== undefined) return known.value;
    const key = `text ${name}`;
    if (this.#working.has(key)) return undefined;
    const all = this.#bindings.names.get(name) ?? [];
    const bindings = all.filter((binding) => "value" in binding);
    this.#working.add(key);
    const parts = bindings.map((binding) => ({ kind: binding.kind, text: this.text(binding.value, depth + 1) }));
    this.#working.delete(key);
    const values = parts.filter((part) => part.kind === "value").map((part) => part.text);
    const isBuiltUp = values.length === 1 && values[0] !== undefined && bindings.length === all.length;
    const text = isBuiltUp ? parts.map((part) => part.text ?? UNKNOWN).join("") : worstPath(values);
    return this.#texts.keep(name, depth, text);
  }

  #textOfOperator(node: SyntaxNode, depth: number): string | undefined {
    const operator = node.part("operator")?.type;
    const left = node.part("left");
    const right = node.part("right");
    if (left === undefined || right === undefined) return undefined;
    if (operator === "+") {
      const [a, b] = [this.text(left, depth + 1), this.text(right, depth + 1)];
      return a === undefined && b === undefined ? undefined : (a ?? UNKNOWN) + (b ?? UNKNOWN);
    }
    if (operator === "/" && this.references(node, depth + 1).length > 0) {
      return join([this.text(left, depth + 1) ?? UNKNOWN, this.text(right, depth + 1) ?? UNKNOWN]);
    }
    if (operator === "%") return this.text(left, depth + 1)?.replace(/%[sdr]/g, UNKNOWN);
    return undefined;
  }

  #textOfCall(node: SyntaxNode, depth: number): string | undefined {
    const callee = node.part("function");
    const given = argumentsOf(node);
    if (callee === undefined) return undefined;
    const first = (): string | undefined => (given[0] === undefined ? undefined : this.text(given[0], depth + 1));
    for (const { name } of this.references(callee, depth + 1)) {
      switch (name) {
        case "builtins.chr": {
          const code = Number(first());
          return Number.isInteger(code) && code >= 0 && code <= 0x10ffff ? String.fromCodePoint(code) : undefined;
        }
        case "builtins.str":
        case "builtins.bytes":
        case "os.path.expanduser":
        case "os.path.abspath":
        case "os.path.realpath":
        case "os.path.normpath":
        case "os.fspath":
          return first();
        case "base64.b64decode":
        case "base64.urlsafe_b64decode":
        case "base64.decodebytes":
        case "binascii.a2b_base64":
          return mapKnown(first(), decodeBase64);
        case "builtins.bytes.fromhex":
        case "builtins.bytearray.fromhex":
        case "binascii.unhexlify":
        case "binascii.a2b_hex":
          return mapKnown(first(), decodeHex);
        case "codecs.decode":
          return /rot_?13/.test(given[1]?.text ?? "") ? mapKnown(first(), rot13) : undefined;
        case "os.path.join":
        case "pathlib.Path":
        case "pathlib.PurePath":
        case "pathlib.PosixPath":
          return given.length === 0 ? "." : join(given.map((part) => this.text(part, depth + 1) ?? UNKNOWN));
        case "pathlib.Path.home":
          return "~";
        case "os.getenv":
        case "os.environ.get":
          return first() === "HOME" ? "~" : undefined;
      }
    }
    if (callee.type === "attribute") return this.#textOfMethod(callee, given, depth);
    return undefined;
  }

  #textOfMethod(callee: SyntaxNode, given: readonly SyntaxNode[], depth: number): string | undefined {
    const object = callee.part("object")!;
    const text = this.text(object, depth + 1);
    switch (nameOf(callee.part("attribute")!)) {
      case "join": {
        const parts = given[0] === undefined ? undefined : this.#listOfTexts(given[0], depth);
        return text === undefined || parts === undefined ? undefined : parts.join(text);
      }
      case "replace": {
        const [from, to] = given.map((part) => this.text(part, depth + 1));
        const isKnown = text !== undefined && from !== undefined && from !== "" && to !== undefined;
        // What replaces may be longer than what is replaced, again and again.
        return isKnown && text.length * (to.length + 1) <= MAX_TEXT ? text.replaceAll(from, to) : undefined;
      }
      case "decode":
      case "encode":
        return /rot_?13/.test(given[0]?.text ?? "") ? mapKnown(text, rot13) : text;
      case "lower":
        return text?.toLowerCase();
      case "upper":
        return text?.toUpperCase();
      case "strip":
        return text?.trim();
      case "expanduser":
      case "resolve":
      case "absolute":
        return text;
      case "joinpath":
        return join([text ?? UNKNOWN, ...given.map((part) => this.text(part, depth + 1) ?? UNKNOWN)]);
      default:
        return undefined;
    }
  }

  /** ["a", "b"], map(chr, [97, 98]), reversed text. */
  #listOfTexts(node: SyntaxNode, depth: number): readonly string[] | undefined {
    if (node.type === "list" || node.type === "tuple") {
      return node.named.slice(0, 1024).map((item) => this.text(item, depth + 1) ?? UNKNOWN);
    }
    const value = this.#onlyValue(node);
    if (value !== undefined && depth < MAX_DEPTH) return this.#listOfTexts(value, depth + 1);
    if (node.type !== "call") return undefined;
    const called = this.references(node.part("function")!, depth + 1).map((known) => known.name);
    const [first, second] = argumentsOf(node);
    if (called.includes("builtins.reversed") && first !== undefined) {
      const text = this.text(first, depth + 1);
      return text === undefined ? undefined : [reverse(text)];
    }
    const isCharacters = first !== undefined && this.references(first).some((known) => known.name === "builtins.chr");
    if (!called.includes("builtins.map") || second === undefined || !isCharacters) return undefined;
    return this.#listOfTexts(second, depth + 1)?.map((code) => {
      const number = Number(code);
      return Number.isInteger(number) && number >= 0 && number <= 0x10ffff ? String.fromCodePoint(number) : UNKNOWN;
    });
  }

  /** The words of a list of arguments, for programs that are run without a shell. */
  words(node: SyntaxNode): readonly string[] | undefined {
    const list = node.type === "identifier" ? this.#onlyValue(node) : node;
    if (list === undefined || (list.type !== "list" && list.type !== "tuple")) return undefined;
    return list.named.slice(0, 256).map((item) => this.text(item) ?? UNKNOWN);
  }

  /** Whether a value is made by a decoder, here or in the statements that made its parts. */
  isDecoded(node: SyntaxNode): boolean {
    return this.#isMadeBy(node, "decoded", (inner) => {
      if (inner.type === "call") {
        const callee = inner.part("function")!;
        const isDecoder = this.references(callee).some((known) => DECODERS.has(known.name));
        return (
          isDecoder ||
          /^\.?(?:decompress|fromhex|b64decode)$/.test(callee.part("attribute")?.text ?? "") ||
          isRotation(inner)
        );
      }
      if (inner.type === "identifier") return this.references(inner).some((known) => DECODERS.has(known.name));
      return inner.type === "slice" && inner.text.replaceAll(" ", "") === "::-1";
    });
  }

  /** Whether a value comes over the network. */
  isRemote(node: SyntaxNode): boolean {
    return this.#isMadeBy(node, "remote", (inner) => {
      if (inner.type !== "call") return false;
      return this.references(inner.part("function")!).some((known) => lookUp(known.name)?.pattern === "network");
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
      const isMade = bindings.some((binding) => "value" in binding && this.#isMadeBy(binding.value, what, test));
      this.#working.delete(key);
      this.#made.set(key, isMade);
      if (isMade) return true;
    }
    return false;
  }
}

/** The rule of the longest listed beginning of a qualified name; also of a module that is reached through another. */
export function lookUp(name: string): (typeof NAME_RULES)[string] | undefined {
  const parts = name.split(".").slice(0, 12);
  for (let from = 0; from < parts.length; from++) {
    const first = parts[from]!.replace(/^_+(?=\w)/, "");
    for (let to = parts.length; to > from; to--) {
      const candidate = from === 0 ? parts.slice(from, to) : [first, ...parts.slice(from + 1, to)];
      const key = candidate.join(".").replace(/\(\)$/, "");
      // "time.time.open" is no module "open": only modules are reached through others.
      if (from > 0 && candidate.length < 2 && !MODULES_INSIDE.has(key)) continue;
      if (from > 0 && !MODULES_INSIDE.has(first)) continue;
      // The rule of the whole module is not one of each builtin function.
      if (key === "builtins" && parts.length > to) continue;
      if (Object.hasOwn(NAME_RULES, key)) return NAME_RULES[key];
    }
  }
  return undefined;
}

const MODULES_INSIDE = new Set([
  "os",
  "sys",
  "subprocess",
  "codecs",
  "builtins",
  "socket",
  "io",
  "importlib",
  "shutil",
  "ctypes",
]);

/** A qualified name without the modules it was reached through: "json.codecs.open" is "codecs.open". */
export function innermost(name: string): string {
  const parts = name.split(".");
  for (let from = parts.length - 2; from > 0; from--) {
    const first = parts[from]!.replace(/^_+(?=\w)/, "");
    if (MODULES_INSIDE.has(first)) return [first, ...parts.slice(from + 1)].join(".");
  }
  return name;
}

/** The arguments that are not given by name. */
export function argumentsOf(call: SyntaxNode): readonly SyntaxNode[] {
  const list = call.part("arguments");
  if (list === undefined) return [];
  // sum(x for x in y)
  if (list.type !== "argument_list") return [list];
  return list.named.filter((child) => child.type !== "keyword_argument");
}

export function namedArgument(call: SyntaxNode, name: string): SyntaxNode | undefined {
  const argument = call
    .part("arguments")
    ?.children.find((child) => child.type === "keyword_argument" && child.part("name")?.text === name);
  return argument?.part("value");
}

function member(owner: Reference, attribute: string, isHidden: boolean): Reference {
  return { name: `${owner.name}.${attribute}`.slice(0, 256), isHidden: owner.isHidden || isHidden };
}

function withoutDict(reference: Reference): Reference {
  return { ...reference, name: reference.name.replace(".__dict__.", ".") };
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

/** Whether a qualified name is that of a path object. */
export function isPathValue(name: string): boolean {
  return /^pathlib\.\w+(?:\.home|\.cwd)?\(\)(?:\.(?:expanduser|resolve|absolute|joinpath)\(\)|\.parent)*$/.test(name);
}

function isRotation(call: SyntaxNode): boolean {
  const attribute = call.part("function")?.part("attribute")?.text;
  return (
    attribute === "decode" && /rot_?13|hex|base64|unicode_escape/.test(call.part("arguments")?.text.slice(0, 64) ?? "")
  );
}

function join(parts: readonly string[]): string {
  return parts.reduce(
    (path, part) => (part.startsWith("/") || path === "" ? part : `${path.replace(/\/$/, "")}/${part}`),
    "",
  );
}

function mapKnown(text: string | undefined, change: (text: string) => string | undefined): string | undefined {
  return text === undefined || text.includes(UNKNOWN) ? undefined : change(text);
}

/** The escapes of a Python string. */
function plainText(text: string): string {
  if (!text.includes("\\")) return text;
  return text.replace(
    /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})|N\{[^}]*\}|(\n)|(.))/g,
    (_whole, hex, short, long, octal, newline, other) => {
      const code = hex ?? short ?? long;
      if (code !== undefined) return character(Number.parseInt(code, 16));
      if (octal !== undefined) return character(Number.parseInt(octal, 8));
      if (newline !== undefined) return "";
      return ESCAPES[other] ?? (other === undefined ? UNKNOWN : `\\${other}`);
    },
  );
}

const ESCAPES: Readonly<Record<string, string>> = {
  n: "\n",
  t: "\t",
  r: "\r",
  "\\": "\\",
  "'": "'",
  '"': '"',
  a: "\x07",
  b: "\b",
  f: "\f",
  v: "\v",
};

function character(code: number): string {
  return code <= 0x10ffff ? String.fromCodePoint(code) : UNKNOWN;
}

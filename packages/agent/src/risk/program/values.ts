import { Origins } from "../declarations.ts";
import { each } from "../findings.ts";
import { UNKNOWN, worstPath } from "../places.ts";
import type { SyntaxNode } from "../syntax/node.ts";
import { character, joinPath, reverse, rot13 } from "../text-codes.ts";
import type { Binding, Bindings, Dialect, Expression, Reference } from "./expression.ts";

const MAX_DEPTH = 40;
const MAX_REFERENCES = 12;
const MAX_TEXT = 8192;

type Call = Expression & { readonly kind: "call" };

/** What expressions mean, as far as it can be told without running them. */
export class Values {
  readonly #dialect: Dialect;
  readonly #bindings: Bindings;
  readonly #origins: Origins;
  readonly #references = new Map<string, readonly Reference[]>();
  readonly #texts = new Map<string, string | undefined>();

  constructor(dialect: Dialect, bindings: Bindings) {
    this.#dialect = dialect;
    this.#bindings = bindings;
    this.#origins = new Origins(
      (node) => {
        const expression = dialect.read(node);
        return expression.kind === "name" ? expression.name : undefined;
      },
      (name) => (bindings.names.get(name) ?? []).flatMap((binding) => ("value" in binding ? [binding.value] : [])),
    );
  }

  /** The functions, modules and so on that an expression may be. */
  references(node: SyntaxNode, depth = 0): readonly Reference[] {
    if (depth > MAX_DEPTH) return [];
    const { item, member } = this.#dialect;
    const expression = this.#dialect.read(node);
    switch (expression.kind) {
      case "name":
        return this.#referencesOfName(expression.name, depth);
      case "known":
        return [{ name: expression.name, isHidden: false }];
      case "member":
        return this.#members(expression.object, (owner) => member(owner, expression.name, false), depth);
      case "item": {
        const text = this.#known(expression.key, depth);
        return this.#members(expression.object, (owner) => item(owner, text), depth);
      }
      case "call":
        return this.#referencesOfCall(expression, depth);
      case "either":
        return distinct(expression.options.flatMap((option) => this.references(option, depth + 1)));
      case "below":
        return this.references(expression.left, depth + 1);
      default:
        return [];
    }
  }

  #members(object: SyntaxNode, take: (owner: Reference) => Reference, depth: number): readonly Reference[] {
    const owners = this.references(object, depth + 1);
    return distinct((owners.length === 0 ? [{ name: "?", isHidden: false }] : owners).map(take));
  }

  #referencesOfName(name: string, depth: number): readonly Reference[] {
    const known = this.#references.get(name);
    if (known !== undefined) return known;
    // Nothing while it is worked out, so that circles end.
    this.#references.set(name, []);
    const bindings = this.#bindings.names.get(name);
    const found = (bindings ?? []).flatMap((binding) => this.#referencesOfBinding(binding, depth));
    // What has a rule stays what it is, whoever else binds its name, elsewhere or later.
    const global = this.#dialect.globalName(name);
    const others = bindings === undefined ? this.#bindings.stars.map((star) => `${star}.${name}`) : [];
    if (bindings === undefined || this.#dialect.lookUp(global) !== undefined) others.unshift(global);
    const all = distinct([...found, ...others.map((other) => ({ name: other, isHidden: false }))]);
    this.#references.set(name, all);
    return all;
  }

  #referencesOfBinding(binding: Binding, depth: number): readonly Reference[] {
    if (binding.kind === "import") return [{ name: binding.qualified, isHidden: false }];
    if (binding.kind !== "value") return [];
    const { member, value } = binding;
    if (member === undefined) return this.references(value, depth + 1);
    return this.#members(value, (owner) => this.#dialect.member(owner, member, false), depth);
  }

  #referencesOfCall({ callee, given }: Call, depth: number): readonly Reference[] {
    const dialect = this.#dialect;
    const [first, second] = given;
    const taken = (name: string | undefined): readonly Reference[] => {
      if (first === undefined || name === undefined) return [];
      return this.#members(first, (owner) => dialect.member(owner, name, true), depth);
    };
    return distinct(
      this.references(callee, depth + 1).flatMap((called): readonly Reference[] => {
        if (dialect.isLoader(called.name)) {
          const module = this.#known(first, depth);
          if (module === undefined) return [];
          return [{ name: dialect.moduleName(module), isHidden: called.isHidden || first!.type !== "string" }];
        }
        if (GETTER.test(called.name)) return taken(this.#known(second, depth));
        // attrgetter("name")(object)
        const inner = called.name === "operator.attrgetter()" ? dialect.read(callee) : undefined;
        if (inner?.kind === "call") return taken(this.#known(inner.given[0], depth));
        if (called.name === "builtins.vars" && first !== undefined) return taken("__dict__");
        if (PASSING.test(called.name)) return first === undefined ? [] : this.references(first, depth + 1);
        const bound = /^(.*)\.bind$/.exec(called.name)?.[1];
        return [{ name: bound ?? `${called.name}()`, isHidden: called.isHidden }];
      }),
    );
  }

  /** The text that an expression comes to, with UNKNOWN for parts; undefined if nothing of it is known. */
  text(node: SyntaxNode | undefined, depth = 0): string | undefined {
    const text = node === undefined || depth > MAX_DEPTH ? undefined : this.#text(node, depth);
    return text !== undefined && text.length > MAX_TEXT ? text.slice(0, MAX_TEXT) + UNKNOWN : text;
  }

  #known(node: SyntaxNode | undefined, depth: number): string | undefined {
    const text = this.text(node, depth + 1);
    return text?.includes(UNKNOWN) ? undefined : text;
  }

  #text(node: SyntaxNode, depth: number): string | undefined {
    const expression = this.#dialect.read(node);
    const part = (of: SyntaxNode): string => this.text(of, depth + 1) ?? UNKNOWN;
    switch (expression.kind) {
      case "text":
        return expression.parts.map((piece) => (typeof piece === "string" ? piece : part(piece))).join("");
      case "name":
        return this.#textOfName(expression.name, depth);
      case "either":
        return expression.options.length === 1 ? this.text(expression.options[0], depth + 1) : undefined;
      case "sum": {
        const [left, right] = [part(expression.left), part(expression.right)];
        return left === UNKNOWN && right === UNKNOWN ? undefined : left + right;
      }
      case "below":
        return joinPath([part(expression.left), part(expression.right)]);
      case "reversed":
        return reverse(this.text(expression.of, depth + 1));
      case "call":
        return this.#textOfCall(expression, depth);
      case "member":
      case "item":
        return this.#textOfReference(node, [], depth);
      default:
        return undefined;
    }
  }

  #textOfName(name: string, depth: number): string | undefined {
    if (this.#texts.has(name)) return this.#texts.get(name);
    this.#texts.set(name, undefined);
    const all = this.#bindings.names.get(name) ?? [];
    const parts = all.flatMap((binding) => {
      if (!("value" in binding) || ("member" in binding && binding.member !== undefined)) return [];
      return [{ kind: binding.kind, text: this.text(binding.value, depth + 1) }];
    });
    const values = parts.filter(({ kind }) => kind === "value").map(({ text }) => text);
    const isBuiltUp = values.length === 1 && values[0] !== undefined && parts.length === all.length;
    const text = isBuiltUp ? parts.map((part) => part.text ?? UNKNOWN).join("") : worstPath(values);
    this.#texts.set(name, text);
    return text;
  }

  #textOfCall({ callee, given }: Call, depth: number): string | undefined {
    const texts = given.map((part) => this.text(part, depth + 1) ?? UNKNOWN);
    const text = this.#textOfReference(callee, texts, depth);
    if (text !== undefined) return text;
    const method = this.#dialect.read(callee);
    return method.kind === "member" ? this.#textOfMethod(method, given, texts, depth) : undefined;
  }

  #textOfReference(node: SyntaxNode, given: readonly string[], depth: number): string | undefined {
    const { texts } = this.#dialect;
    for (const { name } of this.references(node, depth + 1)) {
      if (Object.hasOwn(texts, name)) return texts[name]!(given);
    }
    return undefined;
  }

  #textOfMethod(
    { object, name }: Expression & { readonly kind: "member" },
    given: readonly SyntaxNode[],
    texts: readonly string[],
    depth: number,
  ): string | undefined {
    const text = this.text(object, depth + 1);
    if (name !== "join") {
      return text === undefined || !Object.hasOwn(METHODS, name) ? undefined : METHODS[name]!(text, texts);
    }
    // Python: separator.join(list); JavaScript: list.join(separator).
    const list = this.list(given[0], depth + 1) ?? this.list(object, depth + 1);
    return list?.join(this.#dialect.language === "python" ? text : (texts[0] ?? ","));
  }

  /** A list of texts: written out, mapped from codes, taken apart, turned around. */
  list(node: SyntaxNode | undefined, depth = 0): readonly string[] | undefined {
    if (node === undefined || depth > MAX_DEPTH) return undefined;
    const expression = this.#dialect.read(node);
    if (expression.kind === "list") {
      return expression.items.slice(0, 1024).map((item) => this.text(item, depth + 1) ?? UNKNOWN);
    }
    if (expression.kind === "name") {
      const bindings = this.#bindings.names.get(expression.name) ?? [];
      const binding = bindings.length === 1 ? bindings[0]! : undefined;
      return binding?.kind === "value" && binding.member === undefined
        ? this.list(binding.value, depth + 1)
        : undefined;
    }
    if (expression.kind !== "call") return undefined;
    const [first, second] = expression.given;
    const called = this.references(expression.callee, depth + 1).map(({ name }) => name);
    if (called.includes("builtins.reversed")) return [...(reverse(this.text(first, depth + 1)) ?? UNKNOWN)];
    if (called.includes("builtins.map") && first?.text === "chr") return this.list(second, depth + 1)?.map(character);
    const method = this.#dialect.read(expression.callee);
    if (method.kind !== "member") return undefined;
    if (/^(?:reverse|toReversed)$/.test(method.name)) return this.list(method.object, depth + 1)?.toReversed();
    const separator = method.name === "split" ? this.text(first, depth + 1) : undefined;
    return separator === undefined ? undefined : this.text(method.object, depth + 1)?.split(separator);
  }

  /** Whether a value is made by a decoder. */
  isDecoded(node: SyntaxNode): boolean {
    return this.#origins.has(node, "decoded", (inner) => {
      const expression = this.#dialect.read(inner);
      if (expression.kind === "reversed") return true;
      if (expression.kind === "member" && DECODING.test(expression.name)) return true;
      const called = expression.kind === "call" ? expression.callee : expression.kind === "name" ? inner : undefined;
      if (called === undefined) return false;
      const isRotation = expression.kind === "call" && ROTATION.test(inner.text.slice(-64));
      return isRotation || this.references(called).some(({ name }) => this.#dialect.decoders.has(name));
    });
  }

  /** Whether a value comes over the network. */
  isRemote(node: SyntaxNode): boolean {
    return this.#origins.has(node, "remote", (inner) => {
      const expression = this.#dialect.read(inner);
      if (expression.kind !== "call") return false;
      return this.references(expression.callee).some(({ name }) => this.#dialect.lookUp(name)?.pattern === "network");
    });
  }
}

const METHODS: Readonly<Record<string, (text: string, given: readonly string[]) => string | undefined>> = {
  ...each("toString valueOf trim strip expanduser resolve absolute", (text: string) => text),
  ...each("lower toLowerCase", (text: string) => text.toLowerCase()),
  ...each("upper toUpperCase", (text: string) => text.toUpperCase()),
  ...each("decode encode", (text: string, [code = ""]: readonly string[]) =>
    /^rot_?13$/.test(code) ? rot13(text) : text,
  ),
  ...each("replace replaceAll", replaced),
  concat: (text, given) => text + given.join(""),
  joinpath: (text, given) => joinPath([text, ...given]),
};

/** What replaces may be longer than what is replaced, again and again. */
function replaced(text: string, [from = "", to = UNKNOWN]: readonly string[]): string | undefined {
  const isKnown = from !== "" && !`${from}${to}`.includes(UNKNOWN) && text.length * (to.length + 1) <= MAX_TEXT;
  return isKnown ? text.replaceAll(from, to) : undefined;
}

/** Calls with an object and the name of a member of it, and calls that give back what they are given. */
const GETTER = /^(?:builtins\.getattr|Reflect\.get)$/;
const PASSING = /^(?:functools\.partial|util:\.promisify)$/;
const DECODING = /^(?:decompress|fromhex|b64decode|reverse|toReversed|fromCharCode|fromCodePoint)$/;
const ROTATION = /\.decode\(\s*['"](?:rot_?13|hex|base64|unicode_escape)/;

function distinct(references: readonly Reference[]): readonly Reference[] {
  const byName = new Map<string, Reference>();
  for (const reference of references) {
    const known = byName.get(reference.name);
    if (known === undefined || (!known.isHidden && reference.isHidden)) byName.set(reference.name, reference);
    if (byName.size >= MAX_REFERENCES) break;
  }
  return [...byName.values()];
}

import type { Rule } from "../findings.ts";
import type { PathUse } from "../places.ts";
import type { SyntaxNode } from "../syntax/node.ts";

/** A node as a value, whatever the language calls it. */
export type Expression =
  | { readonly kind: "name"; readonly name: string }
  /** Text, with expressions in it. */
  | { readonly kind: "text"; readonly parts: readonly (string | SyntaxNode)[] }
  | { readonly kind: "member"; readonly object: SyntaxNode; readonly name: string }
  | { readonly kind: "item"; readonly object: SyntaxNode; readonly key: SyntaxNode }
  | { readonly kind: "call"; readonly callee: SyntaxNode; readonly given: readonly SyntaxNode[] }
  | { readonly kind: "list"; readonly items: readonly SyntaxNode[] }
  | { readonly kind: "sum"; readonly left: SyntaxNode; readonly right: SyntaxNode }
  /** A path and what is below it: Path("a") / "b". */
  | { readonly kind: "below"; readonly left: SyntaxNode; readonly right: SyntaxNode }
  | { readonly kind: "reversed"; readonly of: SyntaxNode }
  /** One of these. */
  | { readonly kind: "either"; readonly options: readonly SyntaxNode[] }
  /** What a word of the language stands for: "import", "function", "globalThis". */
  | { readonly kind: "known"; readonly name: string }
  | { readonly kind: "other" };

export const OTHER: Expression = { kind: "other" };

/** What an expression may stand for. */
export interface Reference {
  /** "os.system", "fs:.readFile"; "?" is an unknown value, "f()" what f returns. */
  readonly name: string;
  /** It is reached in a way that hides the name. */
  readonly isHidden: boolean;
}

/** One way in which a name gets its value. */
export type Binding =
  /** A module, or a member of one: `import os as o`: o is "os". */
  | { readonly kind: "import"; readonly qualified: string }
  /** A value, or the member of that name of a value. */
  | { readonly kind: "value"; readonly value: SyntaxNode; readonly member?: string | undefined }
  /** `x += value`. */
  | { readonly kind: "added"; readonly value: SyntaxNode }
  /** Nothing is known of the value. */
  | { readonly kind: "given" };

/** Which values a name may have, from anywhere in the text: scopes and order are not looked at. That finds more. */
export class Bindings {
  readonly names = new Map<string, Binding[]>();
  /** Modules of `from m import *`. */
  readonly stars: string[] = [];

  bind(name: string, binding: Binding): void {
    const known = this.names.get(name);
    if (known === undefined) this.names.set(name, [binding]);
    // More bindings than this of one name say nothing more.
    else if (known.length < 64) known.push(binding);
  }
}

/** What is particular to a language. */
export interface Dialect {
  readonly language: "python" | "javascript";
  readonly read: (node: SyntaxNode) => Expression;
  readonly bindings: (root: SyntaxNode) => Bindings;
  /** Modules, and members of modules, that a statement loads. */
  readonly imports: (node: SyntaxNode) => readonly string[];
  /** The rule of the longest listed beginning of a qualified name. */
  readonly lookUp: (name: string) => Rule | undefined;
  /** A name that nobody binds. */
  readonly globalName: (name: string) => string;
  readonly member: (owner: Reference, name: string, isHidden: boolean) => Reference;
  /** What `owner[key]` is. */
  readonly item: (owner: Reference, key: string | undefined) => Reference;
  readonly moduleName: (text: string) => string;
  readonly isLoader: (name: string) => boolean;
  /** Calls that come to a text that one can tell. */
  readonly texts: Readonly<Record<string, (given: readonly string[]) => string | undefined>>;
  readonly decoders: ReadonlySet<string>;
  /** Calls whose argument is code. */
  readonly code: Readonly<Record<string, "first" | "last">>;
  /** Calls that run a program: of one line, of a list, or of each argument as a word. */
  readonly shells: Readonly<Record<string, "line" | "list" | "words">>;
  /** Calls that take paths → what each argument is used for. */
  readonly paths: Readonly<Record<string, readonly (PathUse | undefined)[]>>;
  /** Calls whose arguments, as they are written, make the difference. */
  readonly telling: readonly (readonly [callee: RegExp, given: RegExp, rule: Rule])[];
}

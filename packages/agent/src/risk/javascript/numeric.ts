import type { SyntaxNode } from "../syntax/node.ts";
import { type Binding, type Bindings, nameOf } from "./bindings.ts";

const MAX_DEPTH = 40;
const MAX_ROUNDS = 20;
/** These make a number of whatever they are given, or throw. */
const NUMERIC_OPERATORS = new Set(["-", "*", "/", "%", "**", "&", "|", "^", "<<", ">>", ">>>"]);
const NUMERIC_CHANGES = new Set(["++", "-=", "*=", "/=", "%=", "**=", "&=", "|=", "^=", "<<=", ">>=", ">>>="]);
const NUMERIC_FUNCTIONS = new Set(["Number", "parseInt", "parseFloat"]);

/** Tells which expressions can only be numbers: then `list[i]` is an element, and no member like "constructor". */
export class Numbers {
  readonly #bindings: Bindings;
  readonly #names: ReadonlySet<string>;

  constructor(bindings: Bindings) {
    this.#bindings = bindings;
    this.#names = this.#numericNames();
  }

  isNumeric(node: SyntaxNode): boolean {
    return this.#isNumeric(node, this.#names, 0);
  }

  /** Takes all names for numbers, then strikes out those that get something else, until nothing changes. */
  #numericNames(): ReadonlySet<string> {
    const names = new Set(this.#bindings.names.keys());
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const others = [...names].filter(
        (name) => !this.#bindings.names.get(name)!.every((binding) => this.#isNumericBinding(binding, names)),
      );
      if (others.length === 0) return names;
      for (const other of others) names.delete(other);
    }
    return new Set();
  }

  #isNumericBinding(binding: Binding, names: ReadonlySet<string>): boolean {
    if (binding.kind === "value") return binding.member === undefined && this.#isNumeric(binding.value, names, 0);
    if (binding.kind !== "changed") return false;
    if (NUMERIC_CHANGES.has(binding.operator)) return true;
    return binding.operator === "+=" && binding.value !== undefined && this.#isNumeric(binding.value, names, 0);
  }

  #isNumeric(node: SyntaxNode, names: ReadonlySet<string>, depth: number): boolean {
    if (depth > MAX_DEPTH) return false;
    switch (node.type) {
      case "number":
      case "update_expression":
        return true;
      case "identifier":
        return names.has(nameOf(node));
      case "parenthesized_expression":
        return node.named.length === 1 && this.#isNumeric(node.named[0]!, names, depth + 1);
      case "unary_expression":
        return /^[-+~]$/.test(node.part("operator")?.type ?? "");
      case "binary_expression": {
        const operator = node.part("operator")?.type ?? "";
        if (NUMERIC_OPERATORS.has(operator)) return true;
        return (
          operator === "+" &&
          node.named.length === 2 &&
          node.named.every((side) => this.#isNumeric(side, names, depth + 1))
        );
      }
      case "ternary_expression":
        return node.named.slice(1).every((branch) => this.#isNumeric(branch, names, depth + 1));
      case "call_expression":
        return this.#isNumericCall(node.part("function")!);
      default:
        return false;
    }
  }

  #isNumericCall(callee: SyntaxNode): boolean {
    const isGlobal = (name: string): boolean => !this.#bindings.names.has(name);
    if (callee.type === "identifier") return NUMERIC_FUNCTIONS.has(nameOf(callee)) && isGlobal(nameOf(callee));
    if (callee.type !== "member_expression") return false;
    const property = nameOf(callee.part("property")!);
    // Nobody has put another function in its place.
    return callee.part("object")!.text === "Math" && isGlobal("Math") && !this.#bindings.properties.has(property);
  }
}

type Fact = "type" | "isNamed" | "isMissing" | "field" | "start" | "end" | "line" | "parent";

/** A node of a syntax tree, apart from the memory of the parser. */
export class SyntaxNode {
  readonly type: string;
  /** A rule of the grammar, not a token like "(". */
  readonly isNamed: boolean;
  /** Put in by the parser to go on after an error. */
  readonly isMissing: boolean;
  /** Which part of its parent it is. */
  readonly field: string | undefined;
  readonly start: number;
  readonly end: number;
  /** Counted from 1. */
  readonly line: number;
  readonly parent: SyntaxNode | undefined;
  readonly children: SyntaxNode[] = [];
  readonly #source: string;

  constructor(facts: Pick<SyntaxNode, Fact> & { readonly source: string }) {
    this.type = facts.type;
    this.isNamed = facts.isNamed;
    this.isMissing = facts.isMissing;
    this.field = facts.field;
    this.start = facts.start;
    this.end = facts.end;
    this.line = facts.line;
    this.parent = facts.parent;
    this.#source = facts.source;
    facts.parent?.children.push(this);
  }

  get text(): string {
    return this.#source.slice(this.start, this.end);
  }

  get isError(): boolean {
    return this.type === "ERROR" || this.isMissing;
  }

  /** Rules only, without comments. */
  get named(): readonly SyntaxNode[] {
    return this.children.filter((child) => child.isNamed && !child.type.endsWith("comment"));
  }

  part(field: string): SyntaxNode | undefined {
    return this.children.find((child) => child.field === field);
  }

  parts(field: string): readonly SyntaxNode[] {
    return this.children.filter((child) => child.field === field);
  }

  /** This and everything below, in the order of the text. */
  *all(): Generator<SyntaxNode> {
    const waiting: SyntaxNode[] = [this];
    for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
      yield node;
      for (let i = node.children.length - 1; i >= 0; i--) waiting.push(node.children[i]!);
    }
  }

  /** The nearest node around this one that is of one of these types. */
  around(...types: readonly string[]): SyntaxNode | undefined {
    let node = this.parent;
    while (node !== undefined && !types.includes(node.type)) node = node.parent;
    return node;
  }
}

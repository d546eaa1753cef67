import { ANY_CHARACTER, type CharacterClass, type SegmentToken, STAR } from "./segment.ts";

/**
 * The syntax of a pattern, as a tree. Escapes and classes are read first, so nothing that braces do can break them up.
 *
 *   pattern     := (piece | alternation)*
 *   piece       := "/" | "*" | "?" | class | character | "\" character
 *   alternation := "{" pattern ("," pattern)+ "}"
 */
export type Piece = SegmentToken | typeof SLASH;
export type Sequence = (Piece | Alternation)[];
export interface Alternation {
  readonly branches: readonly Sequence[];
}

export const SLASH: unique symbol = Symbol("/");

/** Why a text is not a pattern; the rule it stands in is added by the caller. */
export class PatternError extends Error {
  override readonly name = "PatternError";
}

/** What the syntax alone says about a pattern, which is what its type is inferred from. */
export interface ParsedPattern {
  readonly sequence: Sequence;
  readonly hasWildcard: boolean;
  readonly hasSlash: boolean;
  readonly endsInSlash: boolean;
}

export function parsePattern(pattern: string): ParsedPattern {
  return new Parser(pattern).parse();
}

class Parser {
  readonly #text: string;
  #position = 0;
  #hasWildcard = false;
  #hasSlash = false;

  constructor(text: string) {
    this.#text = text;
  }

  parse(): ParsedPattern {
    const sequence = this.#sequence(0);
    return {
      sequence,
      hasWildcard: this.#hasWildcard,
      hasSlash: this.#hasSlash,
      endsInSlash: sequence.at(-1) === SLASH,
    };
  }

  #sequence(depth: number): Sequence {
    const sequence: Sequence = [];
    while (this.#position < this.#text.length) {
      const character = this.#peek();
      if (depth > 0 && (character === "," || character === "}")) return sequence;
      sequence.push(this.#piece(depth));
    }
    if (depth > 0) throw new PatternError("a brace is opened and not closed; write \\{ for a literal brace");
    return sequence;
  }

  #piece(depth: number): Piece | Alternation {
    const character = this.#take();
    switch (character) {
      case "/":
        this.#hasSlash = true;
        return SLASH;
      case "*":
        this.#hasWildcard = true;
        return STAR;
      case "?":
        this.#hasWildcard = true;
        return ANY_CHARACTER;
      case "[":
        this.#hasWildcard = true;
        return this.#class();
      case "{":
        this.#hasWildcard = true;
        return this.#alternation(depth + 1);
      case "]":
        throw new PatternError("a bracket is closed and not opened; write \\] for a literal bracket");
      case "}":
        throw new PatternError("a brace is closed and not opened; write \\} for a literal brace");
      case "\\":
        return codePoint(this.#escaped());
      default:
        return codePoint(character);
    }
  }

  #alternation(depth: number): Alternation {
    const branches: Sequence[] = [];
    for (;;) {
      branches.push(this.#sequence(depth));
      if (this.#take() === "}") break;
    }
    if (branches.length < 2) {
      throw new PatternError(
        "braces hold at least two alternatives, as in {a,b}; write \\{ and \\} for literal braces",
      );
    }
    return { branches };
  }

  #class(): CharacterClass {
    const negated = this.#peek() === "!" || this.#peek() === "^";
    if (negated) this.#take();
    const bounds: number[] = [];
    while (this.#peek() !== "]") {
      const low = this.#member();
      if (this.#peek() === "-" && this.#position + 1 < this.#text.length && this.#text[this.#position + 1] !== "]") {
        this.#take();
        const high = this.#member();
        if (high < low) throw new PatternError("a range in a class runs backwards");
        bounds.push(low, high);
      } else {
        bounds.push(low, low);
      }
    }
    this.#take();
    if (bounds.length === 0) throw new PatternError("a class is empty; write \\] for a literal bracket in a class");
    return { negated, bounds };
  }

  #member(): number {
    const character = this.#take();
    if (character === "") throw new PatternError("a bracket is opened and not closed; write \\[ for a literal bracket");
    if (character === "/") throw new PatternError("a class holds a slash, which no name contains");
    if (character === "[" && this.#peek() === ":") {
      throw new PatternError("named classes such as [:alpha:] do not exist; write the range, or \\[ for a bracket");
    }
    return codePoint(character === "\\" ? this.#escaped() : character);
  }

  #escaped(): string {
    const character = this.#take();
    if (character === "") throw new PatternError("the pattern ends in a backslash that escapes nothing");
    if (character === "/") throw new PatternError("a slash cannot be escaped");
    return character;
  }

  #peek(): string {
    return this.#text[this.#position] ?? "";
  }

  /** The next code point, or "" at the end. */
  #take(): string {
    const value = this.#text.codePointAt(this.#position);
    if (value === undefined) return "";
    const character = String.fromCodePoint(value);
    this.#position += character.length;
    return character;
  }
}

function codePoint(character: string): number {
  return character.codePointAt(0)!;
}

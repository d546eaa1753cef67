import type { JsonValue } from "@bufbuild/protobuf";
import { emptyRecord } from "./request-json.ts";

const SPACE = /[ \t\r\n]*/y;
const OTHER = /true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;

/** JSON (RFC 8259) whose objects get exactly the keys that are written; the depth of the text is bounded by the caller. */
export class ExactJson {
  readonly #text: string;
  #position = 0;

  constructor(text: string) {
    this.#text = text;
  }

  parse(): JsonValue {
    const value = this.#value();
    if (this.#next() !== "") {
      this.#refuse();
    }
    return value;
  }

  #value(): JsonValue {
    switch (this.#next()) {
      case "{":
        return this.#object();
      case "[":
        return this.#list();
      case '"':
        return this.#string();
      default:
        // A literal or a number has no key that could be misread.
        return JSON.parse(this.#token(OTHER)) as JsonValue;
    }
  }

  #object(): JsonValue {
    const object = emptyRecord();
    this.#items("}", () => {
      const key = this.#next() === '"' ? this.#string() : this.#refuse();
      if (this.#next() !== ":") {
        this.#refuse();
      }
      this.#position += 1;
      object[key] = this.#value();
    });
    return object;
  }

  #list(): JsonValue {
    const list: JsonValue[] = [];
    this.#items("]", () => list.push(this.#value()));
    return list;
  }

  #items(end: "}" | "]", item: () => void): void {
    this.#position += 1;
    if (this.#next() !== end) {
      item();
      while (this.#next() === ",") {
        this.#position += 1;
        item();
      }
    }
    if (this.#next() !== end) {
      this.#refuse();
    }
    this.#position += 1;
  }

  #string(): string {
    const { index } = endOfString(this.#text, this.#position);
    const literal = this.#text.slice(this.#position, index + 1);
    this.#position = index + 1;
    return JSON.parse(literal) as string;
  }

  /** The next character that means something; "" at the end. */
  #next(): string {
    SPACE.lastIndex = this.#position;
    SPACE.test(this.#text);
    this.#position = SPACE.lastIndex;
    return this.#text.charAt(this.#position);
  }

  #token(pattern: RegExp): string {
    pattern.lastIndex = this.#position;
    const token = pattern.exec(this.#text)?.[0] ?? this.#refuse();
    this.#position += token.length;
    return token;
  }

  #refuse(): never {
    throw new SyntaxError(`unexpected character at position ${this.#position}`);
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Where the string that begins here ends; what is between the quotes is not checked. */
export function endOfString(text: string, start: number): { readonly index: number; readonly escaped: boolean } {
  let escaped = false;
  for (let index = start + 1; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === QUOTE) {
      return { index, escaped };
    }
    if (code === BACKSLASH) {
      escaped = true;
      index += 1;
    }
  }
  return { index: text.length, escaped };
}

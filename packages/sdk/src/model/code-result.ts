/** What a piece of code shows: the same thing as several MIME types. All of it is what the sandbox says. */
export class CodeResult {
  /** The value of its last expression; otherwise it was displayed. */
  readonly isMain: boolean;
  /** MIME types and what each has; what is no text is in base64. */
  readonly data: Readonly<Record<string, string>>;
  /** MIME types that were too large. */
  readonly dropped: readonly string[];

  constructor({ isMain, data, dropped }: Pick<CodeResult, "isMain" | "data" | "dropped">) {
    this.isMain = isMain;
    this.data = data;
    this.dropped = dropped;
  }

  get text(): string | undefined {
    return this.data["text/plain"];
  }

  get html(): string | undefined {
    return this.data["text/html"];
  }

  get markdown(): string | undefined {
    return this.data["text/markdown"];
  }

  get svg(): string | undefined {
    return this.data["image/svg+xml"];
  }

  /** In base64, as `jpeg` and `pdf`. */
  get png(): string | undefined {
    return this.data["image/png"];
  }

  get jpeg(): string | undefined {
    return this.data["image/jpeg"];
  }

  get pdf(): string | undefined {
    return this.data["application/pdf"];
  }

  get latex(): string | undefined {
    return this.data["text/latex"];
  }

  get javascript(): string | undefined {
    return this.data["application/javascript"];
  }

  get json(): unknown {
    return this.#parsed("application/json");
  }

  /** A table by its columns, each with its values. */
  get table(): Readonly<Record<string, readonly unknown[]>> | undefined {
    return this.#parsed("application/vnd.agentfense.data+json") as Readonly<Record<string, unknown[]>> | undefined;
  }

  /** What a figure of matplotlib shows. Its `type` is line, scatter, bar, pie, box_and_whisker or superchart. */
  get chart(): { readonly type: string; readonly [name: string]: unknown } | undefined {
    return this.#parsed("application/vnd.agentfense.chart+json") as { readonly type: string } | undefined;
  }

  /** Text that is no JSON is nothing: the sandbox says what it likes. */
  #parsed(mime: string): unknown {
    try {
      return this.data[mime] === undefined ? undefined : JSON.parse(this.data[mime]);
    } catch {
      return undefined;
    }
  }
}

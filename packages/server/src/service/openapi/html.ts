/** Text that is HTML already. */
export interface Html {
  readonly text: string;
}

export type Part = string | Html;

/** HTML from a template; strings that are put in become text, whatever they contain. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return { text: strings.map((string, index) => `${string}${written(parts[index] ?? "")}`).join("") };
}

export function joined(parts: readonly Part[]): Html {
  return { text: parts.map(written).join("") };
}

function written(part: Part): string {
  return typeof part === "string"
    ? part.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
    : part.text;
}

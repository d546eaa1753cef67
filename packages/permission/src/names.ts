/** The names of a path: "/a//b", "./a/b/" are a and b, "" and "/" have none. What leads up is among them. */
export function namesIn(path: string): string[] {
  return path.split("/").filter((name) => name !== "" && name !== ".");
}

/** What a shell takes for the name of a variable. */
export const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * The text that rules are matched against, for a name as Linux has it, which is bytes. Valid UTF-8 becomes that text; every
 * other byte becomes a lone surrogate (U+DC80 to U+DCFF), so that two different names never look the same to a rule.
 */
export function nameText(bytes: Uint8Array): string {
  const whole = decoded(bytes);
  if (whole !== undefined) return whole;
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const lead = bytes[at]!;
    const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    const character = at + length <= bytes.length ? decoded(bytes.subarray(at, at + length)) : undefined;
    text += character ?? String.fromCharCode(0xdc00 + lead);
    at += character === undefined ? 1 : length;
  }
  return text;
}

function decoded(bytes: Uint8Array): string | undefined {
  try {
    return strictUtf8.decode(bytes);
  } catch {
    return undefined;
  }
}

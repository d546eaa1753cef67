// Patterns come from clients and names from agents: matching takes the product of the two lengths at most.

/** Tells which paths ("src/a.ts") a pattern means: * and ? within a name, [abc], and ** for any names. */
export function globPattern(pattern: string): (path: string) => boolean {
  const parts = pattern
    .split("/")
    .filter((part) => part !== "" && part !== ".")
    .map((part) => (part === "**" ? part : namePattern(part)));
  return (path) => {
    const names = path.split("/");
    // The parts so far can have met exactly the first n names, for each n of these.
    let reached = new Set([0]);
    for (const part of parts) {
      const next = new Set<number>();
      if (part === "**") {
        for (let at = Math.min(...reached); at <= names.length; at++) next.add(at);
      } else {
        for (const at of reached) if (at < names.length && part(names[at]!)) next.add(at + 1);
      }
      if (next.size === 0) return false;
      reached = next;
    }
    return reached.has(names.length);
  };
}

/** The same for a single name. */
export function namePattern(pattern: string): (name: string) => boolean {
  const tokens = tokensOf(pattern);
  return (name) => {
    // After a star, the last place to go back to is the only one that matters.
    let [at, token, starToken, starAt] = [0, 0, -1, 0];
    while (at < name.length) {
      const next = tokens[token];
      if (next === "any") {
        starToken = token++;
        starAt = at;
      } else if (next?.(name[at]!) === true) {
        at += 1;
        token += 1;
      } else if (starToken !== -1) {
        token = starToken + 1;
        at = ++starAt;
      } else return false;
    }
    while (tokens[token] === "any") token += 1;
    return token === tokens.length;
  };
}

type Token = "any" | ((character: string) => boolean);

function tokensOf(pattern: string): Token[] {
  const tokens: Token[] = [];
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern[at]!;
    const end = character === "[" ? pattern.indexOf("]", at + 2) : -1;
    if (character === "*") {
      if (tokens.at(-1) !== "any") tokens.push("any");
    } else if (character === "?") tokens.push(() => true);
    else if (end !== -1) {
      tokens.push(setOf(pattern.slice(at + 1, end)));
      at = end;
    } else tokens.push((other) => other === character);
  }
  return tokens;
}

/** "a-z0", or "!a-z" for all others. */
function setOf(text: string): (character: string) => boolean {
  const negated = text.startsWith("!") || text.startsWith("^");
  const body = negated ? text.slice(1) : text;
  return (character) => {
    for (let at = 0; at < body.length; at++) {
      const isRange = body[at + 1] === "-" && at + 2 < body.length;
      const [low, high] = [body[at]!, isRange ? body[at + 2]! : body[at]!];
      if (character >= low && character <= high) return !negated;
      if (isRange) at += 2;
    }
    return negated;
  };
}

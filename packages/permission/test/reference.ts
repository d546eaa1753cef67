import type { Level, Rule } from "../src/index.ts";

/**
 * The rule language once more, slow and plain: every rule is tried against the path and every directory above it, by
 * backtracking over the characters of both. Shares no code with the package.
 */
export function referenceLevel(rules: readonly Rule[], path: string): Level {
  const candidates: { rank: number[]; permission: Level }[] = [];
  for (const [index, rule] of rules.entries()) {
    const type = typeOf(rule);
    const replaced = rules
      .slice(index + 1)
      .some((r) => r.pattern === rule.pattern && typeOf(r) === type && (r.priority ?? 0) === (rule.priority ?? 0));
    if (replaced) continue;
    for (const alternative of expand(atomsOf(rule.pattern))) {
      const places = rule.permission === "none" ? [path, ...ancestors(path)] : [path];
      if (!places.some((place) => covers(rule, type, alternative, place))) continue;
      candidates.push({
        rank: [
          rule.priority ?? 0,
          { file: 3, directory: 2, glob: 1 }[type],
          literals(alternative),
          -STRICT[rule.permission],
        ],
        permission: rule.permission,
      });
    }
  }
  candidates.sort((a, b) => compare(b.rank, a.rank));
  return candidates[0]?.permission ?? "none";
}

const STRICT = { none: 0, view: 1, read: 2, write: 3 };

function compare(a: number[], b: number[]): number {
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return a[i]! - b[i]!;
  return 0;
}

function ancestors(path: string): string[] {
  const found: string[] = [];
  for (let at = path; at !== "/"; ) {
    at = at.slice(0, at.lastIndexOf("/")) || "/";
    found.push(at);
  }
  return found;
}

/** Atoms: an escape, a class, or one character, as written. */
function atomsOf(pattern: string): string[] {
  const characters = [...pattern];
  const atoms: string[] = [];
  for (let i = 0; i < characters.length; i++) {
    let atom = characters[i]!;
    if (atom === "\\") atom += characters[++i]!;
    if (atom === "[") {
      for (i++; characters[i] !== "]"; i++) atom += characters[i] === "\\" ? `\\${characters[++i]!}` : characters[i]!;
      atom += "]";
    }
    atoms.push(atom);
  }
  return atoms;
}

function typeOf(rule: Rule): "file" | "directory" | "glob" {
  if (rule.type === "file" || rule.type === "directory") return rule.type;
  const atoms = atomsOf(rule.pattern);
  if (atoms.at(-1) === "/") return "directory";
  const wild = atoms.some((atom) => atom === "*" || atom === "?" || atom === "{" || isClass(atom));
  return atoms.includes("/") && !wild ? "file" : "glob";
}

function isClass(atom: string): boolean {
  return atom.length > 1 && atom.startsWith("[");
}

function expand(atoms: string[]): string[][] {
  const open = atoms.indexOf("{");
  if (open < 0) return [atoms];
  const branches: string[][] = [[]];
  let depth = 1;
  let i = open + 1;
  for (; depth > 0; i++) {
    const atom = atoms[i]!;
    if (atom === "{") depth++;
    if (atom === "}") depth--;
    if (depth === 0) continue;
    if (atom === "," && depth === 1) branches.push([]);
    else branches.at(-1)!.push(atom);
  }
  return branches.flatMap((branch) => expand([...atoms.slice(0, open), ...branch, ...atoms.slice(i)]));
}

function literals(alternative: string[]): number {
  return alternative.filter((atom) => !["*", "?", "/"].includes(atom) && !isClass(atom)).length;
}

function covers(rule: Rule, type: "file" | "directory" | "glob", alternative: string[], path: string): boolean {
  const anchored = rule.type === "file" || rule.type === "directory" || atomsOf(rule.pattern).includes("/");
  let pattern = alternative[0] === "/" ? alternative.slice(1) : alternative;
  if (pattern.at(-1) === "/") pattern = pattern.slice(0, -1);
  if (!anchored) pattern = ["*", "*", "/", ...pattern];
  const places = type === "directory" ? [path, ...ancestors(path)] : [path];
  return places.some((place) => matches(pattern, [...place.slice(1)]));
}

function matches(pattern: string[], text: string[]): boolean {
  if (text.length === 0) return pattern.length === 0 || /^(\*\*+\/)*(\*\*+|(?<=\/)\*)$/.test(pattern.join(""));
  return matchFrom(pattern, 0, text, 0);
}

function matchFrom(p: string[], i: number, s: string[], j: number): boolean {
  if (i === p.length) return j === s.length;
  const atom = p[i]!;
  // X/** is X too.
  if (/^(\/\*\*+)+$/.test(p.slice(i).join(""))) return j === s.length || s[j] === "/";
  if (atom === "*" && p[i + 1] === "*") {
    let k = i;
    while (p[k] === "*") k++;
    const wholeSegment = (i === 0 || p[i - 1] === "/") && (k === p.length || p[k] === "/");
    if (wholeSegment && k === p.length) return true;
    if (wholeSegment) {
      const slash = s.indexOf("/", j);
      return matchFrom(p, k + 1, s, j) || (slash >= 0 && matchFrom(p, i, s, slash + 1)) || tailCoversRest(p, k, s, j);
    }
    for (let end = j; end <= s.length; end++) if (matchFrom(p, k, s, end)) return true;
    return false;
  }
  if (atom === "*") {
    for (let end = j; end <= s.length; end++) {
      if (matchFrom(p, i + 1, s, end)) return true;
      if (s[end] === "/") return false;
    }
    return false;
  }
  const character = s[j];
  if (character === undefined) return false;
  if (atom === "/") return character === "/" && matchFrom(p, i + 1, s, j + 1);
  if (character === "/") return false;
  if (atom !== "?" && !(isClass(atom) ? inClass(atom, character) : unescaped(atom) === character)) return false;
  return matchFrom(p, i + 1, s, j + 1);
}

/** `**` followed by nothing but more of them takes whatever is left. */
function tailCoversRest(p: string[], k: number, s: string[], j: number): boolean {
  return /^(\/\*\*+)+$/.test(p.slice(k).join("")) && j < s.length;
}

function unescaped(atom: string): string {
  return atom.length > 1 && atom.startsWith("\\") ? atom.slice(1) : atom;
}

function inClass(atom: string, character: string): boolean {
  const members = atomsOf(atom.slice(1, -1).replace(/^[!^]/, "").replaceAll("[", "\\["));
  const negated = /^\[[!^]/.test(atom);
  const code = (member: string) => unescaped(member).codePointAt(0)!;
  const at = character.codePointAt(0)!;
  for (let i = 0; i < members.length; i++) {
    const isRange = members[i + 1] === "-" && i + 2 < members.length;
    const low = code(members[i]!);
    const high = code(members[isRange ? i + 2 : i]!);
    if (at >= low && at <= high) return !negated;
    if (isRange) i += 2;
  }
  return negated;
}

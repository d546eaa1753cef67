// What of the DOM is used here. The function runs in the page, and Node knows no DOM.
interface PageNode {
  readonly nodeType: number;
  readonly nodeName: string;
  readonly nodeValue: string | null;
  readonly textContent: string | null;
  readonly childNodes: Iterable<PageNode>;
}

interface PageElement extends PageNode {
  readonly href?: unknown;
  readonly src?: unknown;
  readonly alt?: unknown;
  readonly value?: unknown;
  readonly type?: unknown;
  getAttribute(name: string): string | null;
  querySelector(selector: string): PageElement | null;
  querySelectorAll(selector: string): Iterable<PageElement>;
  checkVisibility?(): boolean;
}

/**
 * An element as Markdown: of a page, its main part if it says which that is. Sent to the page as text, so it uses
 * nothing of this file. Stops when it has enough.
 */
export function markdownOf(top: PageElement, limits: { readonly characters: number; readonly depth: number }): string {
  const SKIPPED = new Set(
    "SCRIPT STYLE NOSCRIPT TEMPLATE HEAD SVG CANVAS IFRAME OBJECT NAV FOOTER ASIDE DIALOG VIDEO AUDIO".split(" "),
  );
  const BLOCKS = new Set(
    [
      "ADDRESS ARTICLE BODY DD DETAILS DIV DL DT FIELDSET FIGCAPTION FIGURE FORM",
      "HEADER HGROUP MAIN P SECTION SUMMARY",
    ]
      .join(" ")
      .split(" "),
  );
  let left = limits.characters;
  const take = (text: string): string => {
    const taken = text.slice(0, Math.max(0, left));
    left -= taken.length;
    return taken;
  };
  const squeeze = (text: string): string => text.replace(/[ \t\r\n\f]+/g, " ");
  const isHidden = (element: PageElement): boolean =>
    element.getAttribute("aria-hidden") === "true" || element.checkVisibility?.() === false;
  const block = (text: string): string => (text.trim() === "" ? "" : `\n\n${text.trim()}\n\n`);
  const inline = (node: PageNode, depth: number): string => squeeze(children(node, depth)).trim();
  const children = (node: PageNode, depth: number): string => {
    let text = "";
    if (depth >= limits.depth) return text;
    for (const child of node.childNodes) {
      if (left <= 0) break;
      const piece = convert(child, depth + 1);
      // Space at the beginning of a line is nothing that is seen.
      text += child.nodeType === 3 && text.endsWith("\n") ? piece.trimStart() : piece;
    }
    return text;
  };
  const fence = (text: string): string => {
    const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map((ticks) => ticks.length));
    const ticks = "`".repeat(longest + 1);
    return `\n\n${ticks}\n${text.replace(/\n$/, "")}\n${ticks}\n\n`;
  };
  const list = (element: PageElement, depth: number, isOrdered: boolean): string => {
    let number = Number(element.getAttribute("start") ?? 1) || 1;
    const lines: string[] = [];
    for (const item of element.childNodes) {
      if (item.nodeName.toUpperCase() !== "LI" || left <= 0) continue;
      const mark = isOrdered ? `${number++}. ` : "- ";
      const text = children(item, depth + 1)
        .trim()
        .replace(/\n{2,}/g, "\n")
        .replace(/\n/g, `\n${" ".repeat(mark.length)}`);
      lines.push(mark + text);
    }
    return block(lines.join("\n"));
  };
  const table = (element: PageElement, depth: number): string => {
    const rows: string[][] = [];
    for (const row of element.querySelectorAll("tr")) {
      if (left <= 0) break;
      const cells: string[] = [];
      for (const cell of row.childNodes)
        if (/^T[HD]$/i.test(cell.nodeName)) cells.push(inline(cell, depth + 1).replace(/\|/g, "\\|"));
      if (cells.length > 0) rows.push(cells);
    }
    const [head, ...body] = rows;
    if (head === undefined) return "";
    const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
    return block([line(head), line(head.map(() => "---")), ...body.map(line)].join("\n"));
  };
  const convert = (node: PageNode, depth: number): string => {
    if (node.nodeType === 3) return take(squeeze(node.nodeValue ?? ""));
    if (node.nodeType !== 1) return "";
    const element = node as PageElement;
    const name = element.nodeName.toUpperCase();
    if (SKIPPED.has(name) || isHidden(element)) return "";
    const heading = /^H([1-6])$/.exec(name);
    if (heading !== null) return block(`${"#".repeat(Number(heading[1]))} ${inline(element, depth)}`);
    if (BLOCKS.has(name)) return block(children(element, depth));
    switch (name) {
      case "BR":
        return "\n";
      case "HR":
        return "\n\n---\n\n";
      case "UL":
      case "MENU":
        return list(element, depth, false);
      case "OL":
        return list(element, depth, true);
      case "TABLE":
        return table(element, depth);
      case "PRE":
        return fence(take(element.textContent ?? ""));
      case "CODE":
        return `\`${inline(element, depth)}\``;
      case "BLOCKQUOTE":
        return block(
          children(element, depth)
            .trim()
            .replace(/\n{3,}/g, "\n\n")
            .replace(/^/gm, "> "),
        );
      case "STRONG":
      case "B": {
        const text = inline(element, depth);
        return text === "" ? "" : `**${text}**`;
      }
      case "EM":
      case "I": {
        const text = inline(element, depth);
        return text === "" ? "" : `*${text}*`;
      }
      case "A": {
        const text = inline(element, depth);
        const isLink = typeof element.href === "string" && /^(https?|mailto|file):/i.test(element.href);
        return text === "" || !isLink ? text : `[${text}](${take(String(element.href).slice(0, 2048))})`;
      }
      case "IMG":
        return typeof element.alt === "string" && element.alt !== "" ? `![${take(squeeze(element.alt))}]` : "";
      case "TEXTAREA":
      case "INPUT":
        return element.type === "password" || typeof element.value !== "string" ? "" : take(squeeze(element.value));
      default:
        return children(element, depth);
    }
  };
  const isWholePage = top.nodeName.toUpperCase() === "BODY";
  const root = (isWholePage && top.querySelector("main, [role=main], article")) || top;
  return children(root, 0)
    .replace(/[ \t]+\n/g, "\n")
    .replace(/\n[ \t]+(?=\n)/g, "\n")
    .replace(/\n{3,}/g, "\n\n")
    .trim();
}

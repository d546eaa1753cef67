import { z } from "zod";
import { BrowserError } from "../errors.ts";

const MAX_TIMEOUT_MS = 600_000;

const url = z.string().min(1).max(65_536);
const selector = z.string().min(1).max(10_000);
const path = z.string().min(1).max(4096);
const timeoutMs = z.int().min(1).max(MAX_TIMEOUT_MS).optional();
const state = z.enum(["load", "domcontentloaded", "networkidle"]);
const pixels = z.number().min(-1_000_000).max(1_000_000);
const nothing = z.strictObject({ timeoutMs });
const part = z.strictObject({ selector: selector.optional(), timeoutMs });

/** What can be done, and what each takes. A selector is one of CSS, or playwright's text=… and role=…. */
const PARAMETERS = {
  /** Goes to an address. */
  navigate: z.strictObject({ url, waitUntil: z.enum([...state.options, "commit"]).optional(), timeoutMs }),
  back: nothing,
  forward: nothing,
  reload: nothing,
  /** On an element, or on a place of what is in view. */
  click: z
    .strictObject({ selector: selector.optional(), x: pixels.optional(), y: pixels.optional(), timeoutMs })
    .refine(
      ({ selector, x, y }) => (selector === undefined) === (x !== undefined) && (x === undefined) === (y === undefined),
      {
        error: "click takes either selector, or x and y",
      },
    ),
  /** Puts a text into a field, instead of what is there. */
  fill: z.strictObject({ selector, text: z.string().max(1_000_000), timeoutMs }),
  /** "Enter", "Control+a"; on an element, or on what has the focus. */
  press: z.strictObject({ key: z.string().min(1).max(100), selector: selector.optional(), timeoutMs }),
  /** Scrolls by so many pixels, or until the element is in view. */
  scroll: z
    .strictObject({ selector: selector.optional(), x: pixels.optional(), y: pixels.optional(), timeoutMs })
    .refine(({ selector, x, y }) => (selector === undefined) === (x !== undefined || y !== undefined), {
      error: "scroll takes either selector, or x, y or both",
    }),
  /** What a reader sees, of an element or of all. */
  text: part,
  /** The same with headings, links, lists, tables and code. */
  markdown: part,
  html: part,
  /** PNG unless it says otherwise; also written into the workspace where there is a path. */
  screenshot: z
    .strictObject({
      fullPage: z.boolean().optional(),
      path: path.optional(),
      format: z.enum(["png", "jpeg"]).optional(),
      quality: z.int().min(1).max(100).optional(),
      timeoutMs,
    })
    .refine(({ format, quality }) => quality === undefined || format === "jpeg", { error: "only JPEG has a quality" }),
  /** JavaScript in the page; the value, or what the promise gives, as JSON has it. */
  evaluate: z.strictObject({ expression: z.string().min(1).max(1_000_000), timeoutMs }),
  /** For an element, for so long, or for a state of the page. */
  wait: z
    .strictObject({
      selector: selector.optional(),
      ms: z.int().min(1).max(MAX_TIMEOUT_MS).optional(),
      state: state.optional(),
      timeoutMs,
    })
    .refine(({ selector, ms, state }) => [selector, ms, state].filter((given) => given !== undefined).length === 1, {
      error: "wait takes one of selector, ms and state",
    }),
  /** Tabs are counted from 0. "activate" and "close" need the index, "new" may have a url. */
  tabs: z
    .strictObject({
      op: z.enum(["list", "new", "activate", "close"]),
      index: z.int().min(0).max(1000).optional(),
      url: url.optional(),
      timeoutMs,
    })
    .refine(({ op, index }) => (index !== undefined) === (op === "activate" || op === "close"), {
      error: "activate and close take an index, the others do not",
    })
    .refine(({ op, url }) => url === undefined || op === "new", { error: "only a new tab takes a url" }),
  /** An address, or what a click on an element gives, as a file of the workspace. */
  download: z
    .strictObject({ url: url.optional(), selector: selector.optional(), path, timeoutMs })
    .refine(({ url, selector }) => (url === undefined) !== (selector === undefined), {
      error: "download takes either url or selector",
    }),
} satisfies Record<string, z.ZodType>;

export type BrowserActionName = keyof typeof PARAMETERS;

export type BrowserParams<Name extends BrowserActionName> = z.infer<(typeof PARAMETERS)[Name]>;

/** One thing to do, with what it takes. */
export type BrowserAction = {
  [Name in BrowserActionName]: Record<never, never> extends BrowserParams<Name>
    ? { readonly action: Name; readonly params?: BrowserParams<Name> | undefined }
    : { readonly action: Name; readonly params: BrowserParams<Name> };
}[BrowserActionName];

/** The same from somewhere where nobody looked at it, like a model. */
export interface UncheckedBrowserAction {
  readonly action: string;
  readonly params?: Readonly<Record<string, unknown>> | undefined;
}

/** One that was looked at. */
export type CheckedAction = {
  [Name in BrowserActionName]: { readonly action: Name; readonly params: BrowserParams<Name> };
}[BrowserActionName];

/** What is not an action is a BrowserError that says what is wrong with it. */
export function checkAction({ action, params = {} }: UncheckedBrowserAction): CheckedAction {
  if (!Object.hasOwn(PARAMETERS, action)) {
    const hint = `there are ${Object.keys(PARAMETERS).join(", ")}`;
    throw new BrowserError("INVALID_ACTION", `there is no action ${JSON.stringify(String(action).slice(0, 100))}`, {
      hint,
    });
  }
  const checked = PARAMETERS[action as BrowserActionName].safeParse(params);
  if (!checked.success) throw new BrowserError("INVALID_ACTION", `${action}: ${z.prettifyError(checked.error)}`);
  return { action, params: checked.data } as CheckedAction;
}

/** Always the same text for the same action: names in order, and nothing that is not said. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_name, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}
